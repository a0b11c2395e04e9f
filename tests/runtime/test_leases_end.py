"""W18, W12: when the keeper stops extending: grace over, worker ended, loop closed."""

import asyncio
import gc
import threading
from datetime import datetime, timedelta

import tenure
from tenure.driver import Capability
from tenure.drivers.memory import MemoryDriver
from tests.runtime.scenes import (
    errors_of,
    quiet_worker,
    running,
    shut_down,
    stubborn,
    without,
)
from tests.runtime.world import World, open_world

# No reclaim by the worker itself: what its keeper does not keep stays visible as run out.
ALONE = without(MemoryDriver, Capability.RECLAIM)


async def lease_ends(world: World) -> list[datetime]:
    """When the leases of the holds end, as the store has them now."""
    far = world.clock.now() + timedelta(days=365)
    return [entry.until for entry in (await world.inner.expired(100, now=far)).holds]


async def _until_when_kept(overdue_grace: float | None, lease: float, timeout: float) -> float:
    """For how long after its start the keeper extends a handler that cannot be interrupted."""
    async with open_world(capabilities=ALONE) as world:
        worker = quiet_worker(world, lease=lease, job_timeout=timeout, overdue_grace=overdue_grace)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> None:
            await stubborn(gate)

        handle = worker.run()
        await world.queue.dispatch("work")
        await world.advance(0.0)
        started = world.clock.now()
        await world.advance(2.5 * lease + 2 * timeout)
        [end] = await lease_ends(world)
        [error] = errors_of(handle)
        assert isinstance(error, tenure.JobOverdue)
        gate.set()
        await world.settle()
        assert await shut_down(world, handle) is None
        return (end - started).total_seconds() - lease


async def test_w18_it_stops_extending_when_the_grace_past_the_deadline_is_over() -> None:
    """W18, W12: the deadline at 20 s, the grace of 50 s: extended up to 70 s, and no more."""
    assert await _until_when_kept(overdue_grace=50.0, lease=30.0, timeout=20.0) == 60.0


async def test_w18_the_grace_is_the_time_limit_by_default() -> None:
    """W12: 50 s and 50 s more."""
    assert await _until_when_kept(overdue_grace=None, lease=30.0, timeout=50.0) == 90.0


async def test_w18_the_grace_is_at_least_one_lease_by_default() -> None:
    """W12: 5 s and a lease of 30 s more."""
    assert await _until_when_kept(overdue_grace=None, lease=30.0, timeout=5.0) == 30.0


async def test_w18_a_grace_of_nothing_ends_with_the_deadline() -> None:
    """W12: the option is taken as it is given."""
    assert await _until_when_kept(overdue_grace=0.0, lease=30.0, timeout=25.0) == 20.0


async def test_w18_what_an_overdue_handler_returns_counts_while_its_hold_is_current() -> None:
    """W12, W18: its lease has run out long ago, but nobody has reclaimed it."""
    async with open_world(capabilities=ALONE) as world:
        worker = quiet_worker(world, lease=30.0, job_timeout=20.0, overdue_grace=10.0)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> str:
            await stubborn(gate)
            return "late"

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.advance(100.0)
            gate.set()
            await world.settle()
            record = await world.job(job)
            assert (record.state, record.result) == ("completed", "late")
            [error] = errors_of(handle)
            assert isinstance(error, tenure.JobOverdue)


async def test_w18_it_stops_when_the_worker_has_ended() -> None:
    """W18: after a shutdown and after an abort."""
    async with open_world() as world:
        worker = quiet_worker(world)
        for end in ("shutdown", "abort"):
            before = set(threading.enumerate())
            handle = worker.run()
            await world.settle()
            [thread] = [t for t in threading.enumerate() if t.name == "tenure-keeper"]
            assert thread not in before
            if end == "shutdown":
                assert await handle.shutdown() is None
            else:
                handle.abort()
                await handle.wait()
            assert not thread.is_alive()
            assert errors_of(handle) == []


def test_w18_it_stops_when_the_loop_is_closed_under_it() -> None:
    """W18: nothing ended the worker; a job must not be kept by a program that cannot run it."""
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)  # the tasks that are torn off
    queue = tenure.Queue(MemoryDriver())
    worker = tenure.Worker(queue, lease=0.12)

    async def start() -> tenure.WorkerHandle:
        handle = worker.run()
        for _ in range(50):  # every task has come to its first wait
            await asyncio.sleep(0)
        return handle

    handle = loop.run_until_complete(start())
    [thread] = [t for t in threading.enumerate() if t.name == "tenure-keeper"]
    loop.close()
    thread.join(5.0)
    assert not thread.is_alive()
    del handle, loop
    gc.collect()
