"""W15: every write after a claim names the hold, and under another hold it changes nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

import tenure
from tenure.driver import Capability
from tenure.drivers.memory import MemoryDriver
from tests.runtime.scenes import (
    crash,
    errors_of,
    running,
    shut_down,
    stubborn,
    take_over,
    unreachable,
    without,
)
from tests.runtime.world import World, each_store, open_world

RETRY = tenure.RetryPolicy(max_attempts=3, base=1.0, jitter=False)


def assert_fenced(
    errors: list[tenure.QueueError], job: tenure.JobHandle, operation: str
) -> tenure.StateTransitionError:
    """The one error is the refused write, with its data."""
    [error] = errors
    assert isinstance(error, tenure.StateTransitionError)
    assert (error.job_id, error.operation) == (job.id, operation)
    assert error.message.startswith("nothing was changed: the hold is not current")
    assert operation in str(error)
    return error


@each_store
@pytest.mark.parametrize(
    ("operation", "ending", "retry"),
    [
        ("complete", None, None),
        ("fail", ValueError("no"), None),
        ("retry", ValueError("no"), RETRY),
        ("fail_after_panic", SystemExit(3), None),
    ],
)
async def test_w15_a_fenced_outcome_changes_nothing_and_is_reported(
    store: str,
    tmp_path: Path,
    operation: str,
    ending: BaseException | None,
    retry: tenure.RetryPolicy | None,
) -> None:
    """W15, I3: whatever a handler ends with, another claim's job stays as it was."""
    async with open_world(store, tmp_path) as world:
        events: list[tenure.Event] = []
        worker = tenure.Worker(world.queue, concurrency=1, observers=[events.append])
        gate = asyncio.Event()

        @worker.handler("work", retry=retry)
        async def work(payload: None) -> int:
            await gate.wait()
            if ending is not None:
                raise ending
            return 1

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.settle()
            rival = await take_over(world, job.id)
            before = await world.job(job)
            gate.set()
            await world.settle()
            assert await world.job(job) == before
            assert before.state == "processing"
            assert_fenced(errors_of(handle), job, operation)
            [fenced] = [event for event in events if isinstance(event, tenure.JobFenced)]
            assert (fenced.job.id, fenced.operation) == (job.id, operation)
            assert not [event for event in events if isinstance(event, tenure.JobSettled)]
            answers = await world.inner.record([(rival.hold, tenure.Completed(b"7"))])
            assert list(answers) == [tenure.Recorded.APPLIED]


@each_store
async def test_w15_a_fenced_timeout_changes_nothing_and_is_reported(
    store: str, tmp_path: Path
) -> None:
    """W15: the write of an attempt that was cancelled at its deadline."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, concurrency=1, job_timeout=5.0)

        @worker.handler("work")
        async def work(payload: None) -> None:
            await asyncio.Event().wait()

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.settle()
            await take_over(world, job.id)
            before = await world.job(job)
            await world.advance(5.0)  # sooner than the keeper's next turn
            assert await world.job(job) == before
            assert_fenced(errors_of(handle), job, "fail_after_timeout")


@each_store
async def test_w15_a_fenced_cancellation_changes_nothing_and_is_reported(
    store: str, tmp_path: Path
) -> None:
    """W15: the write of a handler that gave way to a request to cancel."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, concurrency=1)
        cleaning, gate = asyncio.Event(), asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cleaning.set()
                await gate.wait()

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.settle()
            assert await world.queue.cancel(job.id) == tenure.Answer.REQUESTED
            await world.advance(10.0)  # one turn of the keeper
            assert cleaning.is_set()
            await take_over(world, job.id)
            before = await world.job(job)
            gate.set()
            await world.settle()
            assert await world.job(job) == before
            assert_fenced(errors_of(handle), job, "cancel")


@each_store
async def test_w15_a_fenced_release_at_shutdown_changes_nothing_and_is_reported(
    store: str, tmp_path: Path
) -> None:
    """W15: the job of a handler that the shutdown cancelled belongs to another worker by then."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, concurrency=1)

        @worker.handler("work")
        async def work(payload: None) -> None:
            await asyncio.Event().wait()

        handle = worker.run()
        job = await world.queue.dispatch("work")
        await world.settle()
        await take_over(world, job.id)
        before = await world.job(job)
        error = await shut_down(world, handle)
        assert await world.job(job) == before
        assert error is not None
        assert_fenced([error], job, "release_after_shutdown")
        assert errors_of(handle) == []


Prepare = Callable[[World, tenure.JobHandle], Awaitable[None]]


async def as_dispatched(world: World, job: tenure.JobHandle) -> None:
    pass


async def as_crashed(world: World, job: tenure.JobHandle) -> None:
    await crash(world, job, times=2)


@each_store
@pytest.mark.parametrize(
    ("operation", "name", "prepare"),
    [
        ("release_unhandled", "stranger", as_dispatched),
        ("fail_stalled", "work", as_crashed),
    ],
)
async def test_w15_a_fenced_write_about_a_claim_that_is_not_started_is_reported(
    store: str, tmp_path: Path, operation: str, name: str, prepare: Prepare
) -> None:
    """W15, W9: the write's own error is reported, and none about the job, which is another's."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, concurrency=1, max_stalls=2)
        started: list[None] = []
        worker.register("work", started.append)
        job = await world.queue.dispatch(name)
        await prepare(world, job)
        gate = world.driver.hold_up("claim", after=True)
        async with running(worker) as handle:
            await world.settle()
            await take_over(world, job.id)
            before = await world.job(job)
            gate.set()
            await world.settle()
            assert await world.job(job) == before
            assert_fenced(errors_of(handle), job, operation)
            assert started == []


@each_store
async def test_w15_a_fenced_cancellation_before_the_start_is_reported(
    store: str, tmp_path: Path
) -> None:
    """W15: a claim that comes with a request to cancel, and is another's when that is written."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, concurrency=1)
        started: list[None] = []
        worker.register("work", started.append)
        job = await world.queue.dispatch("work")
        [claim] = await world.claim_elsewhere(lease=1.0)
        assert await world.queue.cancel(job.id) == tenure.Answer.REQUESTED
        await world.advance(1.0)
        await world.inner.reclaim(1, [0.0], only=[claim.hold])
        gate = world.driver.hold_up("claim", after=True)
        async with running(worker) as handle:
            await world.settle()
            await take_over(world, job.id)
            before = await world.job(job)
            gate.set()
            await world.settle()
            assert await world.job(job) == before
            assert_fenced(errors_of(handle), job, "cancel")
            assert started == []


@each_store
async def test_w15_a_fenced_release_of_a_claim_that_came_after_shutdown_is_reported(
    store: str, tmp_path: Path
) -> None:
    """W15, W7: the claim returned after the shutdown was asked for, and was another's by then."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, concurrency=1)
        started: list[None] = []
        worker.register("work", started.append)
        job = await world.queue.dispatch("work")
        gate = world.driver.hold_up("claim", after=True)
        handle = worker.run()
        await world.settle()
        ending = asyncio.create_task(handle.shutdown(5.0))
        await world.settle()
        await take_over(world, job.id)
        before = await world.job(job)
        gate.set()
        await world.until(ending.done)
        assert await world.job(job) == before
        error = ending.result()
        assert error is not None
        assert_fenced([error], job, "release_claim_after_shutdown")
        assert errors_of(handle) == []
        assert started == []


@each_store
async def test_w15_a_refused_extension_is_reported_as_the_lost_lease_that_it_is(
    store: str, tmp_path: Path
) -> None:
    """W15, W19: extending names the hold as well; its refusal changes nothing."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, concurrency=1)

        @worker.handler("work")
        async def work(payload: None) -> None:
            await asyncio.Event().wait()

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.settle()
            await take_over(world, job.id)
            before = await world.job(job)
            await world.advance(10.0)
            assert await world.job(job) == before
            [error] = errors_of(handle)
            assert isinstance(error, tenure.LeaseLost)
            assert error.job_id == job.id


async def test_w15_a_worker_that_slept_through_its_lease_changes_nothing() -> None:
    """W15, I3: the whole story: no extension arrives, a rival reclaims, runs and records."""
    async with open_world(capabilities=without(MemoryDriver, Capability.RECLAIM)) as world:
        worker = tenure.Worker(world.queue, concurrency=1, lease=30.0)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> str:
            await gate.wait()
            return "late"

        def away() -> None:
            raise unreachable()

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            world.driver.keeper_hook = away
            await world.advance(30.0)
            [hold] = await world.inner.reclaim(10, [0.0])
            [rival] = await world.claim_elsewhere()
            assert rival.hold.serial == hold.serial + 2
            await world.inner.record([(rival.hold, tenure.Completed(b'"first"'))])
            gate.set()
            await world.settle()
            record = await world.job(job)
            assert (record.state, record.result, record.attempt) == ("completed", "first", 2)
            *away_errors, last = errors_of(handle)
            assert_fenced([last], job, "complete")
            assert all(isinstance(error, tenure.StoreUnavailable) for error in away_errors)


async def test_w15_a_job_that_is_gone_is_reported_as_gone() -> None:
    """W15: `UNKNOWN` is refused in the same way, and says what is known."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue, concurrency=1)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> None:
            await gate.wait()

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.settle()
            rival = await take_over(world, job.id)
            await world.inner.record([(rival.hold, tenure.Completed())])
            assert await world.queue.delete(job.id) == tenure.Answer.DONE
            gate.set()
            await world.settle()
            [error] = errors_of(handle)
            assert isinstance(error, tenure.StateTransitionError)
            assert error.operation == "complete"
            assert error.message == "nothing was changed: the job is not there any more"


async def test_w15_a_job_that_is_here_twice_is_kept_apart_by_its_holds() -> None:
    """W15: the lost attempt still runs when the same worker starts the job anew."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue, concurrency=2, lease=30.0)
        gates = {1: asyncio.Event(), 2: asyncio.Event()}
        fences: list[int] = []

        @worker.handler("work")
        async def work(payload: None, job: tenure.RunningJob) -> int:
            fences.append(job.fence)
            await stubborn(gates[job.attempt])
            return job.attempt

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.settle()
            # Reclaimed at an instant at which its lease has run out, and due again at once.
            later = world.clock.now() + timedelta(minutes=1)
            assert len(await world.inner.reclaim(1, [-60.0], now=later)) == 1
            await world.advance(0.1)
            assert fences == [1, 3]
            gates[1].set()
            await world.settle()
            assert await world.state(job) == "processing"
            [error] = errors_of(handle)
            assert_fenced([error], job, "complete")
            await world.advance(25.0)
            assert fences == [1, 3]  # the second one's lease was extended all the while
            gates[2].set()
            await world.settle()
            record = await world.job(job)
            assert (record.state, record.result) == ("completed", 2)
            assert errors_of(handle) == []
