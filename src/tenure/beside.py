"""The part of the contract beside the path of a job: what people and upkeep ask of a store.

Control, inspection, limits, schedules, presence, lifelines, moving. Every operation is optional,
raises `Unsupported` where a driver has none, and has a capability in `driver.py`, where the rules
for all of them are.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from tenure.errors import Unsupported
from tenure.history import PastAttempt
from tenure.moved import Dump, Restored, StoredJob
from tenure.presence import WorkerInfo
from tenure.standing import Fired, Limit, NewSchedule, ScheduleRecord, Schedules, Tick
from tenure.types import Answer, Held, Job, JobFilter, ManualRetry, Move, Page, Retention

__all__ = ["Beside", "Lifeline"]


class Lifeline(Protocol):
    """By what a store sees that the process of a worker has ended. Used on one event loop.

    It is cut when the process ends, however it ends, and by nothing else: neither a blocked event
    loop nor a stopped process nor a child that was forked, whether that lives on or ends. A child
    has no part in the lifelines of its parent.
    """

    async def close(self) -> None:
        """Give it up: the worker has none any more, and its leases run as they are. Legal twice."""
        ...

    async def cut(self) -> None:
        """Let go of it as the end of the process does, and return when the store can see it.

        For tests, which cannot end.
        """
        ...


class Beside:
    """What a store can do beside taking jobs in and giving them out."""

    # --- control --------------------------------------------------------------------------------

    async def cancel(
        self, job_ids: Sequence[str], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        """Cancel waiting jobs at once (`DONE`); store the wish for processing ones (`REQUESTED`).

        Also `FINISHED` (it had ended, changed nothing), `UNKNOWN`. Leaves nothing behind for an
        unknown id. A wish outlives a reclaim; it is fulfilled, and gone, when the job has ended.
        """
        raise Unsupported("cancel")

    async def retry(
        self, items: Sequence[ManualRetry], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        """Make failed and cancelled jobs due now, with attempt and stalls at 0 (`DONE`).

        Serial, error and settled hold stay. Also `FINISHED` (completed), `RUNNING`, `LIVE` (waits
        already), `UNKNOWN`, `HELD` (another job holds its unique key by now). The job holds its key
        anew, as if dispatched now; a throttle is not asked for its key. An item whose serial is no
        longer the job's answers `DONE` without any change: someone has retried it since.
        """
        raise Unsupported("retry")

    async def delete(
        self, job_ids: Sequence[str], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        """Delete jobs that are not processing (`DONE`); `RUNNING`, `UNKNOWN`.

        The id stays known for a minute, so that a repeated dispatch does not bring the job back.
        """
        raise Unsupported("delete")

    async def move(self, items: Sequence[Move], *, now: datetime | None = None) -> Sequence[Answer]:
        """Change queue, due time or priority of waiting jobs (`DONE`).

        Also `UNKNOWN`; `LIVE` where the given serial is no longer the job's, whatever it does now;
        then `RUNNING`, `FINISHED`.
        """
        raise Unsupported("move")

    async def purge(self, which: JobFilter, limit: int, *, now: datetime | None = None) -> int:
        """Delete up to `limit` jobs that match and are not processing; return how many."""
        raise Unsupported("purge")

    async def pause(self, queue: str, paused: bool) -> None:
        """Stop or resume claims of a queue, for every worker, from the next claim on."""
        raise Unsupported("pause")

    async def prune(self, retention: Retention, limit: int, *, now: datetime | None = None) -> int:
        """Delete up to `limit` finished jobs beyond their retention; return how many.

        Also drops the traces of deleted ids that are older than a minute. A job that ended less
        than a minute ago is never pruned. Called every second: what the completed jobs of a queue
        are, in number and bytes, is to be known without a look at each of them. Of jobs that ended
        at the same instant the later arrival is the newer.
        """
        raise Unsupported("prune")

    # --- inspection -----------------------------------------------------------------------------

    async def get(self, job_id: str) -> Job[bytes] | None:
        """The job, or None."""
        raise Unsupported("get")

    async def list(self, which: JobFilter, cursor: str | None, limit: int) -> Page[bytes]:
        """Up to `limit` matching jobs, newest arrival first, after `cursor`.

        Each call examines a bounded number of records: a page may be short, even empty, while its
        cursor is not None. Raises `InvalidConfiguration` for a cursor that this store did not make.
        """
        raise Unsupported("list")

    async def history(self, job_id: str) -> Sequence[PastAttempt]:
        """The attempts that did not complete the job, oldest first; the newest 100 are kept.

        Written by `record` (see `history.tried`) and `reclaim`; gone with the job. Empty for an
        unknown one.
        """
        raise Unsupported("history")

    async def oldest_due(
        self, queues: Sequence[str], *, now: datetime | None = None
    ) -> Sequence[datetime | None]:
        """For each queue, since when the longest waiting of its due jobs has been due; else None.

        Of all that are due, also where the queue is paused or a limit holds them. Asked every few
        seconds by every program that shows it: a bounded number of looks, whatever is stored.
        """
        raise Unsupported("oldest_due")

    # --- limits ---------------------------------------------------------------------------------

    async def put_limit(self, limit: Limit) -> None:
        """Store a limit, in the place of one with the same key; all claims from now on keep to it.

        Jobs that wait for a key that has room now can be claimed at once. Holds beyond it go on.
        """
        raise Unsupported("limits")

    async def drop_limit(self, key: str) -> bool:
        """Remove a limit; whether there was one."""
        raise Unsupported("limits")

    async def limits(self) -> Sequence[Limit]:
        """The limits, by key."""
        raise Unsupported("limits")

    # --- schedules ------------------------------------------------------------------------------

    async def put_schedules(
        self, schedules: Sequence[NewSchedule], *, now: datetime | None = None
    ) -> None:
        """Store schedules by id. One with the same definition stays as it is, ticks and all.

        With another definition it gets the new revision, and its ticks are those after now, so that
        none of the old ones fires any more; a paused one stays paused.
        """
        raise Unsupported("schedules")

    async def drop_schedules(self, ids: Sequence[str]) -> Sequence[bool]:
        """Remove schedules; for each whether it was there. Jobs of past ticks stay."""
        raise Unsupported("schedules")

    async def pause_schedule(self, id: str, paused: bool, *, now: datetime | None = None) -> bool:
        """Let no tick fire, or let those after now fire again; False for an unknown schedule.

        Resuming one that is not paused changes nothing.
        """
        raise Unsupported("schedules")

    async def schedules(self, *, now: datetime | None = None) -> Schedules:
        """All schedules, by id."""
        raise Unsupported("schedules")

    async def fire(self, ticks: Sequence[Tick], *, now: datetime | None = None) -> Sequence[Fired]:
        """Let instants of schedules pass: compare-and-set of the last tick, and enqueue, in one.

        One by one in the order given, so a schedule may come several times. Whoever is first fires
        an instant; it is never fired again, whatever becomes of its job (I13). The job is enqueued
        as by `enqueue`: one that is known already, or whose unique key is held, lets the instant
        pass all the same.
        """
        raise Unsupported("schedules")

    # --- presence -------------------------------------------------------------------------------

    async def report(self, worker: WorkerInfo, ttl: float) -> None:
        """Show a worker for `ttl` seconds, 0: no more; a newer report of its id replaces it."""
        raise Unsupported("report")

    async def workers(self) -> Sequence[WorkerInfo]:
        """The workers whose report has not run out, by id. Display only."""
        raise Unsupported("workers")

    # --- lifelines ------------------------------------------------------------------------------

    async def lifeline(self, worker: str) -> Lifeline | None:
        """Let the store see when this process has ended; for a worker that has not claimed yet.

        `worker` is its id, of which there is no other. None where that cannot be had on this store;
        what keeps it from being had is the driver's to log.
        """
        raise Unsupported("lifeline")

    async def shorten(self, *, now: datetime | None = None) -> float | None:
        """Let the leases of workers whose lifeline is cut end soon: at once where nothing can bring
        such a worker back, else in a few seconds, in which it may extend them first.

        No lease ends later than it did. Nothing else about a hold is changed: it stays current
        until it is reclaimed. A worker that has no lifeline, or gave it up, or of which it cannot
        be known, is never taken for gone, nor is one that lives (I6).

        Returns in how many seconds the first lease of such a worker runs out, 0 where one has, and
        None where no current hold is such a worker's. Every worker asks every second or two, so
        that it has to cost next to nothing while nobody is gone.
        """
        raise Unsupported("shorten")

    # --- moving ---------------------------------------------------------------------------------

    async def dump(self, cursor: str | None, limit: int, *, now: datetime | None = None) -> Dump:
        """Up to `limit` whole jobs in the order of arrival, after `cursor`. Changes nothing.

        A page has at most `moved.DUMP_BYTES` of payload and result, but at least one job. From
        the first page on, each job that was stored then, and still is when its page comes, comes
        once, as it is at that moment; those that arrive later may be left out. Raises
        `InvalidConfiguration` for a cursor that this store did not make.
        """
        raise Unsupported("dump")

    async def restore(
        self, jobs: Sequence[StoredJob], *, now: datetime | None = None
    ) -> Sequence[Restored | Held]:
        """Store whole jobs, all or none: with one `DUPLICATE` or `Held` nothing was changed.

        Each is stored as `moved.at_rest` makes it, with all its fields as they are given, times
        too; none is held. Their arrival is now, in the order of the batch. Ids are judged as by
        `enqueue`. A job that holds its unique key takes it, unless that is over; `Held` names
        the other job that has it, which may be of the same batch. Beside such an answer the
        others say what each job alone would have got. No id comes twice in a batch.
        """
        raise Unsupported("restore")

    async def restore_schedules(self, schedules: Sequence[ScheduleRecord]) -> Sequence[Restored]:
        """Store schedules as they stand, all or none: with one `DUPLICATE` nothing was changed.

        One whose id is stored with the same definition is `KNOWN`, and keeps its own revision and
        ticks; with another definition it is `DUPLICATE`. No id comes twice.
        """
        raise Unsupported("restore")
