"""An attempt in a process: wait for a free one, give the order, return or raise what it answers.

When an attempt is cancelled its process is killed. It must never write to the store.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, assert_never

from tenure._runtime.ending import Ending, Endings
from tenure._runtime.failures import failure_of
from tenure._runtime.pool.place import Ask, Place, Spoken
from tenure._runtime.pool.pool import NoProcess, Pool
from tenure._runtime.pool.standin import stand_in
from tenure._runtime.pool.terms import (
    Answer,
    Died,
    Logged,
    NotBegun,
    Order,
    Postponed,
    Raised,
    Returned,
    Said,
    Unstorable,
)
from tenure._runtime.running_job import RunningJob
from tenure._runtime.settings import WorkerSettings
from tenure._runtime.slots import Attempt, Elsewhere
from tenure.clock import Clock
from tenure.codec import decode, opened
from tenure.errors import QueueError, SerializationError
from tenure.outcomes import Failure
from tenure.process_pool import ProcessDied, ProcessPool
from tenure.verdicts import Cancel, Retry, Snooze

__all__ = ["ProcessCalls"]

_TRIES = 3  # processes that may die of an order, such as one whose payload is too much for them


class ProcessCalls:
    """Runs attempts in the processes of one worker.

    `progress` says whether the store can keep any; `aborting` whether a cancellation is the end of
    the worker, so that nothing is waited for.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        handlers: Iterable[str],
        clock: Clock,
        report: Callable[[QueueError], None],
        *,
        progress: bool,
        aborting: Callable[[], bool],
    ) -> None:
        options = settings.process_pool or ProcessPool()
        self._pool = Pool(options, handlers, settings.concurrency, settings.prelude, clock, report)
        self._settings = settings
        self._clock = clock
        self._progress = progress
        self._aborting = aborting
        self._taken: dict[Attempt, Place] = {}  # and not yet asked

    def start(self) -> None:
        """Start the processes."""
        self._pool.start()

    @property
    def healthy(self) -> bool:
        """Whether there are processes, or it is not known yet that there can be none."""
        return not self._pool.broken

    def close(self) -> "asyncio.Future[None]":
        """Kill what runs; the future is done when no process is left."""
        return self._pool.close()

    @asynccontextmanager
    async def place(self, attempt: Attempt, endings: Endings) -> AsyncGenerator[Ending | None]:
        """Wait for a free process, without a deadline; within, it is there for the attempt.

        Gives the ending instead where none can be started.
        """
        attempt.wait()
        try:
            self._taken[attempt] = await self._pool.take()
        except NoProcess as error:
            yield endings.without_process(attempt, str(error))
            return
        try:
            yield None
        finally:
            unused = self._taken.pop(attempt, None)
            if unused is not None:
                self._pool.give_back(unused)

    async def call(self, attempt: Attempt, job: Callable[[], RunningJob]) -> Any:
        """Call the handler: return what it returned, raise what stands for what it raised."""
        order, spoken = self._order(attempt), _spoken(job)
        for _ in range(_TRIES):
            # Another one where a middleware calls twice, or where its process had died before.
            place = self._taken.pop(attempt, None) or await self._another()
            answer = await self._ask(place, order, spoken)
            if not isinstance(answer, NotBegun):
                return self._result(attempt, answer)
        return self._result(attempt, Died("each time before the handler was called"))

    async def _another(self) -> Place:
        try:
            return await self._pool.take()
        except NoProcess as error:
            raise ProcessDied(f"no other could be started: {error}") from None

    def _order(self, attempt: Attempt) -> Order:
        claim = attempt.claim
        job = claim.job
        assert attempt.spec.process is not None
        return Order(
            handler=attempt.spec.process,
            wants_job=attempt.spec.wants_job or attempt.spec.binding is not None,
            payload=opened(job.payload, self._settings.codec),
            id=job.id,
            name=job.name,
            queue=job.queue,
            attempt=claim.attempt,
            headers=dict(job.headers),
            fence=claim.hold.serial,
            result_limit=self._settings.result_limit,
            progress=self._progress,
        )

    async def _ask(self, place: Place, order: Order, spoken: Spoken) -> Answer | Died | NotBegun:
        """What the process answers. Cancelled, it is killed; what it did before that counts."""
        future: asyncio.Future[Answer | Died | NotBegun]
        future = asyncio.get_running_loop().create_future()
        place.ask(Ask(order, spoken, future))
        killed = False
        while not future.done():
            try:
                await asyncio.shield(future)
            except asyncio.CancelledError:
                if not future.done():
                    place.kill()
                    killed = True
                    if self._aborting():
                        raise
        answer = future.result()
        if killed and isinstance(answer, Died | NotBegun):
            raise asyncio.CancelledError
        return answer

    def _result(self, attempt: Attempt, answer: Answer | Died) -> Any:
        match answer:
            case Returned(result=result):
                return None if result is None else decode(result)
            case Postponed(delay=delay):
                return Snooze(delay)
            case Raised(cancel=str() as reason):
                raise Cancel(reason)
            case Raised(failure=failure):
                error = stand_in(answer.classes, answer.text)
                if answer.asked:
                    error = Retry(answer.text, after=answer.after)
            case Unstorable(message=message, path=path):
                told = f"the result cannot be stored: {message}"
                error = SerializationError(told, path=path)
                failure = self._failure(attempt, error, "serialization")
            case Died(how=how):
                error = ProcessDied(how)
                failure = self._failure(attempt, error, "panic")
            case _:
                assert_never(answer)
        attempt.elsewhere = Elsewhere(error, failure)
        raise error

    def _failure(self, attempt: Attempt, error: BaseException, kind: str) -> Failure:
        now = self._clock.now()
        return failure_of(error, kind=kind, attempt=attempt.claim.attempt, at=now)


def _spoken(job: Callable[[], RunningJob]) -> Spoken:
    """Where that goes what the handler says of its job, from the thread of its place."""

    def spoken(report: Said | Logged) -> None:
        match report:
            case Said(fraction=fraction, note=note):
                job().set_progress(fraction, note)
            case Logged(text=text):
                job().log(text)

    return spoken
