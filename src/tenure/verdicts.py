"""What a handler may say of its own job: run it again, later, or never.

Values without a check of their own: the worker judges them as it judges what a handler returns or
raises.
"""

from datetime import timedelta

from msgspec import Struct

__all__ = ["Cancel", "Retry", "Snooze"]


class Snooze(Struct, frozen=True):
    """Returned by a handler: run the job again in `delay` seconds. No attempt is spent.

    However often: a job that waits for something may snooze for as long as that takes.
    """

    delay: float | timedelta


class Retry(Exception):
    """Raised by a handler: this attempt has failed, and another shall follow.

    `after` seconds or `timedelta`; None leaves the wait to the retry policy. It is an attempt like
    any other: it follows as long as `max_attempts` allows, that of the dispatch or else that of the
    policy (of the default policy, where the handler has none).
    """

    def __init__(self, reason: str = "", *, after: float | timedelta | None = None) -> None:
        super().__init__(reason or "the handler asked for another attempt")
        self.after = after


class Cancel(Exception):
    """Raised by a handler: the job is cancelled, for `reason`, and not tried again."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "the handler cancelled the job")
        self.reason = reason
