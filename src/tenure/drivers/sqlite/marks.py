"""What decides about a job: where it stands, under which hold, and which was settled last.

Read for all ids of a batch at once, inside the transaction that then decides; since there is one
writer at a time, what was read stays true until the commit.
"""

from collections.abc import Iterable

from msgspec import Struct

from tenure.drivers.sqlite.encoding import PROCESSING, json_list
from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Transaction
from tenure.types import Hold

__all__ = ["Mark", "marks"]

_MARKS = statement("marks_by_ids")


class Mark(Struct, gc=False):
    """A row of marks_by_ids. `state` and `queue` follow what the operation does to the job."""

    seq: int
    id: str
    queue: str
    state: int
    run_at: int
    attempt: int
    stalls: int
    serial: int
    token: str | None
    cancel_requested: int
    settled_serial: int | None
    settled_token: str | None
    settled_outcome: str | None
    unique_key: str | None
    limits: str | None
    size: int  # bytes of payload and result

    def held_by(self, hold: Hold) -> bool:
        """Whether the hold is the current one (I3), expired or not."""
        return self.serial == hold.serial and self.token == hold.token and self.state == PROCESSING

    def settled_by(self, hold: Hold, outcome: str) -> bool:
        """Whether the hold was the last to be settled, and with this outcome."""
        return (
            self.settled_serial == hold.serial
            and self.settled_token == hold.token
            and self.settled_outcome == outcome
        )


def marks(transaction: Transaction, ids: Iterable[str]) -> dict[str, Mark]:
    """The marks of those ids that are stored."""
    return {row[1]: Mark(*row) for row in transaction.rows(_MARKS, (json_list(ids),))}
