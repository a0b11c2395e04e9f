"""The operation that takes due jobs, in the order of claims (I11)."""

from collections.abc import Iterator
from datetime import datetime

from tenure.drivers.sqlite import unique
from tenure.drivers.sqlite.encoding import PENDING, PROCESSING, json_list, moment, span
from tenure.drivers.sqlite.lanes import Lanes
from tenure.drivers.sqlite.limit_keys import WINDOW
from tenure.drivers.sqlite.rows import JobRow, ReadJob, read_due, read_job
from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Operation, Transaction
from tenure.types import Claim, ClaimRequest, Hold, Job

__all__ = ["claim", "paused_queues", "priorities"]

_NEWS = statement("claim_news")
_PAUSED = statement("queues_paused")
_PRIORITY_BELOW = statement("priority_below")
_DUE = statement("claim_due")
_WHOLE = statement("claim_whole")
_TAKE = statement("claim_take")
_MEND = statement("claim_mend")
_HELD = statement("claim_held")

_SECOND = 1_000_000
_ABOVE_ALL = 2**63 - 1

# How many jobs one claim looks at that a limit then holds, and how many keys whose rate is over:
# each is looked at once, but very many may come due at one instant.
_LOOKS = 4000
_PAYLOAD, _MORE, _LIMITED = 10, 11, 2  # places in a row of claim_due, and what the last may say
_HELD_PAYLOAD = 20  # place in a job row


def claim(request: ClaimRequest, now: datetime | None) -> Operation[list[Claim]]:
    """See `Driver.claim`."""

    def run(transaction: Transaction) -> list[Claim]:
        claiming = _Claiming(transaction, request, transaction.time(now))
        try:
            claims = claiming.run()
        except BaseException:
            claiming.undo()
            raise
        claiming.finish()
        return claims

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
    """One claim while it gathers.

    Jobs without limits are taken by one statement at the end. A job with limits is taken, or its
    lane parked, as soon as it is met; what was gathered before is taken first, and the order of
    claims then begins with what follows, whatever that brought forward. A claim that fails has
    taken nothing: one statement does all or nothing, and before more than that a savepoint is set.
    """

    def __init__(self, transaction: Transaction, request: ClaimRequest, now: int) -> None:
        self._transaction = transaction
        self._request = request
        self._now = now
        self._instant = moment(now)
        self._claims: list[Claim] = []
        self._taken: dict[str, int] = {}  # how many jobs of each queue
        self._seqs: list[int] = []  # of jobs that are yet to be taken in the table
        self._started: list[str] = []  # jobs whose unique key is free once they have started
        self._saved = False
        self._lanes: Lanes | None = None
        self._looks = 0
        self._most = 0  # claims in all, after the queue at hand
        self._size = 0
        self._full = False  # nothing more fits
        self._stopped = False  # there may have been more to take

    def run(self) -> list[Claim]:
        request = self._request
        held = self._held() if request.again else {}
        paused = self._news()
        for queue in request.queues:
            if not self._full and queue.name not in paused:
                before = len(self._claims)
                self._most = before + queue.limit - held.get(queue.name, 0)
                self._take_from(queue.name)
                taken = self._taken.get(queue.name, 0)
                self._taken[queue.name] = taken + len(self._claims) - before
        if self._started:
            self._save()
        self._write()
        unique.free(self._transaction, self._started)
        if self._lanes is not None:
            self._lanes.finish()
        return self._claims

    def finish(self) -> None:
        """Note what was done, after the last write: an exchange goes on without a failed claim."""
        for queue, count in self._taken.items():
            self._transaction.moved(queue, PENDING, PROCESSING, count)
        if self._saved:
            self._transaction.execute("RELEASE tenure_claim")
        if self._lanes is not None:
            # Others may take what this claim has brought forward and left, or did not look at.
            self._transaction.wakes |= self._lanes.exposed and self._stopped
            self._transaction.wakes |= self._looks >= _LOOKS

    def undo(self) -> None:
        """Take back what a claim that failed has written."""
        if self._saved and self._transaction.alive:
            self._transaction.execute("ROLLBACK TO tenure_claim")
            self._transaction.execute("RELEASE tenure_claim")

    def _held(self) -> dict[str, int]:
        """Add what the token holds already, queue by queue; how many of each."""
        rows = self._transaction.rows(_HELD, (self._request.token,))
        held: dict[str, int] = {}
        for queue in self._request.queues:
            own = [row for row in rows if row[3] == queue.name][: queue.limit]
            for row in own:
                if not self._fits(len(row[_HELD_PAYLOAD])):
                    break
                job, damage = read_job(row[:-1])
                self._add(job, row[-1] / _SECOND, damage)
            held[queue.name] = len(own)
        return held

    def _news(self) -> set[str]:
        """The paused queues; lets those lanes come forward that waited for a rate to be over."""
        latest = self._now + 2 * WINDOW
        rows = self._transaction.rows(_NEWS, (self._now, latest, _LOOKS))
        freed = [key for key, is_key in rows if is_key]
        if freed:
            self._limited().freed(freed)
        return {name for name, is_key in rows if not is_key}

    def _save(self) -> None:
        if not self._saved:
            self._transaction.execute("SAVEPOINT tenure_claim")
            self._saved = True

    def _limited(self) -> Lanes:
        if self._lanes is None:
            self._save()
            self._lanes = Lanes(self._transaction, self._now)
        return self._lanes

    def _take_from(self, queue: str) -> None:
        """Add due jobs of a queue, best priority first, while there is room."""
        while (limited := self._take_plain(queue)) is not None:
            lanes = self._limited()
            self._write()
            self._judge(limited, lanes)
        self._stopped = self._stopped or self._full or self._wanted() <= 0

    def _take_plain(self, queue: str) -> int | None:
        """Add jobs up to the first one with limits, and give that; None when there is no more."""
        if self._full:
            return None
        for priority in priorities(self._transaction, queue):
            wanted = self._wanted()
            if wanted <= 0:
                return None
            for row in self._transaction.each(_DUE, (queue, priority, self._now, wanted)):
                if row[_MORE] == _LIMITED:
                    return int(row[0])
                if not self._fits(len(row[_PAYLOAD])):
                    return None
                job = read_due(row, queue, priority, self._instant)
                if job is None:
                    self._take(self._whole(row[0]))
                else:
                    self._seqs.append(row[0])
                    self._add(job, self._request.lease)
        return None

    def _whole(self, seq: int) -> JobRow:
        return self._transaction.rows(_WHOLE, (seq, self._now))[0]

    def _wanted(self) -> int:
        return min(self._most, self._request.limit) - len(self._claims)

    def _judge(self, seq: int, lanes: Lanes) -> None:
        """Take a job with limits, or park its lane where a key is full."""
        row = self._whole(seq)
        limits = read_job(row)[0].limits
        full = lanes.keys.full(limits)
        if full is not None:
            lanes.refuse(seq, full)
            self._looks += 1
            self._full = self._full or self._looks >= _LOOKS
        elif self._fits(len(row[_HELD_PAYLOAD])):
            self._take(row)
            self._write()
            lanes.taken(seq, limits)

    def _take(self, row: JobRow) -> None:
        """Take one of which more than the usual was read."""
        job, damage = self._usable(row)
        if job.unique is not None and job.unique.until == "started":
            self._started.append(job.id)
        self._seqs.append(row[0])
        self._add(job, self._request.lease, damage)

    def _fits(self, size: int) -> bool:
        """Whether one more job fits into the answer; once one did not, none does."""
        self._size += size
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

    def _add(self, job: Job[bytes], lease: float, damage: str | None = None) -> None:
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

    def _write(self) -> None:
        """Take the gathered jobs. An empty claim leaves the transaction, and so the log, as is."""
        if not self._seqs:
            return
        lease = span(self._request.lease)
        self._transaction.execute(
            _TAKE,
            (
                self._request.token,
                self._now + lease,
                lease,
                self._request.worker,
                self._now,
                json_list(self._seqs),
            ),
        )
        self._seqs.clear()
