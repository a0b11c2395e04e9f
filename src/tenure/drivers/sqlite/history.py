"""The attempts that did not complete a job: written when they end, gone with the job."""

from typing import Any

from tenure.drivers.sqlite.encoding import moment, writable
from tenure.drivers.sqlite.rows import readable
from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Operation, Transaction
from tenure.history import PastAttempt, Tried

__all__ = ["history", "read_past", "remember"]

_ADD = statement("history_add")
_CUT = statement("history_cut")
_OF = statement("history_of")

_KEPT = 100


def remember(transaction: Transaction, seq: int, serial: int, how: Tried, now: int) -> None:
    """Add the attempt that ends now. Called before the job's row is changed."""
    kind, message = writable(how.kind), writable(how.message)
    transaction.execute(_ADD, (how.outcome, kind, message, now, seq))
    if serial > _KEPT:  # there is one entry for each serial at most
        transaction.execute(_CUT, (seq, _KEPT - 1))


def history(job_id: str) -> Operation[list[PastAttempt]]:
    """See `Driver.history`."""

    def run(transaction: Transaction) -> list[PastAttempt]:
        return [read_past(*row) for row in transaction.rows(_OF, (job_id,))]

    return run


def read_past(
    attempt: int, serial: int, outcome: str, started_at: int, ended_at: int, *texts: Any
) -> PastAttempt:
    """The attempt that a row of history_of shows."""
    worker, kind, message = texts
    return PastAttempt(
        attempt=attempt,
        serial=serial,
        outcome=outcome,
        started_at=readable(started_at, moment, moment(0)),
        ended_at=readable(ended_at, moment, moment(0)),
        worker=worker,
        kind=kind,
        message=message,
    )
