"""The operation that takes due jobs, in the order of claims (I11)."""

from collections.abc import Iterator
from datetime import datetime

from tenure.drivers.sqlite import unique
from tenure.drivers.sqlite.encoding import PENDING, PROCESSING, json_list, span
from tenure.drivers.sqlite.rows import JobRow, ReadJob, read_job
from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Operation, Transaction
from tenure.types import Claim, ClaimRequest, Hold

__all__ = ["claim", "paused_queues", "priorities"]

_PAUSED = statement("queues_paused")
_PRIORITY_BELOW = statement("priority_below")
_DUE = statement("claim_due")
_TAKE = statement("claim_take")
_MEND = statement("claim_mend")
_HELD = statement("claim_held")

_SECOND = 1_000_000
_ABOVE_ALL = 2**63 - 1


def claim(request: ClaimRequest, now: datetime | None) -> Operation[list[Claim]]:
    """See `Driver.claim`."""

    def run(transaction: Transaction) -> list[Claim]:
        return _Claiming(transaction, request, transaction.time(now)).run()

    return run


def paused_queues(transaction: Transaction) -> set[str]:
    return {name for (name,) in transaction.execute(_PAUSED)}


def priorities(transaction: Transaction, queue: str) -> Iterator[int]:
    """The priorities in use among the waiting jobs of a queue, highest first."""
    priority = _ABOVE_ALL
    while True:
        (below,) = transaction.execute(_PRIORITY_BELOW, (queue, priority)).fetchone()
        if below is None:
            return
        priority = below
        yield priority


class _Claiming:
    """One claim while it gathers."""

    def __init__(self, transaction: Transaction, request: ClaimRequest, now: int) -> None:
        self._transaction = transaction
        self._request = request
        self._now = now
        self._claims: list[Claim] = []
        self._started: list[str] = []  # jobs whose unique key is free once they have started
        self._size = 0
        self._full = False

    def run(self) -> list[Claim]:
        request = self._request
        held = self._held() if request.again else {}
        paused = paused_queues(self._transaction)
        taken: dict[str, list[int]] = {}
        for queue in request.queues:
            if not self._full and queue.name not in paused:
                room = queue.limit - held.get(queue.name, 0)
                taken.setdefault(queue.name, []).extend(self._take_from(queue.name, room))
        self._write([seq for seqs in taken.values() for seq in seqs])
        # Noted after the last write: an exchange goes on without a claim that failed.
        for queue_name, seqs in taken.items():
            self._transaction.moved(queue_name, PENDING, PROCESSING, len(seqs))
        return self._claims

    def _held(self) -> dict[str, int]:
        """Add what the token holds already, queue by queue; how many of each."""
        rows = self._transaction.rows(_HELD, (self._request.token,))
        held: dict[str, int] = {}
        for queue in self._request.queues:
            own = [row for row in rows if row[3] == queue.name][: queue.limit]
            for row in own:
                if not self._fits(row):
                    break
                self._add(read_job(row[:-1]), row[-1] / _SECOND)
            held[queue.name] = len(own)
        return held

    def _take_from(self, queue: str, room: int) -> list[int]:
        """Add due jobs of a queue, best priority first; their seqs."""
        seqs: list[int] = []
        for priority in priorities(self._transaction, queue):
            wanted = min(room - len(seqs), self._request.limit - len(self._claims))
            if wanted <= 0:
                break
            due = (queue, priority, self._now, wanted)
            for row in self._transaction.each(_DUE, due):
                if not self._fits(row):
                    return seqs
                seqs.append(row[0])
                self._take(row)
        return seqs

    def _take(self, row: JobRow) -> None:
        job, damage = self._usable(row)
        if job.unique is not None and job.unique.until == "started":
            self._started.append(job.id)
        self._add((job, damage), self._request.lease)

    def _fits(self, row: JobRow) -> bool:
        """Whether one more job fits into the answer; once one did not, none does."""
        self._size += len(row[20])
        request = self._request
        full = len(self._claims) >= request.limit or self._size > request.max_bytes
        self._full = self._full or (full and bool(self._claims))
        return not self._full

    def _usable(self, row: JobRow) -> ReadJob:
        """Read a job that is about to be taken; mend counters that cannot be counted up."""
        job, damage = read = read_job(row)
        if damage is not None:
            # The row shows them as counted up already, so what is to be stored is one less.
            mended = (job.attempt - 1, job.stalls, job.serial - 1, row[0])
            self._transaction.execute(_MEND, mended)
        return read

    def _add(self, read: ReadJob, lease: float) -> None:
        job, damage = read
        self._claims.append(
            Claim(
                job=job,
                hold=Hold(job.id, job.serial, self._request.token),
                attempt=job.attempt,
                stalls=job.stalls,
                lease=lease,
                damage=damage,
            )
        )

    def _write(self, seqs: list[int]) -> None:
        if not seqs:
            return  # an empty claim leaves the transaction, and so the log, as it was
        lease = span(self._request.lease)
        self._transaction.execute(
            _TAKE,
            (
                self._request.token,
                self._now + lease,
                lease,
                self._request.worker,
                self._now,
                json_list(seqs),
            ),
        )
        unique.free(self._transaction, self._started)
