"""W23: it always returns within the drain and one second more; what that cuts off is reported."""

import asyncio
import threading
from pathlib import Path

import pytest

import tenure
from tests.runtime.scenes import (
    errors_of,
    fail_writes,
    hold_up_writes,
    quiet_worker,
    running,
    shut_down,
    stubborn,
    unreachable,
)
from tests.runtime.world import World, each_store, open_world

LEASE_AND_INTERVAL = 70.0


async def comes_back(world: World, *jobs: tenure.JobHandle) -> None:
    """Another worker gets the jobs when their leases have run out, and completes them."""
    worker = quiet_worker(world)

    async def work(payload: None) -> str:
        return "by another"

    worker.register("work", work)
    worker.register("quick", work)
    async with running(worker) as handle:
        await world.advance(LEASE_AND_INTERVAL)
        for job in jobs:
            record = await world.job(job)
            assert (record.state, record.result) == ("completed", "by another")
        assert errors_of(handle) == []


@each_store
@pytest.mark.parametrize("drain", [0.0, 3.0])
async def test_w23_a_claim_in_flight_is_abandoned_at_the_bound(
    store: str, tmp_path: Path, drain: float
) -> None:
    """W23, W7: it may have taken jobs; they come back with their leases."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world)
        worker.register("work", print)
        job = await world.queue.dispatch("work")
        answered = world.driver.hold_up("claim", after=True)
        handle = worker.run()
        await world.settle()
        before = world.clock.monotonic()
        error = await shut_down(world, handle, drain)
        assert world.clock.monotonic() - before <= drain + 1.0
        assert isinstance(error, tenure.StoreUnavailable)
        assert error.ambiguous
        assert "claim" in str(error)
        assert errors_of(handle) == []
        assert await world.state(job) == "processing"
        answered.set()
        world.driver.hooks.clear()
        await comes_back(world, job)


@each_store
@pytest.mark.parametrize("drain", [0.0, 3.0])
async def test_w23_a_write_in_flight_is_abandoned_at_the_bound_and_reported_for_each_job(
    store: str, tmp_path: Path, drain: float
) -> None:
    """W23: those in flight and those that wait behind them, by their operations."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> None:
            await gate.wait()

        @worker.handler("quick")
        async def quick(payload: None) -> None:
            return None

        handle = worker.run()
        waiting = await world.queue.dispatch("work")
        await world.settle()
        written = hold_up_writes(world)
        flying = await world.queue.dispatch("quick")
        await world.advance(0.1)
        gate.set()
        await world.settle()
        before = world.clock.monotonic()
        error = await shut_down(world, handle, drain)
        assert world.clock.monotonic() - before <= drain + 1.0
        reported: dict[str, str] = {}
        for found in [error, *errors_of(handle)]:
            if isinstance(found, tenure.StoreUnavailable):  # of the claim in the same exchange
                assert found.ambiguous
                continue
            assert isinstance(found, tenure.StateTransitionError)
            assert "did not answer" in found.message
            reported[found.job_id] = found.operation
        assert reported == {flying.id: "complete", waiting.id: "complete"}
        assert await world.state(flying) == "processing"
        written.set()
        world.driver.hooks.clear()
        await comes_back(world, flying, waiting)


@each_store
async def test_w23_writes_that_are_repeated_end_at_the_bound(store: str, tmp_path: Path) -> None:
    """W16, W23: "until answered or W23's bound"."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world)

        @worker.handler("work")
        async def work(payload: None) -> None:
            return None

        handle = worker.run()
        await world.settle()
        fail_writes(world, unreachable(), times=10_000)
        job = await world.queue.dispatch("work")
        await world.advance(0.1)
        ending = asyncio.create_task(handle.shutdown(2.0))
        await world.advance(3.0)
        await world.until(ending.done)
        *away, last = [ending.result(), *errors_of(handle)]
        assert {type(error) for error in away} == {tenure.StoreUnavailable}
        assert isinstance(last, tenure.StateTransitionError)
        assert (last.job_id, last.operation) == (job.id, "complete")
        world.driver.hooks.clear()
        await comes_back(world, job)


@each_store
@pytest.mark.parametrize("drain", [0.0, 3.0])
async def test_w23_a_handler_that_swallows_cancellation_is_abandoned_and_reported(
    store: str, tmp_path: Path, drain: float
) -> None:
    """W23, W12: what it returns later changes nothing."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> str:
            await stubborn(gate)
            return "too late"

        handle = worker.run()
        job = await world.queue.dispatch("work")
        await world.settle()
        before = world.clock.monotonic()
        error = await shut_down(world, handle, drain)
        assert world.clock.monotonic() - before <= drain + 1.0
        assert isinstance(error, tenure.StateTransitionError)
        assert (error.job_id, error.operation) == (job.id, "release_after_shutdown")
        assert "abandoned" in error.message
        assert errors_of(handle) == []
        gate.set()
        await world.settle()
        assert await world.state(job) == "processing"
        assert errors_of(handle) == []
        await comes_back(world, job)


@each_store
async def test_w23_a_handler_in_a_thread_is_abandoned_and_reported(
    store: str, tmp_path: Path
) -> None:
    """W23, W12: it is told by `job.cancelled`; what it returns later changes nothing."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world)
        gate, told = threading.Event(), threading.Event()

        @worker.handler("work")
        def work(payload: None, job: tenure.RunningJob) -> str:
            gate.wait(20.0)
            if job.cancelled:
                told.set()
            return "too late"

        handle = worker.run()
        job = await world.queue.dispatch("work")
        await world.settle()
        try:
            error = await shut_down(world, handle)
            assert isinstance(error, tenure.StateTransitionError)
            assert (error.job_id, error.operation) == (job.id, "release_after_shutdown")
            assert errors_of(handle) == []
        finally:
            gate.set()
        await world.until(told.is_set)
        assert await world.state(job) == "processing"
        await comes_back(world, job)


async def test_w23_a_store_that_does_not_open_holds_up_no_shutdown() -> None:
    """W23: the worker is still waiting for the store, with nothing begun."""
    async with open_world() as world:
        gate = world.driver.hold_up("open")
        queue = tenure.Queue(world.driver, clock=world.clock)
        handle = tenure.Worker(queue).run()
        await world.settle()
        ending = asyncio.create_task(handle.shutdown(2.0))
        await world.advance(3.0)
        try:
            await world.until(ending.done)
        finally:
            gate.set()
        assert ending.result() is None  # nothing was begun
        assert errors_of(handle) == []
        assert not handle.running


async def test_w23_the_pause_before_another_try_to_open_holds_up_no_shutdown() -> None:
    """W23: the store could not be opened, and the next try is seconds away."""
    async with open_world() as world:
        world.driver.fail("open", unreachable(), times=1000)
        queue = tenure.Queue(world.driver, clock=world.clock)
        handle = tenure.Worker(queue, poll_interval=5.0).run()
        await world.settle()
        error = await shut_down(world, handle)
        assert isinstance(error, tenure.StoreUnavailable)
        assert errors_of(handle) == []


async def test_w23_a_store_that_opens_late_is_waited_for() -> None:
    """The start goes on trying, and says so; the worker works once the store is there."""
    async with open_world() as world:
        world.driver.fail("open", unreachable(), times=3)
        queue = tenure.Queue(world.driver, clock=world.clock)
        worker = tenure.Worker(queue)
        done: list[int] = []

        async def work(payload: int) -> None:
            done.append(payload)

        worker.register("work", work)
        async with running(worker) as handle:
            await world.queue.dispatch("work", 1)
            await world.advance(10.0)
            assert done == [1]
            assert [type(e) for e in errors_of(handle)] == [tenure.StoreUnavailable] * 3


async def test_w23_a_store_that_is_refused_for_good_stops_the_worker() -> None:
    """A schema that this code does not know cannot be waited for."""
    async with open_world() as world:
        refusal = tenure.SchemaMismatch(found=99, expected=1, remedy="upgrade tenure")
        world.driver.fail("open", refusal, times=100)
        queue = tenure.Queue(world.driver, clock=world.clock)
        handle = tenure.Worker(queue).run()
        await handle.wait()
        assert not handle.running
        assert errors_of(handle) == [refusal]


async def test_w23_a_keeper_that_is_in_a_call_holds_up_no_shutdown() -> None:
    """W23: its thread is left to its call, which ends by itself; bounded in real time here."""
    async with open_world() as world:
        worker = quiet_worker(world, lease=12.0)
        gate, entered = threading.Event(), threading.Event()

        @worker.handler("work")
        async def work(payload: None) -> None:
            await asyncio.Event().wait()

        def stuck() -> None:
            entered.set()
            gate.wait(20.0)

        world.driver.keeper_hook = stuck
        handle = worker.run()
        job = await world.queue.dispatch("work")
        await world.advance(3.5)
        advancing = asyncio.create_task(world.advance(0.5))
        assert await asyncio.to_thread(entered.wait, 10.0)
        try:
            assert await asyncio.wait_for(handle.shutdown(0), 5.0) is None
            assert not handle.running
        finally:
            gate.set()
        await advancing
        assert await world.state(job) == "pending"
        assert errors_of(handle) == []
