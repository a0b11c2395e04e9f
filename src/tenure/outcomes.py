"""How an attempt ended: the closed union of outcomes, and what each makes of its job.

Pure: no clock, no I/O. Drivers written in Python call `settle`; drivers that decide inside their
store implement the same table, and the conformance kit holds them to it.
"""

from datetime import datetime
from typing import assert_never
from zlib import crc32

from msgspec import Struct

from tenure.states import State

__all__ = [
    "Cancelled",
    "Completed",
    "Failed",
    "Failure",
    "Outcome",
    "Released",
    "Retried",
    "Settlement",
    "Snoozed",
    "outcome_digest",
    "settle",
]


class Failure(Struct, frozen=True, kw_only=True):
    """Why an attempt failed: bounded text, never an exception object.

    `kind` is one of `error`, `timeout`, `panic`, `stalled`, `serialization`, `no_handler`,
    `damaged`. `at` is when it was seen, by the worker's wall clock; `attempt` the start it ended.
    """

    kind: str
    message: str
    trace: str = ""
    at: datetime
    attempt: int


class Completed(Struct, frozen=True):
    """The handler returned; `result` is its encoded result, None where it returned None."""

    result: bytes | None = None


class Retried(Struct, frozen=True):
    """The attempt failed, another follows `delay` seconds after the store's now."""

    delay: float
    failure: Failure


class Snoozed(Struct, frozen=True):
    """The handler asked to be called again `delay` seconds later; no attempt is spent."""

    delay: float


class Released(Struct, frozen=True):
    """Given back untouched, no attempt spent. Without a delay it keeps its due time and place."""

    reason: str
    delay: float | None = None


class Failed(Struct, frozen=True):
    """The job has failed for good; `started=False` gives the start back."""

    failure: Failure
    started: bool = True


class Cancelled(Struct, frozen=True):
    """The job was cancelled; `started=False` gives the start back."""

    reason: str
    started: bool = True


Outcome = Completed | Retried | Snoozed | Released | Failed | Cancelled


def outcome_digest(outcome: Outcome) -> str:
    """Name an outcome in a few characters, for telling a repeat from another outcome.

    A checksum suffices: one hold gets two different outcomes only from a broken worker, and the
    worst that a collision does is to answer it `REPEATED` instead of `FENCED`. The time and trace
    of a failure count, since a repeat carries the very same value.
    """
    match outcome:
        case Completed(result=None):
            return "completed"
        case Completed(result=bytes() as result):
            return f"completed {crc32(result):x}"
        case _:
            content = repr(outcome).encode("utf-8", "backslashreplace")
            return f"{type(outcome).__name__.lower()} {crc32(content):x}"


class Settlement(Struct, frozen=True, kw_only=True):
    """What an outcome makes of a processing job.

    `delay` is in seconds from the store's now; `None` with `state` pending means that the job
    keeps its due time and so its place. For a terminal state it is always `None`.
    """

    state: State
    attempt: int
    stalls: int
    delay: float | None = None


def settle(outcome: Outcome, *, attempt: int, stalls: int, cancel_requested: bool) -> Settlement:
    """Decide what `outcome` makes of a job that is processing its `attempt`-th start.

    A start is given back by a release, a snooze and an outcome with `started=False`, and by
    nothing else. Every outcome but a release ends the row of stalls. A job that was asked to
    cancel does not go back to waiting: it is cancelled instead.
    """
    match outcome:
        case Completed():
            return Settlement(state=State.COMPLETED, attempt=attempt, stalls=0)
        case Failed(started=started):
            return Settlement(
                state=State.FAILED, attempt=attempt if started else attempt - 1, stalls=0
            )
        case Cancelled(started=started):
            return Settlement(
                state=State.CANCELLED, attempt=attempt if started else attempt - 1, stalls=0
            )
        case Retried(delay=delay):
            after = Settlement(state=State.PENDING, attempt=attempt, stalls=0, delay=delay)
        case Snoozed(delay=delay):
            after = Settlement(state=State.PENDING, attempt=attempt - 1, stalls=0, delay=delay)
        case Released(delay=delay):
            after = Settlement(state=State.PENDING, attempt=attempt - 1, stalls=stalls, delay=delay)
        case _:
            assert_never(outcome)
    if cancel_requested:
        return Settlement(state=State.CANCELLED, attempt=after.attempt, stalls=0)
    return after
