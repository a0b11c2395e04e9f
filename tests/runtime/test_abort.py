"""W24: ending without waiting: `abort`, a dropped handle, and the context manager; W11's host."""

import asyncio
import gc
import threading
from pathlib import Path

import pytest

import tenure
from tests.runtime.scenes import WatchedWrites, errors_of, quiet_worker, running, stubborn
from tests.runtime.world import each_store, open_world


@each_store
async def test_w24_abort_stops_at_once_and_records_nothing(store: str, tmp_path: Path) -> None:
    """W24: the handlers are cancelled, the jobs stay as they are until their leases run out."""
    async with open_world(store, tmp_path) as world:
        watched = WatchedWrites(world)
        worker = quiet_worker(world)
        cancelled: list[int] = []

        @worker.handler("work")
        async def work(payload: int) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.append(payload)

        handle = worker.run()
        jobs = await world.queue.dispatch_many([tenure.Call("work", n) for n in range(3)])
        await world.settle()
        handle.abort()
        await handle.wait()
        assert not handle.running
        assert sorted(cancelled) == [0, 1, 2]
        assert watched.outcomes == []
        assert [await world.state(job) for job in jobs] == ["processing"] * 3
        assert await handle.next_error() is None


@each_store
async def test_w24_jobs_in_flight_come_back_by_lease_recovery(store: str, tmp_path: Path) -> None:
    """W24: one start more, by whichever worker is there."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world, lease=10.0)
        gate = asyncio.Event()
        starts: list[int] = []

        @worker.handler("work")
        async def work(payload: None, job: tenure.RunningJob) -> None:
            starts.append(job.attempt)
            await gate.wait()

        aborted = worker.run()
        job = await world.queue.dispatch("work")
        await world.settle()
        aborted.abort()
        await aborted.wait()
        gate.set()
        async with running(worker) as handle:
            await world.advance(9.9)
            assert starts == [1]
            await world.advance(10.2)
            assert starts == [1, 2]
            assert await world.state(job) == "completed"
            assert errors_of(handle) == []
        assert errors_of(aborted) == []


async def test_w24_abort_does_not_wait_for_what_cannot_be_interrupted() -> None:
    """W24: nor for a claim or a write in flight."""
    async with open_world() as world:
        worker = quiet_worker(world, concurrency=2)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> None:
            await stubborn(gate)

        @worker.handler("quick")
        async def quick(payload: None) -> None:
            return None

        handle = worker.run()
        await world.queue.dispatch("work")
        await world.settle()
        held = [world.driver.hold_up(name) for name in ("record", "exchange", "claim")]
        await world.queue.dispatch("quick")
        await world.advance(0.1)
        handle.abort()
        await handle.wait()  # with a clock that stands still
        gate.set()
        for event in held:
            event.set()
        await world.settle()
        assert errors_of(handle) == []


async def test_w24_abort_may_be_called_at_any_time() -> None:
    """W24: in the same turn as `run()`, at every step of the start, twice, and after the end."""
    for steps in range(12):
        async with open_world() as world:
            worker = quiet_worker(world)

            @worker.handler("work")
            async def work(payload: None) -> None:
                await asyncio.Event().wait()

            await world.queue.dispatch("work")
            handle = worker.run()
            for _ in range(steps):
                await asyncio.sleep(0)
            handle.abort()
            handle.abort()
            await asyncio.wait_for(handle.wait(), 5.0)
            handle.abort()
            assert not handle.running
            assert await asyncio.wait_for(handle.next_error(), 5.0) is None
            assert await handle.shutdown() is None


async def test_w24_abort_ends_a_shutdown_that_drains() -> None:
    """W24: the one who waits for the shutdown is told."""
    async with open_world() as world:
        worker = quiet_worker(world)

        @worker.handler("work")
        async def work(payload: None) -> None:
            await asyncio.Event().wait()

        handle = worker.run()
        job = await world.queue.dispatch("work")
        await world.settle()
        ending = asyncio.create_task(handle.shutdown(100.0))
        await world.advance(1.0)
        handle.abort()
        await world.until(ending.done)
        assert ending.result() is None
        assert await world.state(job) == "processing"


async def test_w24_abort_at_the_very_end_of_a_shutdown_leaves_nobody_waiting() -> None:
    """W24: while the threads are being waited for, a little in real time."""
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
        await world.queue.dispatch("work")
        await world.advance(3.5)
        advancing = asyncio.create_task(world.advance(0.5))
        assert await asyncio.to_thread(entered.wait, 10.0)
        try:
            ending = asyncio.create_task(handle.shutdown(0))
            for _ in range(30):  # put back and written; the keeper's thread is what is left
                await asyncio.sleep(0)
            assert not ending.done()
            handle.abort()
            assert await asyncio.wait_for(ending, 5.0) is None
            assert not handle.running
        finally:
            gate.set()
        await advancing


# --- a dropped handle, the context manager --------------------------------------------------------


async def test_w24_a_handle_that_is_dropped_aborts_its_worker_with_a_warning() -> None:
    """W24: nobody could stop it any more."""
    async with open_world() as world:
        worker = quiet_worker(world)
        cancelled = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        handle = worker.run()
        worker_id = handle.worker_id
        job = await world.queue.dispatch("work")
        await world.settle()
        box = [handle]
        del handle
        with pytest.warns(ResourceWarning, match=worker_id):
            drop(box)
        await world.settle()
        await world.until(lambda: not _keepers())
        assert cancelled.is_set()
        assert await world.state(job) == "processing"


def drop(box: list[tenure.WorkerHandle]) -> None:
    """Let go of what was the only reference."""
    box.clear()
    gc.collect()


def _keepers() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "tenure-keeper"]


async def test_w24_a_handle_dropped_in_another_thread_aborts_its_worker_too() -> None:
    """W24: the collector runs wherever it likes."""
    async with open_world() as world:
        box = [quiet_worker(world).run()]
        await world.settle()
        seen: list[str] = []

        def elsewhere() -> None:
            with pytest.warns(ResourceWarning, match="dropped"):
                drop(box)
            seen.append("warned")

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join(5.0)
        assert seen == ["warned"]
        await world.until(lambda: not _keepers())


async def test_w24_a_handle_of_a_stopped_worker_is_dropped_in_silence() -> None:
    """W24: warnings are errors here."""
    async with open_world() as world:
        handle = quiet_worker(world).run()
        assert await handle.shutdown() is None
        del handle
        gc.collect()


@each_store
async def test_w24_leaving_the_context_shuts_the_worker_down(store: str, tmp_path: Path) -> None:
    """W24: in order, with the worker's own drain time."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world, drain_timeout=5.0)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> str:
            await gate.wait()
            return "done"

        async def host() -> tenure.WorkerHandle:
            async with worker.run() as handle:
                await leave.wait()
            return handle

        leave = asyncio.Event()
        hosting = asyncio.create_task(host())
        job = await world.queue.dispatch("work")
        await world.settle()
        leave.set()
        await world.advance(3.0)
        assert not hosting.done()
        gate.set()
        await world.until(hosting.done)
        handle = hosting.result()
        assert not handle.running
        assert await world.state(job) == "completed"
        assert errors_of(handle) == []


async def test_w24_leaving_the_context_keeps_the_errors_for_reading() -> None:
    """W24, W21: `__aexit__` takes none of them."""
    async with open_world() as world:
        worker = quiet_worker(world)

        @worker.handler("fail")
        async def fail(payload: None) -> None:
            raise ValueError("no")

        async with worker.run() as handle:
            await world.queue.dispatch("fail")
            await world.advance(0.1)
        assert [type(error) for error in errors_of(handle)] == [tenure.JobFailed]
        assert await handle.next_error() is None


async def test_w24_the_body_of_the_context_may_raise() -> None:
    """W24: the worker is shut down, and the exception goes on its way."""
    async with open_world() as world:
        worker = quiet_worker(world)
        handles: list[tenure.WorkerHandle] = []

        async def host() -> None:
            async with worker.run() as handle:
                handles.append(handle)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await host()
        assert not handles[0].running
        assert errors_of(handles[0]) == []
