"""What the checker finds: a value."""

import msgspec

__all__ = ["Violation"]


class Violation(msgspec.Struct, frozen=True):
    """One thing that must not be; `job_id` is the job it was seen on."""

    kind: str
    job_id: str
    text: str = ""
