"""The operation that records and then claims, in one transaction: one commit for both halves."""

from collections.abc import Sequence
from datetime import datetime

from tenure.driver import RecordItem
from tenure.drivers.sqlite.claim import claim
from tenure.drivers.sqlite.record import record
from tenure.drivers.sqlite.transaction import Operation, Transaction
from tenure.errors import StoreError
from tenure.types import ClaimRequest, Exchanged

__all__ = ["exchange"]


def exchange(
    items: Sequence[RecordItem], request: ClaimRequest, now: datetime | None
) -> Operation[Exchanged]:
    """See `Driver.exchange`."""
    recording, claiming = record(items, now), claim(request, now)

    def run(transaction: Transaction) -> Exchanged:
        recorded = tuple(recording(transaction))
        try:
            claims = tuple(claiming(transaction))
        except Exception as error:  # a claim that failed has taken nothing (claim.py)
            if not transaction.alive:
                raise  # and with it the outcomes
            refused = StoreError(f"the claim failed: {error}")
            refused.__cause__ = error
            return Exchanged(recorded=recorded, claims=(), error=refused)
        return Exchanged(recorded=recorded, claims=claims)

    return run
