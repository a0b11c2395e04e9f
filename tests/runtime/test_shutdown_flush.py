"""W23: what is on its way when a worker is shut down: outcomes, claims, prefetched jobs."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.driver import Capability
from tenure.drivers.memory import MemoryDriver
from tests.runtime.scenes import (
    WatchedWrites,
    Work,
    errors_of,
    fail_writes,
    quiet_worker,
    running,
    shut_down,
    unreachable,
    without,
)
from tests.runtime.world import each_store, open_world


@each_store
async def test_w23_the_recorder_is_flushed(store: str, tmp_path: Path) -> None:
    """W23: outcomes that were waiting for the store to come back are written before the end."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world)

        @worker.handler("work")
        async def work(payload: None) -> str:
            return "done"

        handle = worker.run()
        await world.settle()
        fail_writes(world, unreachable(), times=4)
        jobs = await world.queue.dispatch_many([tenure.Call("work") for _ in range(5)])
        await world.advance(0.01)
        assert {await world.state(job) for job in jobs} == {"processing"}
        error = await shut_down(world, handle, drain=5.0)
        assert [await world.state(job) for job in jobs] == ["completed"] * 5
        errors = [error, *errors_of(handle)]
        assert [type(error) for error in errors] == [tenure.StoreUnavailable] * 4


@each_store
async def test_w23_a_claim_that_is_answered_during_the_drain_is_put_back(
    store: str, tmp_path: Path
) -> None:
    """W7, W23: "worker shutdown before dispatch", no attempt spent, no lease to wait for."""
    async with open_world(store, tmp_path) as world:
        watched = WatchedWrites(world)
        work = Work(world)
        worker = quiet_worker(world)
        worker.register("work", work)
        job = await world.queue.dispatch("work")
        answered = world.driver.hold_up("claim", after=True)
        handle = worker.run()
        await world.settle()
        ending = asyncio.create_task(handle.shutdown(10.0))
        await world.advance(5.0)
        assert not ending.done()
        answered.set()
        await world.until(ending.done)
        assert ending.result() is None
        assert watched.outcomes == [tenure.Released("worker shutdown before dispatch")]
        record = await world.job(job)
        assert (record.state, record.attempt) == ("pending", 0)
        assert work.starts == 0


@each_store
async def test_w23_a_claim_whose_answer_was_lost_is_asked_for_and_put_back(
    store: str, tmp_path: Path
) -> None:
    """Section 3: the token is repeated once more at shutdown, so that no lease has to run out."""
    async with open_world(store, tmp_path) as world:
        work = Work(world)
        worker = quiet_worker(world)
        worker.register("work", work)
        job = await world.queue.dispatch("work")
        world.driver.fail("claim", unreachable(ambiguous=True), after=True)
        handle = worker.run()
        await world.settle()
        assert await world.state(job) == "processing"
        error = await shut_down(world, handle, drain=1.0)
        record = await world.job(job)
        assert (record.state, record.attempt) == ("pending", 0)
        assert isinstance(error, tenure.StoreUnavailable)
        assert errors_of(handle) == []
        assert work.starts == 0


@each_store
async def test_w23_prefetched_jobs_are_put_back(store: str, tmp_path: Path) -> None:
    """W23: at the beginning of the drain, since they will not be started any more."""
    async with open_world(store, tmp_path) as world:
        work = Work(world)
        worker = quiet_worker(world, concurrency=1, prefetch=3)
        worker.register("work", work)
        jobs = await world.queue.dispatch_many([tenure.Call("work") for _ in range(4)])
        handle = worker.run()
        await world.settle()
        assert [await world.state(job) for job in jobs] == ["processing"] * 4
        ending = asyncio.create_task(handle.shutdown(30.0))
        await world.settle()
        assert [await world.state(job) for job in jobs] == ["processing"] + ["pending"] * 3
        work.gate.set()
        await world.until(ending.done)
        assert ending.result() is None
        assert [(await world.job(job)).attempt for job in jobs] == [1, 0, 0, 0]
        assert errors_of(handle) == []


async def test_w23_where_a_store_cannot_release_the_job_is_left_to_its_lease_and_reported() -> None:
    """W23: nothing is written that the store does not offer."""
    async with open_world(capabilities=without(MemoryDriver, Capability.RELEASE)) as world:
        watched = WatchedWrites(world)
        work = Work(world)
        worker = quiet_worker(world)
        worker.register("work", work)
        handle = worker.run()
        job = await world.queue.dispatch("work")
        await world.settle()
        error = await shut_down(world, handle)
        assert work.cancelled_at == [0.0]
        assert watched.outcomes == []
        assert await world.state(job) == "processing"
        assert isinstance(error, tenure.StateTransitionError)
        assert (error.job_id, error.operation) == (job.id, "release_after_shutdown")
        assert "left to its lease" in error.message
        assert errors_of(handle) == []


@pytest.mark.parametrize("jobs", [0, 40])
async def test_w23_workers_may_be_started_and_stopped_again_and_again(jobs: int) -> None:
    """W23, W4: no job is lost between the runs, and nothing of a run is left."""
    async with open_world() as world:
        done: list[int] = []
        worker = quiet_worker(world, concurrency=3)

        @worker.handler("work")
        async def work(payload: int) -> None:
            await asyncio.sleep(0)
            done.append(payload)

        await world.queue.dispatch_many([tenure.Call("work", n) for n in range(jobs)])
        for steps in range(0, 60, 3):
            handle = worker.run()
            for _ in range(steps):
                await asyncio.sleep(0)
            assert await shut_down(world, handle) is None
        async with running(worker) as handle:
            await world.advance(1.0)
            assert errors_of(handle) == []
        counts = await world.queue.counts()
        assert (counts.completed, counts.pending, counts.processing) == (jobs, 0, 0)
        assert sorted(set(done)) == list(range(jobs))


@each_store
async def test_w23_a_claim_that_loses_its_answer_while_jobs_are_cancelled_is_put_back(
    store: str, tmp_path: Path
) -> None:
    """W23: in every stage of the end, not only while it drains."""
    async with open_world(store, tmp_path) as world:
        work = Work(world)
        worker = quiet_worker(world)
        worker.register("work", work)
        job = await world.queue.dispatch("work")
        answered = asyncio.Event()

        async def lose(call: Callable[[], Awaitable[Any]]) -> Any:
            await call()
            await answered.wait()
            world.driver.hooks.pop("claim", None)
            raise unreachable(ambiguous=True)

        world.driver.hooks["claim"] = lose
        handle = worker.run()
        await world.settle()
        assert await world.state(job) == "processing"
        ending = asyncio.create_task(handle.shutdown(0.0))
        await world.settle()
        answered.set()
        await world.until(ending.done)
        record = await world.job(job)
        assert (record.state, record.attempt) == ("pending", 0)
        assert isinstance(ending.result(), tenure.StoreUnavailable)
        assert work.starts == 0
