"""W23: shutting down: drain, cancel and put back, stop, and say what happened."""

import asyncio
from pathlib import Path

import tenure
from tests.runtime.scenes import (
    Work,
    errors_of,
    quiet_worker,
    shut_down,
)
from tests.runtime.world import each_store, open_world


@each_store
async def test_w23_running_handlers_may_finish_during_the_drain(store: str, tmp_path: Path) -> None:
    """W23: their outcomes are recorded, nothing is claimed, and it ends as soon as they do."""
    async with open_world(store, tmp_path) as world:
        work = Work(world)
        worker = quiet_worker(world, concurrency=1)
        worker.register("work", work)
        handle = worker.run()
        job = await world.queue.dispatch("work")
        waiting = await world.queue.dispatch("work")
        await world.settle()
        ending = asyncio.create_task(handle.shutdown(30.0))
        await world.advance(10.0)
        during = (ending.done(), handle.running)
        assert during == (False, True)
        work.gate.set()
        await world.until(ending.done)
        assert ending.result() is None
        assert not handle.running
        record = await world.job(job)
        assert (record.state, record.result) == ("completed", "done")
        untouched = await world.job(waiting)
        assert (untouched.state, untouched.attempt, untouched.serial) == ("pending", 0, 0)
        assert work.cancelled_at == []
        assert errors_of(handle) == []


@each_store
async def test_w23_what_still_runs_after_the_drain_is_cancelled_and_put_back(
    store: str, tmp_path: Path
) -> None:
    """W23: with no attempt spent, due at once, at its place."""
    async with open_world(store, tmp_path) as world:
        work = Work(world)
        worker = quiet_worker(world)
        worker.register("work", work)
        handle = worker.run()
        job = await world.queue.dispatch("work")
        await world.settle()
        due = (await world.job(job)).run_at
        ending = asyncio.create_task(handle.shutdown(5.0))
        await world.advance(4.9)
        assert work.cancelled_at == []
        await world.advance(0.1)
        assert work.cancelled_at == [5.0]
        await world.until(ending.done)
        assert ending.result() is None
        record = await world.job(job)
        assert (record.state, record.attempt, record.run_at) == ("pending", 0, due)
        assert errors_of(handle) == []


@each_store
async def test_w23_a_drain_of_nothing_cancels_at_once(store: str, tmp_path: Path) -> None:
    """W23: no time of the clock passes at all."""
    async with open_world(store, tmp_path) as world:
        work = Work(world)
        worker = quiet_worker(world)
        worker.register("work", work)
        handle = worker.run()
        jobs = await world.queue.dispatch_many([tenure.Call("work") for _ in range(16)])
        await world.settle()
        ending = asyncio.create_task(handle.shutdown(0))
        await world.until(ending.done)
        assert ending.result() is None
        assert work.cancelled_at == [0.0] * 16
        assert [await world.state(job) for job in jobs] == ["pending"] * 16
        assert errors_of(handle) == []


@each_store
async def test_w23_the_default_drain_is_the_workers(store: str, tmp_path: Path) -> None:
    """W23: `drain_timeout`."""
    async with open_world(store, tmp_path) as world:
        work = Work(world)
        worker = quiet_worker(world, drain_timeout=7.0)
        worker.register("work", work)
        handle = worker.run()
        await world.queue.dispatch("work")
        await world.settle()
        ending = asyncio.create_task(handle.shutdown())
        await world.advance(8.0)
        await world.until(ending.done)
        assert work.cancelled_at == [7.0]
        assert errors_of(handle) == []


@each_store
async def test_w23_leases_are_kept_during_the_drain(store: str, tmp_path: Path) -> None:
    """W23, I6: a long drain lets nobody else have the jobs."""
    async with open_world(store, tmp_path) as world:
        work = Work(world)
        worker = quiet_worker(world, lease=6.0)
        worker.register("work", work)
        handle = worker.run()
        job = await world.queue.dispatch("work")
        await world.settle()
        ending = asyncio.create_task(handle.shutdown(60.0))
        await world.advance(30.0)
        assert not (await world.inner.expired(10)).holds
        work.gate.set()
        await world.until(ending.done)
        assert ending.result() is None
        record = await world.job(job)
        assert (record.state, record.attempt) == ("completed", 1)
        assert work.starts == 1


@each_store
async def test_w23_a_second_call_with_less_time_shortens_the_drain(
    store: str, tmp_path: Path
) -> None:
    """W23: counted from the second call; both return."""
    async with open_world(store, tmp_path) as world:
        work = Work(world)
        worker = quiet_worker(world)
        worker.register("work", work)
        handle = worker.run()
        await world.queue.dispatch("work")
        await world.settle()
        first = asyncio.create_task(handle.shutdown(100.0))
        await world.advance(10.0)
        second = asyncio.create_task(handle.shutdown(5.0))
        await world.advance(5.0)
        assert work.cancelled_at == [15.0]
        await world.until(lambda: first.done() and second.done())
        assert (first.result(), second.result()) == (None, None)


@each_store
async def test_w23_a_second_call_with_more_time_changes_nothing(store: str, tmp_path: Path) -> None:
    """W23: a drain is never lengthened."""
    async with open_world(store, tmp_path) as world:
        work = Work(world)
        worker = quiet_worker(world)
        worker.register("work", work)
        handle = worker.run()
        await world.queue.dispatch("work")
        await world.settle()
        first = asyncio.create_task(handle.shutdown(5.0))
        await world.advance(1.0)
        second = asyncio.create_task(handle.shutdown(100.0))
        await world.advance(4.0)
        assert work.cancelled_at == [5.0]
        await world.until(lambda: first.done() and second.done())


async def test_w23_a_handler_that_finishes_while_it_is_cancelled_has_finished() -> None:
    """W11, W23: what is recorded follows what it really did; it is not run again."""
    async with open_world() as world:
        worker = quiet_worker(world)

        @worker.handler("work")
        async def work(payload: None) -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "in time"
            return "never"

        handle = worker.run()
        job = await world.queue.dispatch("work")
        await world.settle()
        assert await shut_down(world, handle) is None
        record = await world.job(job)
        assert (record.state, record.result) == ("completed", "in time")
        assert errors_of(handle) == []


# --- calling it at any time -----------------------------------------------------------------------


@each_store
async def test_w23_shutdown_may_be_called_before_the_worker_has_begun(
    store: str, tmp_path: Path
) -> None:
    """W23: in the same turn as `run()`."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world)
        job = await world.queue.dispatch("work")
        handle = worker.run()
        assert await handle.shutdown() is None
        assert not handle.running
        assert (await world.job(job)).serial == 0


async def test_w23_shutdown_may_be_called_before_the_first_claim_is_answered() -> None:
    """W23: at every step of the start."""
    for steps in range(12):
        async with open_world() as world:
            work = Work(world)
            worker = quiet_worker(world)
            worker.register("work", work)
            job = await world.queue.dispatch("work")
            handle = worker.run()
            for _ in range(steps):
                await asyncio.sleep(0)
            assert await shut_down(world, handle) is None
            record = await world.job(job)
            assert (record.state, record.attempt) == ("pending", 0)
            assert errors_of(handle) == []


@each_store
async def test_w23_shutdown_may_be_called_twice(store: str, tmp_path: Path) -> None:
    """W23: at once, one after the other, and long after."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world)
        handle = worker.run()
        await world.settle()
        both = await asyncio.gather(handle.shutdown(), handle.shutdown())
        assert [*both] == [None, None]
        assert await handle.shutdown() is None
        assert await handle.shutdown(0) is None
        assert await handle.wait() is None  # type: ignore[func-returns-value]
        handle.abort()
        assert not handle.running


@each_store
async def test_w23_shutdown_returns_the_first_unread_error_and_takes_it_out(
    store: str, tmp_path: Path
) -> None:
    """W23: the next call gives the next one."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world)

        @worker.handler("fail")
        async def fail(payload: int) -> None:
            raise ValueError(payload)

        handle = worker.run()
        await world.queue.dispatch_many([tenure.Call("fail", n) for n in range(3)])
        await world.advance(0.1)
        errors = [
            handle.try_next_error(),
            await handle.shutdown(),
            await handle.shutdown(),
            await handle.shutdown(),
        ]
        messages = [e.failure.message if isinstance(e, tenure.JobFailed) else e for e in errors]
        assert messages == ["ValueError: 0", "ValueError: 1", "ValueError: 2", None]
