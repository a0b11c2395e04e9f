"""The sync twin of a queue: each verb of `Queue`, for threads without an event loop.

It runs the verb on the background loop of the process and waits for its end. What a verb does and
raises is written there, once; nothing is decided here.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from tenure.bulk import Answers
from tenure.call import Call
from tenure.driver import Capability
from tenure.history import PastAttempt
from tenure.intake import Unique
from tenure.presence import WorkerInfo
from tenure.queue import Queue
from tenure.schedules import Schedule
from tenure.standing import Limit, Missed
from tenure.states import State
from tenure.sync.background import BACKGROUND
from tenure.sync.job_handle import SyncJobHandle
from tenure.sync.within import at_once, blocking, on_this_thread
from tenure.types import Answer, Counts, Job, Page

__all__ = ["SyncQueue"]

T = TypeVar("T")


class SyncQueue:
    """The verbs of a `Queue`, blocking. `queue.sync` gives it; any number of threads may share it.

        with tenure.connect("sqlite:///jobs.db").sync as queue:
            job = queue.dispatch("send_email", {"to": "user@example.com"})

    All calls of a process run on one event loop, in a daemon thread that the first one starts.
    It opens on first use, and again on `with`. In a thread that runs an event loop every call
    raises `RuntimeUnavailable`: it would block that loop. So does one made on the background loop
    itself, as in a function given as `progress`, which is called there.

    A call that is interrupted while it waits (Ctrl-C) is cancelled. What it had sent by then may
    have been done all the same; a dispatch with an `id` of your own may simply be made again. After
    a fork the child has a loop and connections of its own. A queue that is not closed is closed
    when the program ends, which that holds up for a second at most.
    """

    __slots__ = ("_queue",)

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def _run(self, begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return BACKGROUND.call(self._queue, begin)

    # --- life cycle -----------------------------------------------------------------------------

    @property
    def capabilities(self) -> frozenset[Capability]:
        """As `Queue.capabilities`."""
        return self._queue.capabilities

    @property
    def closed(self) -> bool:
        """As `Queue.closed`."""
        return self._queue.closed

    def __enter__(self) -> Self:
        self._run(self._queue.__aenter__)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """As `Queue.close`: also for the tasks and threads that use the queue itself."""
        self._run(self._queue.close)

    # --- dispatch -------------------------------------------------------------------------------

    def dispatch(
        self,
        name: str,
        payload: Any = None,
        *,
        queue: str = "default",
        priority: int = 0,
        delay: float | timedelta | None = None,
        at: datetime | None = None,
        max_attempts: int | None = None,
        timeout: float | timedelta | None = None,
        unique: str | Unique | None = None,
        limits: Iterable[str] = (),
        headers: Mapping[str, str] | None = None,
        id: str | None = None,
        within: object | None = None,
    ) -> SyncJobHandle:
        """As `Queue.dispatch`. `within` is a blocking connection, used on the caller's thread."""
        handle = self._on(
            within,
            lambda on: on.dispatch(
                name,
                payload,
                queue=queue,
                priority=priority,
                delay=delay,
                at=at,
                max_attempts=max_attempts,
                timeout=timeout,
                unique=unique,
                limits=limits,
                headers=headers,
                id=id,
                within=within,
            ),
        )
        return SyncJobHandle(handle, self._run)

    def dispatch_many(
        self,
        calls: Iterable[Call],
        *,
        within: object | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Sequence[SyncJobHandle]:
        """As `Queue.dispatch_many`. `within` is a blocking connection, as for `dispatch`."""
        handles = self._on(
            within, lambda on: on.dispatch_many(calls, within=within, progress=progress)
        )
        return [SyncJobHandle(handle, self._run) for handle in handles]

    def run_schedule(self, id: str) -> SyncJobHandle:
        """As `Queue.run_schedule`."""
        return SyncJobHandle(self._run(lambda: self._queue.run_schedule(id)), self._run)

    def _on(self, within: object | None, begin: Callable[[Queue], Coroutine[Any, Any, T]]) -> T:
        """Run a dispatch where it belongs: that in a transaction of the caller's on its thread."""
        if within is None:
            return self._run(lambda: begin(self._queue))
        blocking(within)
        driver = self._run(self._queue.driver)
        return at_once(begin(on_this_thread(self._queue, driver)))

    # --- inspection -----------------------------------------------------------------------------

    def get(self, job_id: str) -> Job[Any]:
        """As `Queue.get`."""
        return self._run(lambda: self._queue.get(job_id))

    def list(
        self,
        *,
        state: State | str | None = None,
        queue: str | None = None,
        name: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Any]:
        """As `Queue.list`."""
        return self._run(
            lambda: self._queue.list(
                state=state, queue=queue, name=name, limit=limit, cursor=cursor
            )
        )

    def history(self, job_id: str) -> Sequence[PastAttempt]:
        """As `Queue.history`."""
        return self._run(lambda: self._queue.history(job_id))

    def counts(self) -> Counts:
        """As `Queue.counts`."""
        return self._run(self._queue.counts)

    def waiting(self, queues: Iterable[str]) -> Mapping[str, float]:
        """As `Queue.waiting`."""
        return self._run(lambda: self._queue.waiting(queues))

    def workers(self) -> Sequence[WorkerInfo]:
        """As `Queue.workers`."""
        return self._run(self._queue.workers)

    # --- control --------------------------------------------------------------------------------

    @overload  # a str is an Iterable[str] too, and the first signature wins
    def cancel(self, job_ids: str) -> Answer: ...  # type: ignore[overload-overlap]
    @overload
    def cancel(self, job_ids: Iterable[str]) -> Sequence[Answer]: ...
    def cancel(self, job_ids: str | Iterable[str]) -> Answer | Sequence[Answer]:
        """As `Queue.cancel`."""
        return self._run(lambda: self._queue.cancel(job_ids))

    @overload  # a str is an Iterable[str] too, and the first signature wins
    def retry(self, job_ids: str) -> Answer: ...  # type: ignore[overload-overlap]
    @overload
    def retry(self, job_ids: Iterable[str]) -> Sequence[Answer]: ...
    def retry(self, job_ids: str | Iterable[str]) -> Answer | Sequence[Answer]:
        """As `Queue.retry`."""
        return self._run(lambda: self._queue.retry(job_ids))

    @overload  # a str is an Iterable[str] too, and the first signature wins
    def delete(self, job_ids: str) -> Answer: ...  # type: ignore[overload-overlap]
    @overload
    def delete(self, job_ids: Iterable[str]) -> Sequence[Answer]: ...
    def delete(self, job_ids: str | Iterable[str]) -> Answer | Sequence[Answer]:
        """As `Queue.delete`."""
        return self._run(lambda: self._queue.delete(job_ids))

    @overload  # a str is an Iterable[str] too, and the first signature wins
    def move(  # type: ignore[overload-overlap]
        self,
        job_ids: str,
        *,
        queue: str | None = None,
        at: datetime | None = None,
        priority: int | None = None,
    ) -> Answer: ...
    @overload
    def move(
        self,
        job_ids: Iterable[str],
        *,
        queue: str | None = None,
        at: datetime | None = None,
        priority: int | None = None,
    ) -> Sequence[Answer]: ...
    def move(
        self,
        job_ids: str | Iterable[str],
        *,
        queue: str | None = None,
        at: datetime | None = None,
        priority: int | None = None,
    ) -> Answer | Sequence[Answer]:
        """As `Queue.move`."""
        return self._run(lambda: self._queue.move(job_ids, queue=queue, at=at, priority=priority))

    def pause(self, queue: str) -> None:
        """As `Queue.pause`."""
        self._run(lambda: self._queue.pause(queue))

    def resume(self, queue: str) -> None:
        """As `Queue.resume`."""
        self._run(lambda: self._queue.resume(queue))

    # --- many jobs ------------------------------------------------------------------------------

    def cancel_all(
        self,
        *,
        state: State | str | None = None,
        queue: str | None = None,
        name: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Answers:
        """As `Queue.cancel_all`."""
        return self._run(
            lambda: self._queue.cancel_all(state=state, queue=queue, name=name, progress=progress)
        )

    def retry_all(
        self,
        *,
        state: State | str = State.FAILED,
        queue: str | None = None,
        name: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Answers:
        """As `Queue.retry_all`."""
        return self._run(
            lambda: self._queue.retry_all(state=state, queue=queue, name=name, progress=progress)
        )

    def delete_all(
        self,
        *,
        state: State | str,
        queue: str | None = None,
        name: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Answers:
        """As `Queue.delete_all`."""
        return self._run(
            lambda: self._queue.delete_all(state=state, queue=queue, name=name, progress=progress)
        )

    def purge(
        self,
        queue: str,
        *,
        state: State | str,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """As `Queue.purge`."""
        return self._run(lambda: self._queue.purge(queue, state=state, progress=progress))

    # --- schedules ------------------------------------------------------------------------------

    def schedule(
        self,
        id: str,
        expression: str,
        name: str,
        payload: Any = None,
        *,
        zone: str = "UTC",
        missed: Missed | str = Missed.SKIP,
        queue: str = "default",
        priority: int = 0,
        max_attempts: int | None = None,
        timeout: float | timedelta | None = None,
        unique: str | Unique | None = None,
        limits: Iterable[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Schedule:
        """As `Queue.schedule`."""
        return self._run(
            lambda: self._queue.schedule(
                id,
                expression,
                name,
                payload,
                zone=zone,
                missed=missed,
                queue=queue,
                priority=priority,
                max_attempts=max_attempts,
                timeout=timeout,
                unique=unique,
                limits=limits,
                headers=headers,
            )
        )

    def schedules(self) -> Sequence[Schedule]:
        """As `Queue.schedules`."""
        return self._run(self._queue.schedules)

    def unschedule(self, id: str) -> bool:
        """As `Queue.unschedule`."""
        return self._run(lambda: self._queue.unschedule(id))

    def pause_schedule(self, id: str) -> None:
        """As `Queue.pause_schedule`."""
        self._run(lambda: self._queue.pause_schedule(id))

    def resume_schedule(self, id: str) -> None:
        """As `Queue.resume_schedule`."""
        self._run(lambda: self._queue.resume_schedule(id))

    # --- limits ---------------------------------------------------------------------------------

    def limit(
        self, key: str, *, per_second: int | None = None, concurrent: int | None = None
    ) -> None:
        """As `Queue.limit`."""
        self._run(lambda: self._queue.limit(key, per_second=per_second, concurrent=concurrent))

    def limits(self) -> Sequence[Limit]:
        """As `Queue.limits`."""
        return self._run(self._queue.limits)

    def remove_limit(self, key: str) -> bool:
        """As `Queue.remove_limit`."""
        return self._run(lambda: self._queue.remove_limit(key))

    def __repr__(self) -> str:
        return f"<SyncQueue of {self._queue!r}>"
