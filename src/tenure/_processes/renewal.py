"""What a supervisor is told by who wants its processes replaced now and then, as for new code."""

from typing import Protocol

from tenure._processes.terms import End

__all__ = ["Renewal"]


class Renewal(Protocol):
    """Used in the supervisor's thread."""

    @property
    def noticed(self) -> End:
        """What becomes readable when something has changed."""
        ...

    def take(self) -> str:
        """What has changed since this was last asked, in words; empty for nothing. Never waits."""
        ...
