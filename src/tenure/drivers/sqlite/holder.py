"""What a dispatch that is refused for its unique key does to the job that holds the key."""

from typing import assert_never

from tenure.drivers.sqlite.encoding import BLOCKED, PENDING, span
from tenure.drivers.sqlite.lanes import Lanes
from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Transaction
from tenure.types import NewJob

__all__ = ["change_holder"]

_MARK = statement("holder_mark")
_CHANGE = statement("holder_change")


def change_holder(
    transaction: Transaction, lanes: Lanes, holder: str, new: NewJob, due: int, now: int
) -> None:
    """See `UniqueKey`: only a holder that waits and has the same name is changed."""
    if new.unique is None:
        return
    rows = transaction.rows(_MARK, (holder,))
    if not rows:
        return  # the mark of a throttle whose job was deleted
    seq, name, state, run_at, created_at, limits = rows[0]
    if name != new.name or state not in (PENDING, BLOCKED):
        return
    if new.unique.max_wait is not None:
        due = min(due, created_at + span(new.unique.max_wait))
    match new.unique.mode:
        case "keep" | "throttle":
            return
        case "replace":
            transaction.execute(_CHANGE, (new.payload, due, now, seq))
        case "debounce":
            transaction.execute(_CHANGE, (None, max(run_at, due), now, seq))
        case _:
            assert_never(new.unique.mode)
    if limits is not None:
        lanes.left(seq)
        if state == PENDING:
            lanes.enter(seq)
