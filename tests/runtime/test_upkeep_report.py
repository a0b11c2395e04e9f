"""`queue.workers()`: a worker says that it is there, and nothing depends on it."""

import asyncio
import os
import platform
import socket
from pathlib import Path
from typing import Any

import tenure
from tenure.driver import Capability
from tests.runtime.arrange import hidden
from tests.runtime.scenes import Gates, errors_of, quiet_worker, running, shut_down, unreachable
from tests.runtime.world import World, each_store, open_world

BUSY = 15.0  # seconds between two reports of a worker that runs something
IDLE = 60.0  # and of one that does not


async def shown(world: World) -> list[str]:
    return [worker.id for worker in await world.queue.workers()]


def reports(world: World) -> int:
    return world.driver.calls.count("report")


@each_store
async def test_a_worker_is_shown_from_its_start_until_it_has_shut_down(
    store: str, tmp_path: Path
) -> None:
    """With what a person wants to know of it."""
    async with open_world(store, tmp_path) as world:
        assert await shown(world) == []
        worker = quiet_worker(world, name="mailer", concurrency=30, queues=("default", "mail"))
        gates = Gates()
        worker.register("work", gates)
        handle = worker.run()
        await world.settle()
        started = world.clock.now()
        [info] = await world.queue.workers()
        assert info == tenure.WorkerInfo(
            id=handle.worker_id,
            name="mailer",
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=("default", "mail"),
            concurrency=30,
            running=0,
            started_at=started,
            seen_at=started,
            version=tenure.__version__,
            python=platform.python_version(),
        )
        names = [f"job {number}" for number in range(25)]
        jobs = await world.queue.dispatch_many([tenure.Call("work", name) for name in names])
        await world.advance(BUSY)
        [info] = await world.queue.workers()
        assert info.started_at == started
        assert info.seen_at > started
        assert info.running == 25
        assert info.claimed_at is not None
        assert started <= info.claimed_at <= info.seen_at
        assert info.jobs == tuple(job.id for job in jobs[:20])  # bounded
        gates.let(*names)
        await world.advance(BUSY)
        [info] = await world.queue.workers()
        assert (info.running, info.jobs) == (0, ())
        assert await shut_down(world, handle) is None
        assert await shown(world) == []


@each_store
async def test_workers_are_shown_side_by_side_and_one_that_is_lost_for_a_while_only(
    store: str, tmp_path: Path
) -> None:
    """An aborted worker says nothing any more: its report runs out."""
    async with open_world(store, tmp_path) as world:
        busy, idle = quiet_worker(world), quiet_worker(world, queues=("other",))
        busy.register("work", Gates())
        handles = [busy.run(), idle.run(), quiet_worker(world, queues=("third",)).run()]
        names = [handle.worker_id for handle in handles]
        await world.queue.dispatch("work", "x")
        await world.advance(BUSY)
        assert await shown(world) == sorted(names)
        for handle in handles[:2]:
            handle.abort()
            await handle.wait()
        await world.advance(2 * BUSY - 1.0)
        assert await shown(world) == sorted(names)
        await world.advance(BUSY + 1.0)
        assert await shown(world) == sorted(names[1:])
        await world.advance(3 * IDLE - 4 * BUSY)
        assert await shown(world) == names[2:]
        await world.advance(600.0)
        assert await shown(world) == names[2:]
        assert await shut_down(world, handles[2]) is None


async def test_a_worker_reports_four_times_a_minute_while_it_runs_something_else_once() -> None:
    """Or up to a fifth sooner: a report wakes all the idle workers of a file."""
    async with open_world() as world:
        worker = quiet_worker(world)
        gates = Gates()
        worker.register("work", gates)
        async with running(worker):
            await world.advance(600.0)
            assert 10 <= reports(world) <= 14
            before = reports(world)
            await world.queue.dispatch("work", "x")
            await world.advance(240.0)
            assert 15 <= reports(world) - before <= 21
            gates.let("x")
            await world.settle()


async def test_a_store_that_shows_no_workers_is_not_told_of_any() -> None:
    """`Capability.PRESENCE` says so before any call."""
    async with open_world(**hidden("memory", Capability.PRESENCE)) as world:
        handle = quiet_worker(world).run()
        await world.advance(60.0)
        assert await shut_down(world, handle) is None
        assert reports(world) == 0


async def test_an_outage_is_reported_and_the_worker_works_on() -> None:
    """It is shown again as soon as the store hears of it; lost reports hide nobody."""
    async with open_world() as world:
        worker = quiet_worker(world)
        worker.register("work", Gates())
        async with running(worker) as handle:
            await world.settle()
            world.driver.fail("report", unreachable(), times=7)
            await world.advance(IDLE + BUSY)
            assert await shown(world) == [handle.worker_id]
            await world.advance(6 * BUSY)
            errors = errors_of(handle)
            assert [type(error) for error in errors] == [tenure.StoreUnavailable] * 7
            assert handle.healthy
            await world.advance(3 * IDLE - 7 * BUSY)
            assert await shown(world) == [handle.worker_id]


async def test_a_shutdown_says_nothing_of_a_last_report_that_failed() -> None:
    """What is shown runs out by itself."""
    async with open_world() as world:
        handle = quiet_worker(world).run()
        await world.settle()
        world.driver.fail("report", unreachable(), times=10)
        assert await shut_down(world, handle) is None
        assert await shown(world) == [handle.worker_id]
        await world.advance(3 * IDLE)
        assert await shown(world) == []


async def test_a_report_that_hangs_does_not_hold_up_a_shutdown_past_its_bound() -> None:
    """W23: nothing depends on it."""
    async with open_world() as world:
        handle = quiet_worker(world).run()
        gate = world.driver.hold_up("report")
        await world.settle()
        assert await shut_down(world, handle) is None
        assert not handle.running
        gate.set()
        await world.settle()
        assert await shown(world) == []


async def test_the_last_report_is_the_last_to_arrive() -> None:
    """One that is in flight at the shutdown is waited for, and none follows."""
    async with open_world() as world:
        arrived: list[float] = []
        gate = asyncio.Event()
        inner = world.inner.report

        async def report(worker: tenure.WorkerInfo, ttl: float) -> None:
            await gate.wait()
            arrived.append(ttl)
            await inner(worker, ttl)

        seen: Any = world.inner
        seen.report = report
        handle = quiet_worker(world).run()
        await world.settle()
        ending = asyncio.create_task(handle.shutdown(0.0))
        await world.settle()
        assert not ending.done()
        gate.set()
        await world.until(ending.done)
        assert arrived == [3 * IDLE, 0.0]
        assert await shown(world) == []
