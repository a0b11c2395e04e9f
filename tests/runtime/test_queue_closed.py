"""W26: a queue that is closed under its workers shuts them down, and says so."""

import asyncio
import threading
from pathlib import Path

import pytest

import tenure
from tenure.drivers.memory import MemoryDriver
from tests.runtime.scenes import errors_of, quiet_worker
from tests.runtime.world import each_store, open_world


@each_store
async def test_w26_closing_the_queue_shuts_its_workers_down_with_no_drain(
    store: str, tmp_path: Path
) -> None:
    """W26: each is told why; their jobs are put back while the store is still there."""
    async with open_world(store, tmp_path) as world:
        workers = [quiet_worker(world, concurrency=1) for _ in range(2)]
        cancelled: list[float] = []

        async def work(payload: None) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(world.clock.monotonic())
                raise

        for worker in workers:
            worker.register("work", work)
        handles = [worker.run() for worker in workers]
        jobs = await world.queue.dispatch_many([tenure.Call("work") for _ in range(2)])
        await world.advance(1.0)
        assert [await world.state(job) for job in jobs] == ["processing"] * 2
        await asyncio.wait_for(world.queue.close(), 10.0)
        assert cancelled == [1.0, 1.0]
        for handle in handles:
            assert not handle.running
            [error] = errors_of(handle)
            assert isinstance(error, tenure.RuntimeUnavailable)
            assert "closed" in str(error)
            assert await handle.next_error() is None
        async with world.queue:
            records = [await world.job(job) for job in jobs]
            assert [(r.state, r.attempt) for r in records] == [("pending", 0)] * 2


async def test_w26_closing_the_queue_is_bounded_by_a_second_of_the_clock() -> None:
    """W26, W23: also with a claim in flight."""
    async with open_world() as world:
        handle = quiet_worker(world).run()
        world.driver.hold_up("claim")
        await world.settle()
        closing = asyncio.create_task(world.queue.close())
        await world.advance(1.0)
        await world.until(closing.done)
        closed, claim = errors_of(handle)
        assert isinstance(closed, tenure.RuntimeUnavailable)
        assert isinstance(claim, tenure.StoreUnavailable)


async def test_w26_no_worker_starts_on_a_closed_queue() -> None:
    """W4, W26: it says how to open the queue again."""
    async with open_world() as world:
        worker = quiet_worker(world)
        await world.queue.close()
        with pytest.raises(tenure.RuntimeUnavailable, match="await queue"):
            worker.run()


async def test_w26_closing_does_not_touch_workers_that_have_stopped() -> None:
    """W26: nothing is reported to them."""
    async with open_world() as world:
        handle = quiet_worker(world).run()
        assert await handle.shutdown() is None
        await world.queue.close()
        assert errors_of(handle) == []


async def test_w26_closing_reaches_a_worker_on_another_loop() -> None:
    """W26: in another thread; the store is closed after it has stopped."""
    queue = tenure.Queue(MemoryDriver())
    started, errors = threading.Event(), list[tenure.QueueError]()

    async def host() -> None:
        worker = tenure.Worker(queue)
        handle = worker.run()
        started.set()
        await handle.wait()
        errors.extend(errors_of(handle))

    thread = threading.Thread(target=lambda: asyncio.run(host()))
    thread.start()
    assert await asyncio.to_thread(started.wait, 10.0)
    await asyncio.wait_for(queue.close(), 10.0)
    thread.join(5.0)
    assert not thread.is_alive()
    [error] = errors
    assert isinstance(error, tenure.RuntimeUnavailable)


async def test_w26_a_worker_whose_loop_stands_still_holds_up_no_close() -> None:
    """W26: its host ran the loop for a while and left it; nobody can stop that worker in order."""
    queue = tenure.Queue(MemoryDriver())
    loop = asyncio.new_event_loop()
    handles: list[tenure.WorkerHandle] = []

    async def start() -> None:
        handles.append(tenure.Worker(queue).run())
        await asyncio.sleep(0)

    def host() -> None:
        loop.run_until_complete(start())

    thread = threading.Thread(target=host)
    thread.start()
    thread.join(5.0)
    try:
        await asyncio.wait_for(queue.close(), 5.0)
    finally:

        def end() -> None:
            handles[0].abort()
            loop.run_until_complete(handles[0].wait())
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

        thread = threading.Thread(target=end)
        thread.start()
        thread.join(5.0)
    assert not handles[0].running
    del handles[:]
