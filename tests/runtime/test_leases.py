"""W18: the keeper extends what runs, from a thread of its own, for as long as it may."""

import asyncio
import threading
from datetime import datetime, timedelta
from pathlib import Path

import tenure
from tenure.driver import Capability
from tenure.drivers.memory import MemoryDriver
from tests.runtime.scenes import (
    errors_of,
    fail_writes,
    hold_up_writes,
    quiet_worker,
    running,
    take_over,
    unreachable,
    without,
)
from tests.runtime.world import World, each_store, open_world

# No reclaim by the worker itself: what its keeper does not keep stays visible as run out.
ALONE = without(MemoryDriver, Capability.RECLAIM)


async def lease_ends(world: World) -> list[datetime]:
    """When the leases of the holds end, as the store has them now."""
    far = world.clock.now() + timedelta(days=365)
    return [entry.until for entry in (await world.inner.expired(100, now=far)).holds]


def after(world: World, seconds: float) -> datetime:
    return world.clock.now() + timedelta(seconds=seconds)


def extensions(world: World) -> int:
    return world.driver.calls.count("keeper.extend")


@each_store
async def test_w18_the_lease_of_a_running_attempt_is_extended_every_third_of_it(
    store: str, tmp_path: Path
) -> None:
    """W18, I6: a job may run for many leases, and is started once."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world, lease=30.0)
        gate = asyncio.Event()
        starts: list[int] = []

        @worker.handler("work")
        async def work(payload: None, job: tenure.RunningJob) -> None:
            starts.append(job.attempt)
            await gate.wait()

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.advance(0.0)
            for turn in range(1, 13):
                await world.advance(10.0)
                assert extensions(world) == turn
                assert await lease_ends(world) == [after(world, 30.0)]
            gate.set()
            await world.settle()
            assert await world.state(job) == "completed"
            assert starts == [1]
            assert errors_of(handle) == []
            await world.advance(100.0)
            assert extensions(world) == 12  # nothing runs, nothing is extended


async def test_w18_all_running_attempts_are_extended_in_one_call() -> None:
    """W18: a batch, as every call to a store."""
    async with open_world() as world:
        worker = quiet_worker(world, lease=30.0, concurrency=8)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> None:
            await gate.wait()

        async with running(worker) as handle:
            await world.queue.dispatch_many([tenure.Call("work") for _ in range(8)])
            await world.advance(10.0)
            assert extensions(world) == 1
            assert await lease_ends(world) == [after(world, 30.0)] * 8
            gate.set()
            await world.settle()
            assert errors_of(handle) == []


@each_store
async def test_w18_the_keeper_works_in_a_thread_of_its_own(store: str, tmp_path: Path) -> None:
    """W18: through `keeper_handle()`, so that the event loop is not needed for it."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world, lease=30.0)
        gate = asyncio.Event()
        threads: list[threading.Thread] = []
        world.driver.keeper_hook = lambda: threads.append(threading.current_thread())

        @worker.handler("work")
        async def work(payload: None) -> None:
            await gate.wait()

        async with running(worker) as handle:
            await world.queue.dispatch("work")
            await world.advance(20.0)
            assert [thread.name for thread in threads] == ["tenure-keeper"] * 2
            assert len(set(threads)) == 1
            assert threads[0].daemon
            assert "extend" not in world.driver.calls
            gate.set()
            await world.settle()
            assert errors_of(handle) == []
        assert not threads[0].is_alive()


async def test_w18_a_store_without_a_keeper_handle_is_reached_through_the_loop() -> None:
    """W18: leases are extended all the same, as long as the loop turns."""
    async with open_world(capabilities=without(MemoryDriver, Capability.KEEPER)) as world:
        worker = quiet_worker(world, lease=30.0)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> None:
            await gate.wait()

        async with running(worker) as handle:
            await world.queue.dispatch("work")
            await world.advance(30.0)
            assert world.driver.calls.count("extend") == 3
            assert await lease_ends(world) == [after(world, 30.0)]
            gate.set()
            await world.settle()
            assert errors_of(handle) == []


async def test_w18_a_store_that_cannot_extend_gets_no_keeper() -> None:
    """W18, W2: the lease is twice the longest time limit, and nothing extends it."""
    missing = without(MemoryDriver, Capability.EXTEND, Capability.KEEPER)
    async with open_world(capabilities=missing) as world:
        worker = quiet_worker(world)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> None:
            await gate.wait()

        async with running(worker) as handle:
            await world.queue.dispatch("work")
            await world.advance(0.0)
            claimed = after(world, 600.0)
            await world.advance(200.0)
            assert await lease_ends(world) == [claimed]
            assert "keeper.extend" not in world.driver.calls
            assert "extend" not in world.driver.calls
            gate.set()
            await world.settle()
            assert errors_of(handle) == []


async def test_w18_holds_that_wait_in_the_recorder_are_not_extended() -> None:
    """W18: the handler has ended; when its outcome cannot be written the lease may well run out."""
    async with open_world(capabilities=ALONE) as world:
        worker = quiet_worker(world, lease=30.0)

        @worker.handler("work")
        async def work(payload: None) -> None:
            return None

        async with running(worker) as handle:
            gate = hold_up_writes(world)
            job = await world.queue.dispatch("work")
            await world.advance(0.0)
            claimed = after(world, 30.0)
            await world.advance(100.0)
            assert await lease_ends(world) == [claimed]
            assert extensions(world) == 0
            gate.set()
            await world.settle()
            assert await world.state(job) == "completed"  # late, but nobody had reclaimed it
            assert errors_of(handle) == []


@each_store
async def test_w18_a_loss_that_is_found_for_a_waiting_outcome_is_ignored(
    store: str, tmp_path: Path
) -> None:
    """W18: it ended between the keeper's look and its answer; its write will be told, once."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world, concurrency=1, lease=30.0)
        gate, waits_in_recorder = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        @worker.handler("work")
        async def work(payload: None) -> None:
            await gate.wait()

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.settle()
            written = hold_up_writes(world)

            async def end_and_lose() -> None:
                gate.set()
                for _ in range(20):
                    await asyncio.sleep(0)
                await take_over(world, job.id)
                waits_in_recorder.set()

            def between() -> None:
                asyncio.run_coroutine_threadsafe(end_and_lose(), loop)
                assert waits_in_recorder.wait(5.0)

            world.driver.keeper_hook = between
            await world.advance(10.0)
            assert waits_in_recorder.is_set()
            assert errors_of(handle) == []
            written.set()
            await world.settle()
            [error] = errors_of(handle)
            assert isinstance(error, tenure.StateTransitionError)
            assert error.operation == "complete"


@each_store
async def test_w18_prefetched_jobs_are_kept_as_well(store: str, tmp_path: Path) -> None:
    """W18, W6: with `prefetch`, a job that waits here for a slot is nobody else's."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world, concurrency=1, prefetch=1, lease=30.0)
        gate = asyncio.Event()
        starts: list[str] = []

        @worker.handler("work")
        async def work(payload: str) -> None:
            starts.append(payload)
            await gate.wait()

        async with running(worker) as handle:
            for payload in ("a", "b"):
                await world.queue.dispatch("work", payload)
            await world.advance(100.0)
            assert await lease_ends(world) == [after(world, 30.0)] * 2
            gate.set()
            await world.settle()
            assert starts == ["a", "b"]
            assert errors_of(handle) == []


async def test_w18_the_keeper_goes_on_after_the_store_was_away() -> None:
    """W18, W19: tried again at the next tick, a twelfth of the lease later."""
    async with open_world(capabilities=ALONE) as world:
        worker = quiet_worker(world, lease=30.0)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> None:
            await gate.wait()

        def away() -> None:
            raise unreachable()

        async with running(worker) as handle:
            await world.queue.dispatch("work")
            await world.advance(9.0)
            world.driver.keeper_hook = away
            await world.advance(5.0)
            assert extensions(world) == 2
            world.driver.keeper_hook = None
            await world.advance(2.0)
            assert extensions(world) == 3
            assert await lease_ends(world) == [after(world, 29.0)]
            assert [type(error) for error in errors_of(handle)] == [tenure.StoreUnavailable] * 2
            gate.set()
            await world.settle()


async def test_w18_an_expired_hold_that_nobody_reclaimed_is_extended() -> None:
    """Section 3: expiry only makes it reclaimable; work of an outage is not thrown away."""
    async with open_world(capabilities=ALONE) as world:
        worker = quiet_worker(world, lease=30.0)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> None:
            await gate.wait()

        def away() -> None:
            raise unreachable()

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            world.driver.keeper_hook = away
            await world.advance(100.0)
            assert (await lease_ends(world))[0] < world.clock.now()
            world.driver.keeper_hook = None
            await world.advance(2.5)
            assert (await lease_ends(world))[0] > world.clock.now()
            fail_writes(world, unreachable())
            gate.set()
            await world.advance(1.0)
            assert await world.state(job) == "completed"
            assert {type(error) for error in errors_of(handle)} == {tenure.StoreUnavailable}
