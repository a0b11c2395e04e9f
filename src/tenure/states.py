"""The six states of a job and every transition between them.

The only place that says which state may follow which; what an outcome makes of a job, within
these transitions, is in `outcomes.py`. Values only: no clock, no I/O.
"""

from enum import StrEnum

__all__ = ["TERMINAL", "TRANSITIONS", "State"]


class State(StrEnum):
    """Where a job stands. *Scheduled* and *retrying* are views of `pending`, not states."""

    PENDING = "pending"
    BLOCKED = "blocked"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED})

TRANSITIONS: dict[State, frozenset[State]] = {
    # claimed; cancelled while it waited
    State.PENDING: frozenset({State.PROCESSING, State.CANCELLED}),
    # its parents ended
    State.BLOCKED: frozenset({State.PENDING, State.CANCELLED}),
    # retried, snoozed, released or reclaimed; or one of the three ends
    State.PROCESSING: frozenset({State.PENDING, *TERMINAL}),
    State.COMPLETED: frozenset(),
    # a manual retry
    State.FAILED: frozenset({State.PENDING}),
    State.CANCELLED: frozenset({State.PENDING}),
}
