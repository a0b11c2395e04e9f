"""W11, W12: what happens at a deadline, and to handlers that cannot be interrupted."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import tenure
from tests.runtime.arrange import running
from tests.runtime.scenes import errors_of
from tests.runtime.world import World, each_store, open_world

Ending = Callable[[], Awaitable[Any]]


# --- W11 ----------------------------------------------------------------------------------------


async def give_way() -> Any:
    raise asyncio.CancelledError


async def return_after_all() -> Any:
    return "saved"


async def raise_its_own() -> Any:
    raise ValueError("lost the file")


def interruptible(world: World, ending: Ending, **options: Any) -> tenure.Worker:
    """A worker whose handler, when it is cancelled, ends as told."""
    worker = tenure.Worker(world.queue, **options)

    @worker.handler("work")
    async def work(payload: None) -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return await ending()

    return worker


@each_store
async def test_w11_a_handler_that_gives_way_at_its_deadline_has_timed_out(
    store: str, tmp_path: Path
) -> None:
    """W11: cancelled -> failed as timed out, at the instant of the deadline."""
    async with open_world(store, tmp_path) as world:
        worker = interruptible(world, give_way, job_timeout=5.0)
        job = await world.queue.dispatch("work")
        async with running(world, worker) as handle:
            await world.advance(4.99)
            assert await world.state(job) == "processing"
            assert errors_of(handle) == []
            await world.advance(0.01)
            record = await world.job(job)
            assert (record.state, record.attempt) == ("failed", 1)
            assert record.error is not None
            assert record.error.kind == "timeout"
            assert "5 s" in record.error.message
            [error] = errors_of(handle)
            assert isinstance(error, tenure.JobTimedOut)
            assert (error.job_id, error.timeout) == (job.id, 5.0)


@each_store
async def test_w11_a_handler_that_returns_after_all_has_completed(
    store: str, tmp_path: Path
) -> None:
    """W11: its own result counts, and nothing is reported."""
    async with open_world(store, tmp_path) as world:
        worker = interruptible(world, return_after_all, job_timeout=5.0)
        job = await world.queue.dispatch("work")
        async with running(world, worker) as handle:
            await world.advance(5.0)
            record = await world.job(job)
            assert (record.state, record.result, record.error) == ("completed", "saved", None)
            assert errors_of(handle) == []


@each_store
async def test_w11_a_handler_that_raises_at_its_deadline_has_failed_with_its_own_error(
    store: str, tmp_path: Path
) -> None:
    """W11: not as timed out."""
    async with open_world(store, tmp_path) as world:
        worker = interruptible(world, raise_its_own, job_timeout=5.0)
        job = await world.queue.dispatch("work")
        async with running(world, worker) as handle:
            await world.advance(5.0)
            record = await world.job(job)
            assert record.state == "failed"
            assert record.error is not None
            assert (record.error.kind, record.error.message) == (
                "error",
                "ValueError: lost the file",
            )
            [error] = errors_of(handle)
            assert isinstance(error, tenure.JobFailed)


@each_store
async def test_w11_the_cancelled_handler_is_awaited(store: str, tmp_path: Path) -> None:
    """W11: nothing is recorded and no slot freed before its cleanup is done."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, concurrency=1, job_timeout=5.0)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await gate.wait()

        jobs = await world.queue.dispatch_many([tenure.Call("work") for _ in range(2)])
        async with running(world, worker) as handle:
            await world.advance(5.9)  # within the second that a cleanup may take
            assert [await world.state(job) for job in jobs] == ["processing", "pending"]
            gate.set()
            await world.settle()
            assert [await world.state(job) for job in jobs] == ["failed", "processing"]
            assert [type(error) for error in errors_of(handle)] == [tenure.JobTimedOut]


@each_store
@pytest.mark.parametrize(
    ("ending", "state", "attempt", "error"),
    [
        (give_way, "pending", 0, None),
        (return_after_all, "completed", 1, None),
        (raise_its_own, "failed", 1, tenure.JobFailed),
    ],
)
async def test_w11_at_shutdown_what_the_handler_really_did_is_recorded_too(
    store: str,
    tmp_path: Path,
    ending: Ending,
    state: str,
    attempt: int,
    error: type[tenure.QueueError] | None,
) -> None:
    """W11: one that finishes during cancellation is recorded as finished, never run twice."""
    async with open_world(store, tmp_path) as world:
        worker = interruptible(world, ending)
        job = await world.queue.dispatch("work")
        async with running(world, worker) as handle:
            await world.settle()
            stopping = asyncio.create_task(handle.shutdown(0.0))
            await world.until(stopping.done)
            record = await world.job(job)
            assert (record.state, record.attempt) == (state, attempt)
            first = stopping.result()
            assert (type(first) if first else None) is error


@each_store
@pytest.mark.parametrize("given_up", [False, True])
async def test_w11_a_timeout_counts_as_a_timeout_error_for_the_retry_policy(
    store: str, tmp_path: Path, given_up: bool
) -> None:
    """W11: retried like any failure, unless the policy gives up on it; reported each time."""
    async with open_world(store, tmp_path) as world:
        policy = tenure.RetryPolicy(
            max_attempts=2,
            base=3.0,
            jitter=False,
            give_up_on=(TimeoutError,) if given_up else (),
        )
        worker = tenure.Worker(world.queue)
        starts: list[float] = []

        @worker.handler("work", retry=policy, timeout=5.0)
        async def work(payload: None) -> None:
            starts.append(world.clock.monotonic())
            await asyncio.Event().wait()

        job = await world.queue.dispatch("work")
        async with running(world, worker) as handle:
            await world.advance(20.0)
            record = await world.job(job)
            times = 1 if given_up else 2
            assert starts == pytest.approx([0.0, 8.0][:times], abs=0.01)
            assert (record.state, record.attempt) == ("failed", times)
            assert record.error is not None
            assert (record.error.kind, record.error.attempt) == ("timeout", times)
            assert [type(error) for error in errors_of(handle)] == [tenure.JobTimedOut] * times


# --- W12 ----------------------------------------------------------------------------------------


@each_store
@pytest.mark.parametrize("ending", ["return", "raise"])
async def test_w12_a_thread_past_its_deadline_keeps_its_slot_and_its_result_counts(
    store: str, tmp_path: Path, ending: str
) -> None:
    """W12: that it is overdue is reported once; it sees `job.cancelled`."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, concurrency=1, job_timeout=5.0)
        gate = threading.Event()
        seen: list[bool] = []

        @worker.handler("work")
        def work(payload: None, job: tenure.RunningJob) -> str:
            seen.append(job.cancelled)
            gate.wait(20)
            seen.append(job.cancelled)
            if ending == "raise":
                raise ValueError("too late")
            return "late"

        job = await world.queue.dispatch("work")
        async with running(world, worker) as handle:
            await world.until(lambda: seen == [False])
            waiting = await world.queue.dispatch("work", delay=1.0)
            await world.advance(4.99)
            assert errors_of(handle) == []
            await world.advance(20.01)
            [error] = errors_of(handle)
            assert isinstance(error, tenure.JobOverdue)
            assert (error.job_id, error.name) == (job.id, "work")
            assert error.seconds == pytest.approx(5.0)
            assert await world.state(job) == "processing"
            assert await world.state(waiting) == "pending"
            gate.set()
            await world.until(lambda: len(seen) >= 3)
            assert seen[:2] == [False, True]
            record = await world.job(job)
            if ending == "return":
                assert (record.state, record.result, record.error) == ("completed", "late", None)
                await world.until(lambda: len(seen) == 4)
                await world.ended(waiting)
                assert errors_of(handle) == []
            else:
                assert record.state == "failed"
                assert record.error is not None
                assert record.error.kind == "error"
                await world.until(lambda: len(seen) == 4)
                await world.ended(waiting)
                assert [type(e) for e in errors_of(handle)] == [tenure.JobFailed] * 2


@each_store
async def test_w12_a_coroutine_that_swallows_its_cancellation_is_overdue_and_may_finish(
    store: str, tmp_path: Path
) -> None:
    """W12: a second after its deadline it is called overdue, once; its result counts."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, concurrency=1, job_timeout=5.0)
        gate = asyncio.Event()
        flags: list[bool] = []

        @worker.handler("work")
        async def work(payload: None, job: tenure.RunningJob) -> str:
            while not gate.is_set():
                try:
                    await gate.wait()
                except asyncio.CancelledError:
                    flags.append(job.cancelled)
            return "late"

        job = await world.queue.dispatch("work")
        async with running(world, worker) as handle:
            await world.advance(5.9)
            assert flags == [True]
            assert errors_of(handle) == []
            await world.advance(30.0)
            assert flags == [True]  # asked once
            [error] = errors_of(handle)
            assert isinstance(error, tenure.JobOverdue)
            assert error.seconds == pytest.approx(6.0)
            assert await world.state(job) == "processing"
            gate.set()
            await world.settle()
            record = await world.job(job)
            assert (record.state, record.result) == ("completed", "late")


async def test_w12_what_a_plain_def_returned_to_be_awaited_can_be_interrupted() -> None:
    """W12: the thread is over by then, so it is not overdue but timed out."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue, job_timeout=5.0)
        begun: list[None] = []

        async def inner() -> None:
            begun.append(None)
            await asyncio.Event().wait()

        @worker.handler("work")
        def work(payload: None) -> Any:
            return inner()

        job = await world.queue.dispatch("work")
        async with running(world, worker) as handle:
            await world.until(lambda: bool(begun))
            await world.advance(5.0)
            assert await world.state(job) == "failed"
            [error] = errors_of(handle)
            assert isinstance(error, tenure.JobTimedOut)


@pytest.mark.parametrize(
    ("timeout", "grace", "kept"),
    [(5.0, None, 12.0), (40.0, None, 40.0), (5.0, 25.0, 25.0), (5.0, 0.0, 0.0)],
)
async def test_w12_the_lease_of_an_overdue_handler_is_kept_for_the_grace_and_no_longer(
    timeout: float, grace: float | None, kept: float
) -> None:
    """W12: by default for the time limit, at least one lease (here 12 s)."""
    async with open_world() as world:
        worker = tenure.Worker(
            world.queue, concurrency=1, lease=12.0, job_timeout=timeout, overdue_grace=grace
        )
        gate = threading.Event()
        started: list[int] = []

        @worker.handler("work")
        def work(payload: None, job: tenure.RunningJob) -> None:
            started.append(job.attempt)
            gate.wait(20)

        job = await world.queue.dispatch("work")
        async with running(world, worker) as handle:
            await world.until(lambda: started == [1])
            # The newest extension in time is at most a third of the lease before the end.
            await world.advance(timeout + kept + 12.0 * 2 / 3 - 1.0)
            assert (await world.job(job)).serial == 1
            assert [type(error) for error in errors_of(handle)] == [tenure.JobOverdue]
            await world.advance(12.0 / 3 + 1.0 + 12.0)
            record = await world.job(job)
            assert (record.state, record.stalls, record.serial) == ("pending", 1, 2)
            assert started == [1]  # its slot is still in use
            assert errors_of(handle) == []
            gate.set()
            # What it returns then is refused, and the job runs again.
            await world.until(lambda: started == [1, 2])
            await world.ended(job)
            [error] = errors_of(handle)
            assert isinstance(error, tenure.StateTransitionError)
            assert error.operation == "complete"


async def test_w12_shutdown_does_not_wait_for_a_thread_past_its_bound() -> None:
    """W12, W23: the handler is abandoned, reported, and its job left to its lease."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue)
        gate = threading.Event()
        seen: list[tenure.RunningJob] = []

        @worker.handler("work")
        def work(payload: None, job: tenure.RunningJob) -> None:
            seen.append(job)
            gate.wait(20)

        job = await world.queue.dispatch("work")
        async with running(world, worker) as handle:
            await world.until(lambda: len(seen) == 1)
            stopping = asyncio.create_task(handle.shutdown(2.0))
            await world.advance(1.9)
            assert [given.cancelled for given in seen] == [False]
            await world.advance(1.1)
            await world.until(stopping.done)
            assert [given.cancelled for given in seen] == [True]
            error = stopping.result()
            assert isinstance(error, tenure.StateTransitionError)
            assert (error.job_id, error.operation) == (job.id, "release_after_shutdown")
            assert not handle.running
            assert await world.state(job) == "processing"
            gate.set()


async def test_w12_a_program_that_ends_at_once_puts_the_jobs_of_abandoned_handlers_back() -> None:
    """W12: with no attempt spent; those that gave way are back already."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue)
        gate = threading.Event()
        started: list[object] = []

        @worker.handler("stuck")
        def stuck(payload: None) -> None:
            started.append(payload)
            gate.wait(20)

        @worker.handler("gives way")
        async def gives_way(payload: None) -> None:
            started.append(payload)
            await asyncio.Event().wait()

        job = await world.queue.dispatch("stuck")
        other = await world.queue.dispatch("gives way")
        async with running(world, worker) as handle:
            await world.until(lambda: len(started) == 2)
            assert handle.cut_short == 0
            stopping = asyncio.create_task(handle.shutdown(0))
            await world.advance(1.0)
            await world.until(stopping.done)
            assert handle.cut_short == 2
            assert [await world.state(each) for each in (job, other)] == ["processing", "pending"]
            assert await handle.release_abandoned() == 1
            record = await world.queue.get(job.id)
            assert (record.state, record.attempt) == ("pending", 0)
            gate.set()


@pytest.mark.parametrize("attempts", [1, 2])
async def test_w12_an_abandoned_handler_past_its_limit_has_timed_out(attempts: int) -> None:
    """W11, W12: it ends with its process, for being late; so it cannot go on for ever."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue)
        gate = threading.Event()
        started = threading.Event()

        def stuck(payload: None) -> None:
            started.set()
            gate.wait(20)

        policy = tenure.RetryPolicy(max_attempts=attempts)
        worker.register("stuck", stuck, timeout=5, retry=policy)
        job = await world.queue.dispatch("stuck")
        async with running(world, worker) as handle:
            await world.until(started.is_set)
            await world.advance(6)
            stopping = asyncio.create_task(handle.shutdown(0))
            await world.advance(1.0)
            await world.until(stopping.done)
            errors_of(handle)
            assert await handle.release_abandoned() == 1
            record = await world.queue.get(job.id)
            assert (record.state, record.attempt) == ("failed" if attempts == 1 else "pending", 1)
            assert record.error is not None
            assert record.error.kind == "timeout"
            assert [type(error) for error in errors_of(handle)] == [tenure.JobTimedOut]
            gate.set()


@pytest.mark.parametrize("seconds", [1.5, 3.0])
async def test_w12_abandoned_jobs_wait_for_a_slow_store_for_a_while(seconds: float) -> None:
    """W12: a moment in which the disk is busy costs no lease; what stays with one is reported."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue)
        gate = threading.Event()
        started = threading.Event()

        @worker.handler("stuck")
        def stuck(payload: None) -> None:
            started.set()
            gate.wait(20)

        job = await world.queue.dispatch("stuck")
        async with running(world, worker) as handle:
            await world.until(started.is_set)
            stopping = asyncio.create_task(handle.shutdown(0))
            await world.advance(1.0)
            await world.until(stopping.done)
            errors_of(handle)  # that it was abandoned
            answered = world.driver.hold_up("record")
            putting_back = asyncio.create_task(handle.release_abandoned())
            await world.advance(seconds)
            answered.set()
            assert await putting_back == 1
            in_time = seconds < 2.0
            assert await world.state(job) == ("pending" if in_time else "processing")
            told = [] if in_time else [tenure.StateTransitionError]
            assert [type(error) for error in errors_of(handle)] == told
            gate.set()
