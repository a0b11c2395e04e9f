"""The operations about the end of leases: extend, shorten, look for expired ones, reclaim."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from tenure.drivers.sqlite.encoding import PENDING, PROCESSING, json_list, moment, nearest, span
from tenure.drivers.sqlite.history import remember
from tenure.drivers.sqlite.lanes import Lanes
from tenure.drivers.sqlite.marks import marks
from tenure.drivers.sqlite.rows import bounded
from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Operation, Transaction
from tenure.history import Tried
from tenure.types import Expired, ExpiredHold, Hold, Kept

__all__ = ["expired", "extend", "reclaim", "shorten"]

_EXTEND = statement("lease_extend")
_EXPIRED = statement("leases_expired")
_END = statement("lease_end")
_SHORTEN = statement("lease_shorten")
_HOLDING = statement("workers_holding")

_ALL = -1
_SECOND = 1_000_000
_STALLED = Tried(outcome="stalled", kind="stalled", message="")


class _Lease(NamedTuple):
    """A row of leases_expired."""

    seq: int
    id: str
    queue: str
    stalls: int
    serial: int
    token: str
    until: int
    length: int
    limits: str | None

    @property
    def hold(self) -> Hold:
        return Hold(self.id, self.serial, self.token)


def extend(holds: Sequence[Hold], lease: float, now: datetime | None) -> Operation[list[Kept]]:
    """See `Driver.extend`."""

    def run(transaction: Transaction) -> list[Kept]:
        found = marks(transaction, [hold.job_id for hold in holds])
        answers: list[Kept] = []
        kept: list[int] = []
        for hold in holds:
            mark = found.get(hold.job_id)
            if mark is None or not mark.held_by(hold):
                answers.append(Kept.LOST)
                continue
            kept.append(mark.seq)
            answers.append(Kept.CANCEL_REQUESTED if mark.cancel_requested else Kept.KEPT)
        if kept:
            until = transaction.time(now) + span(lease)
            transaction.execute(_EXTEND, (until, span(lease), json_list(kept)))
        return answers

    return run


def shorten(workers: Sequence[str], now: datetime | None) -> Operation[set[str]]:
    """Let the leases of workers that are gone end; which of these still have current holds.

    The length of such a lease is 0 from then on, so that no reclaim waits for it, not even after
    the clock was set: the lock of a file knows nothing of time.
    """

    def run(transaction: Transaction) -> set[str]:
        gone = json_list(workers)
        holding = {worker for (worker,) in transaction.rows(_HOLDING, (gone,))}
        if holding:
            transaction.execute(_SHORTEN, (transaction.time(now), gone))
        return holding

    return run


def expired(limit: int, now: datetime | None) -> Operation[Expired]:
    """See `Driver.expired`."""

    def run(transaction: Transaction) -> Expired:
        instant = transaction.time(now)
        return Expired(
            now=moment(instant),
            holds=tuple(
                ExpiredHold(
                    hold=lease.hold, until=nearest(lease.until), lease=lease.length / _SECOND
                )
                for lease in _run_out(transaction, instant, limit, ahead=True)
            ),
        )

    return run


def reclaim(
    limit: int, delays: Sequence[float], only: Collection[Hold] | None, now: datetime | None
) -> Operation[list[Hold]]:
    """See `Driver.reclaim`."""

    def run(transaction: Transaction) -> list[Hold]:
        instant = transaction.time(now)
        if only is None:
            leases = _run_out(transaction, instant, limit, ahead=False)
        else:
            leases = _run_out(transaction, instant, _ALL, ahead=True)
            leases = [lease for lease in leases if lease.hold in only][:limit]
        changes: list[tuple[int, ...]] = []
        for lease in leases:
            stalls, serial = bounded(lease.stalls), bounded(lease.serial)
            remember(transaction, lease.seq, serial, _STALLED, instant)
            due = instant + span(delays[min(stalls, len(delays) - 1)])
            changes.append((serial + 1, stalls + 1, due, instant, lease.seq))
            transaction.moved(lease.queue, PROCESSING, PENDING)
        if changes:
            transaction.executemany(_END, changes)
            transaction.wakes = True
        _give_back(transaction, [lease for lease in leases if lease.limits is not None], instant)
        return [lease.hold for lease in leases]

    return run


def _give_back(transaction: Transaction, leases: Sequence[_Lease], now: int) -> None:
    """Count the holds of keys that have ended, and find a place for their jobs."""
    if not leases:
        return
    lanes = Lanes(transaction, now)
    freed = lanes.ended(lease.limits for lease in leases)
    for lease in leases:
        lanes.enter(lease.seq)
    lanes.freed(freed)
    lanes.finish()


def _run_out(transaction: Transaction, now: int, limit: int, *, ahead: bool) -> list[_Lease]:
    """With `ahead` also those of which only a clock that was set back shows the end."""
    return [_Lease(*row) for row in transaction.rows(_EXPIRED, (now, limit, int(ahead)))]
