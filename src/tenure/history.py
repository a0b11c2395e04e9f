"""What a store keeps of the attempts that did not complete their job: values, and a rule."""

from datetime import datetime
from typing import assert_never

from msgspec import Struct

from tenure.outcomes import Cancelled, Completed, Failed, Outcome, Released, Retried, Snoozed

__all__ = ["PastAttempt", "Tried", "tried"]

_MESSAGE = 1000  # characters


class PastAttempt(Struct, frozen=True, kw_only=True):
    """One attempt that did not complete its job.

    `outcome` is `retried`, `failed`, `cancelled`, or `stalled` (its lease ran out). `started_at` is
    when it was claimed, by the store's clock, as `ended_at`; `worker` the id of the worker's run.
    `kind` and `message` are those of the failure, the message cut to 1,000 characters.
    """

    attempt: int
    serial: int
    outcome: str
    started_at: datetime
    ended_at: datetime
    worker: str
    kind: str = ""
    message: str = ""


class Tried(Struct, frozen=True, kw_only=True):
    """What a history keeps of how an attempt ended that did not complete its job."""

    outcome: str
    kind: str
    message: str


def tried(outcome: Outcome) -> Tried | None:
    """What the history of the job gets of an outcome; None where it was not an attempt that failed.

    A completed attempt is the job's own end, and one that was given back (released, snoozed, never
    started) may come any number of times: neither is kept.
    """
    match outcome:
        case Retried(failure=failure):
            name = "retried"
        case Failed(failure=failure, started=True):
            name = "failed"
        case Cancelled(reason=reason, started=True):
            return Tried(outcome="cancelled", kind="", message=reason[:_MESSAGE])
        case Completed() | Snoozed() | Released() | Failed() | Cancelled():
            return None
        case _:
            assert_never(outcome)
    return Tried(outcome=name, kind=failure.kind, message=failure.message[:_MESSAGE])
