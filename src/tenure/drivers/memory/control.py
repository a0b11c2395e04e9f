"""The memory driver's control: what people and programs do to jobs, and what retention deletes."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from tenure.drivers.memory.job_store import JobStore
from tenure.drivers.memory.records import WAITING, end, matches
from tenure.states import TERMINAL, State
from tenure.types import Answer, Job, JobFilter, ManualRetry, Move, Retention

__all__ = ["Control"]

_ID_KNOWN = timedelta(minutes=1)


class Control(JobStore):
    """The control verbs, each judging one job at a time under the store's lock."""

    # --- control --------------------------------------------------------------------------------

    async def cancel(
        self, job_ids: Sequence[str], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        now = now or self._clock.now()
        with self._lock:
            return [self._cancel(job_id, now) for job_id in job_ids]

    def _cancel(self, job_id: str, now: datetime) -> Answer:
        record = self._records.get(job_id)
        if record is None:
            return Answer.UNKNOWN
        if record.job.state in TERMINAL:
            return Answer.FINISHED
        if record.job.state is State.PROCESSING:
            record.change(now, cancel_requested=True)
            return Answer.REQUESTED
        record.change(now, state=State.CANCELLED, finished_at=now, cancel_requested=False)
        self._keys.free(record.job)
        return Answer.DONE

    async def retry(
        self, items: Sequence[ManualRetry], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        now = now or self._clock.now()
        with self._lock:
            answers = [self._retry(item, now) for item in items]
            self._hints.tell()
            return answers

    def _retry(self, item: ManualRetry, now: datetime) -> Answer:
        record = self._records.get(item.job_id)
        if record is None:
            return Answer.UNKNOWN
        if item.serial is not None and item.serial != record.job.serial:
            return Answer.DONE
        if record.job.state is State.PROCESSING:
            return Answer.RUNNING
        if record.job.state in WAITING:
            return Answer.LIVE
        if record.job.state is State.COMPLETED:
            return Answer.FINISHED
        unique = record.job.unique
        if unique is not None and unique.mode != "throttle":
            if self._keys.holder(unique.key, now) is not None:
                return Answer.HELD
            self._keys.take(record.job.id, unique, now)
        record.change(now, state=State.PENDING, attempt=0, stalls=0, run_at=now, finished_at=None)
        return Answer.DONE

    async def delete(
        self, job_ids: Sequence[str], *, now: datetime | None = None
    ) -> Sequence[Answer]:
        now = now or self._clock.now()
        with self._lock:
            return [self._delete(job_id, now) for job_id in job_ids]

    def _delete(self, job_id: str, now: datetime) -> Answer:
        record = self._records.get(job_id)
        if record is None:
            return Answer.UNKNOWN
        if record.job.state is State.PROCESSING:
            return Answer.RUNNING
        del self._records[job_id]
        self._keys.free(record.job)
        self._gone[job_id] = (record.content, now + _ID_KNOWN)
        return Answer.DONE

    async def move(self, items: Sequence[Move], *, now: datetime | None = None) -> Sequence[Answer]:
        now = now or self._clock.now()
        with self._lock:
            answers = [self._move(item, now) for item in items]
            self._hints.tell()
            return answers

    def _move(self, item: Move, now: datetime) -> Answer:
        record = self._records.get(item.job_id)
        if record is None:
            return Answer.UNKNOWN
        job = record.job
        if item.serial is not None and item.serial != job.serial:
            return Answer.LIVE
        if job.state is State.PROCESSING:
            return Answer.RUNNING
        if job.state in TERMINAL:
            return Answer.FINISHED
        record.change(
            now,
            queue=job.queue if item.queue is None else item.queue,
            run_at=job.run_at if item.at is None else item.at,
            priority=job.priority if item.priority is None else item.priority,
        )
        return Answer.DONE

    async def purge(self, which: JobFilter, limit: int, *, now: datetime | None = None) -> int:
        now = now or self._clock.now()
        with self._lock:
            doomed = [
                record.job.id
                for record in self._records.values()
                if matches(record.job, which) and record.job.state is not State.PROCESSING
            ][:limit]
            for job_id in doomed:
                self._delete(job_id, now)
            return len(doomed)

    async def pause(self, queue: str, paused: bool) -> None:
        with self._lock:
            if paused:
                self._paused.add(queue)
            else:
                self._paused.discard(queue)
                self._hints.tell()

    async def prune(self, retention: Retention, limit: int, *, now: datetime | None = None) -> int:
        now = now or self._clock.now()
        with self._lock:
            self._gone = {key: entry for key, entry in self._gone.items() if entry[1] > now}
            self._keys.forget(now)
            self._limits.forget(now)
            doomed = [job.id for job in self._beyond(retention, now)][::-1][:limit]
            for job_id in doomed:
                self._delete(job_id, now)
            return len(doomed)

    def _beyond(self, retention: Retention, now: datetime) -> Iterable[Job[bytes]]:
        """The finished jobs that the retention no longer keeps, newest end first."""
        ages = {
            State.COMPLETED: retention.completed,
            State.FAILED: retention.failed,
            State.CANCELLED: retention.cancelled,
        }
        newer: dict[str, int] = {}  # how many of its queue, itself included, and of how many bytes
        newer_bytes: dict[str, int] = {}
        ended = [r for r in self._records.values() if r.job.state in TERMINAL]
        for record in sorted(ended, key=lambda r: (end(r.job), r.arrival), reverse=True):
            job = record.job
            age = ages[job.state]
            beyond = age is not None and now - end(job) > timedelta(seconds=age)
            if job.state is State.COMPLETED:
                newer[job.queue] = newer.get(job.queue, 0) + 1
                newer_bytes[job.queue] = newer_bytes.get(job.queue, 0) + _size(job)
                beyond = (
                    beyond
                    or _passed(retention.completed_count, newer[job.queue])
                    or _passed(retention.completed_bytes, newer_bytes[job.queue])
                )
            if beyond and now - end(job) >= _ID_KNOWN:
                yield job


def _passed(bound: int | None, number: int) -> bool:
    return bound is not None and number > bound


def _size(job: Job[bytes]) -> int:
    return len(job.payload) + len(job.result or b"")
