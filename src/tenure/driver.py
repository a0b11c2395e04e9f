"""The contract between the worker and a store: the waist that everything else goes through.

A driver takes batches and gives one positional answer for each item. Disagreement about one item
is an answer; an exception means that the whole call did nothing, or, as
`StoreUnavailable(ambiguous=True)`, that it is not known. Every call may then be repeated with the
same ids and tokens (I14).

Time-dependent calls take `now=None`, which means the store's own clock; only tests pass an instant.
Delays are counted from that now. Correctness depends on leases alone: there is no leader, no
registration, and hints (`wait`) may lie. A driver holds no policy.

The operations on the path of a job are here, those that people and upkeep ask for in `beside.py`. A
usable driver implements `open`, `close`, `enqueue`, `claim`, `record` and `counts`; everything
else has a default here. What a driver can do beyond that is listed in `capabilities`, known before
any call. `tenure.testing.conformance` proves a driver.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Protocol

from tenure.beside import Beside
from tenure.errors import QueueError, Unsupported
from tenure.outcomes import Outcome
from tenure.types import (
    Claim,
    ClaimRequest,
    Counts,
    Enqueued,
    Exchanged,
    Expired,
    Held,
    Hold,
    Kept,
    NewJob,
    Recorded,
)

__all__ = ["Capability", "Driver", "KeeperHandle", "RecordItem"]

RecordItem = tuple[Hold, Outcome]


class Capability(StrEnum):
    """What a driver can do beyond the six required operations."""

    # NewJob.delay and .at, Move.at, and the delays of outcomes; without it these are due at once
    DELAY = "delay"
    RELEASE = "release"  # Released gives the job back; without it a job is left to its lease
    EXTEND = "extend"  # extend()
    RECLAIM = "reclaim"  # expired() and reclaim()
    EXCHANGE = "exchange"  # exchange() is one round trip
    NAMES = "names"  # ClaimRequest.names
    NEXT_DUE = "next_due"  # next_due()
    OLDEST_DUE = "oldest_due"  # oldest_due()
    WAIT = "wait"  # wait() returns early
    KEEPER = "keeper"  # keeper_handle() works while the event loop is blocked
    PROGRESS = "progress"  # progress()
    INSPECT = "inspect"  # get(), list()
    CONTROL = "control"  # cancel(), retry(), delete(), move(), purge(), pause()
    PRUNE = "prune"  # prune()
    PRESENCE = "presence"  # report(), workers()
    LIFELINE = "lifeline"  # lifeline(), shorten()
    UNIQUE = "unique"  # NewJob.unique
    LIMITS = "limits"  # NewJob.limits; put_limit(), drop_limit(), limits()
    HISTORY = "history"  # history()
    SCHEDULES = "schedules"  # the schedules' operations, fire()
    RESTORE = "restore"  # dump(), restore(); with SCHEDULES restore_schedules()
    WITHIN = "within"  # enqueue_within(), record_within()
    SHARED = "shared"  # one opened instance serves several event loops and threads at once


class KeeperHandle(Protocol):
    """What the keeper's thread uses: blocking calls, from that one thread."""

    def extend(self, holds: Sequence[Hold], lease: float) -> Sequence[Kept]:
        """As `Driver.extend`, blocking."""
        ...

    def close(self) -> None:
        """Give up what the handle holds; legal twice."""
        ...


class Driver(Beside, ABC):
    """One store, as the runtime and the front see it.

    An instance is used from the event loop that opened it, unless it has `Capability.SHARED`. Every
    operation may raise `StoreUnavailable` or another `StoreError`.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    overlap: ClassVar[int] = 0
    """From how many outcomes on a second write, beside one in flight, makes both end sooner.

    A worker then writes while it runs what the write before has brought. 0: never.
    """

    # --- life cycle -----------------------------------------------------------------------------

    @abstractmethod
    async def open(self) -> None:
        """Connect, and create the schema where there is none. Legal when already open.

        Raises `SchemaMismatch` for a schema this code does not work with.
        """

    @abstractmethod
    async def close(self) -> None:
        """Give up every connection and thread. Legal twice, and before `open`."""

    async def check(self) -> None:
        """Ask the opened store whether it answers, and has a schema that this code works with.

        Changes nothing, and is asked every second or so. Raises as `open` does.
        """
        await self.counts()

    # --- the job store --------------------------------------------------------------------------

    @abstractmethod
    async def enqueue(
        self, jobs: Sequence[NewJob], *, now: datetime | None = None
    ) -> Sequence[Enqueued | Held]:
        """Store the jobs, all or none: with one `DUPLICATE` among the answers nothing was changed.

        An id with the same content (`content_digest`) that is stored, or was deleted less than a
        minute ago, answers `CREATED` and changes nothing. Arrival order is the order of the batch.
        No id comes twice in a batch. Beside a `DUPLICATE` the other answers say what each job alone
        would have got.

        A job whose unique key another one holds is not stored: the answer is `Held`, after what its
        mode does to the holder (`UniqueKey`); the rest of the batch is stored. One by one, so a key
        may be held by a job of the same batch. A known id comes first: it answers `CREATED` or
        `DUPLICATE` whoever holds its key. A key is free in the moment in which its holder ends or
        is deleted, whoever does that (I8), or, as asked for, is first claimed; from the last
        instant of its period on; and when its throttle's period is over. A reclaim keeps it.
        """

    @abstractmethod
    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        """Take due jobs of unpaused queues for one attempt each.

        Queue by queue as requested; within a queue by priority (higher first), due time, arrival
        (I11). Each taken job becomes processing, its serial and attempt grow by one, its hold
        carries the request's token, and its lease ends `request.lease` seconds from now (I2, I6).
        An empty claim writes nothing. With `request.again`, current holds of the token come before
        any new job, also those of a paused queue; their leases go on as they were.

        A job is passed over while one of the keys in its `limits` is full: as many current holds
        name the key as its `Limit` allows at once, or as many claims as it allows in a second were
        made less than a second ago. Holds and claims of a key are counted over all workers and
        queues, and one claim never takes more than is left. What ends a hold (record, reclaim)
        gives its place back. Jobs that are passed over, however many, cost the claims of others
        nothing that grows with their number, and jobs without limits touch no data of limits.
        Freed places go to the waiting jobs of a key in the order of claims.
        """

    @abstractmethod
    async def record(
        self, items: Sequence[RecordItem], *, now: datetime | None = None
    ) -> Sequence[Recorded]:
        """Settle holds: apply each outcome where its hold is current, whether or not it expired.

        What an outcome makes of a job is `outcomes.settle`. The last settled hold of a job is kept
        apart from the current one, so that the same hold with the same outcome answers `REPEATED`
        until a later hold is settled. No job comes twice in a batch. A failure's text is stored as
        the job's `error`; a completion clears it.
        """

    @abstractmethod
    async def counts(self, *, now: datetime | None = None) -> Counts:
        """Count the jobs by state and queue; bounded work whatever is stored."""

    async def exchange(
        self, items: Sequence[RecordItem], request: ClaimRequest, *, now: datetime | None = None
    ) -> Exchanged:
        """Record, then claim. When only the claim half fails, its error comes with the answers."""
        recorded = tuple(await self.record(items, now=now))
        try:
            claims = await self.claim(request, now=now)
        except QueueError as error:
            return Exchanged(recorded=recorded, claims=(), error=error)
        return Exchanged(recorded=recorded, claims=tuple(claims))

    async def enqueue_within(
        self, jobs: Sequence[NewJob], connection: object
    ) -> Sequence[Enqueued | Held]:
        """As `enqueue`, in the transaction that the caller has open on a connection of its own.

        The jobs are stored when it commits, and are gone when it rolls back; waiting workers are
        woken by the commit. Never commits, rolls back or closes what is the caller's, and leaves
        its transaction usable whatever happens. With a blocking connection it never suspends, and
        may be called on any thread. Raises `InvalidConfiguration` for a connection that is of
        another kind, leads elsewhere, or is in no transaction.
        """
        raise Unsupported("within")

    async def record_within(
        self, items: Sequence[RecordItem], connection: object
    ) -> Sequence[Recorded]:
        """As `record`, in the caller's transaction; see `enqueue_within`."""
        raise Unsupported("within")

    async def extend(
        self, holds: Sequence[Hold], lease: float, *, now: datetime | None = None
    ) -> Sequence[Kept]:
        """Let each current hold end `lease` seconds from now, also one that had expired.

        The end may move backwards. `LOST`: the hold is not current, nothing changed.
        `CANCEL_REQUESTED`: extended, and the job was asked to cancel.
        """
        raise Unsupported("extend")

    async def expired(self, limit: int, *, now: datetime | None = None) -> Expired:
        """Look for current holds whose lease has run out, longest ago first. Changes nothing.

        A lease has run out from its last instant on. After these come holds that end later than
        their whole lease from now, since the clock was set back: told apart by an end after `now`.

        `steady` tells a worker that starts of a clock that was set, where the store knows of it.
        """
        raise Unsupported("expired")

    async def reclaim(
        self,
        limit: int,
        delays: Sequence[float],
        *,
        only: Sequence[Hold] | None = None,
        now: datetime | None = None,
    ) -> Sequence[Hold]:
        """Make jobs whose lease has run out pending again; return the holds that this ended.

        Their serial and stalls grow by one, their attempt stays; due `delays[stalls before]`
        seconds from now, the last entry for all later ones. Longest ago first. `only` restricts to
        those holds, which are still checked for being current and for being such as `expired`
        shows; without it none is ended of which only a clock that was set back shows the end.
        """
        raise Unsupported("reclaim")

    async def next_due(
        self, queues: Sequence[str], *, now: datetime | None = None
    ) -> datetime | None:
        """The earliest instant after now at which a claim of these queues could succeed, or None.

        Considers waiting jobs of unpaused queues that are due later than now, and those that wait
        for nothing but the rate of a key. It may be too early, and may leave out a job behind a due
        one of the same queue, priority and limits, which is claimed, or held back, before it.
        """
        raise Unsupported("next_due")

    async def progress(self, hold: Hold, value: bytes, *, now: datetime | None = None) -> Recorded:
        """Store the progress of a running attempt, where its hold is current, expired or not."""
        raise Unsupported("progress")

    # --- hints ----------------------------------------------------------------------------------

    async def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Wait until something may have become claimable since this call began, or `timeout` s.

        True for a hint, False for the timeout. Hints may lie. The call may be cancelled. The
        default cannot hint; callers check `Capability.WAIT` and keep time themselves.
        """
        raise Unsupported("wait")

    def keeper_handle(self) -> KeeperHandle:
        """What the keeper's thread extends leases through while the event loop is blocked."""
        raise Unsupported("keeper_handle")
