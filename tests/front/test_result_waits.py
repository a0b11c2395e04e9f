"""`JobHandle.result`: who waits is woken promptly; many ask little; nothing is left behind."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.drivers.memory import MemoryDriver
from tenure.waits import Waits
from tests.front.test_control import finish
from tests.runtime.scenes import quiet_worker, running, unreachable
from tests.runtime.world import World, each_store, open_world


def looks(world: World) -> int:
    return world.driver.calls.count("get")


def tasks_of_waits() -> list[str]:
    return [t.get_name() for t in asyncio.all_tasks() if t.get_name() == "tenure-waits"]


def at_rest(world: World) -> bool:
    """Nobody waits, and nothing is left of those who did."""
    return not world.queue.waits.anyone and tasks_of_waits() == []


@asynccontextmanager
async def waiting(
    world: World, *jobs: tenure.JobHandle
) -> AsyncGenerator[list["asyncio.Task[Any]"]]:
    """Tasks that wait for the results; those that still do are cancelled in the end."""
    tasks = [asyncio.create_task(job.result()) for job in jobs]
    await world.settle()
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@each_store
async def test_the_end_that_a_worker_of_the_same_queue_records_wakes_at_once(
    store: str, tmp_path: Path
) -> None:
    """No time passes between the end and the result, however long it was waited for."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: int) -> int:
            await gate.wait()
            return payload

        async with running(worker):
            job = await world.queue.dispatch("work", 42)
            async with waiting(world, job) as (task,):
                await world.advance(100.0)
                before = looks(world)
                gate.set()
                await world.settle()
                assert task.done()
                assert task.result() == 42
                assert looks(world) == before + 1


async def test_a_worker_on_another_loop_wakes_too() -> None:
    """The clock stands still, so that nothing would ever be looked at again."""
    async with open_world() as world:
        job = await world.queue.dispatch("work")  # before the worker's first and only claim
        stop = threading.Event()

        async def host() -> None:
            worker = quiet_worker(world)

            @worker.handler("work")
            def work(payload: None) -> str:
                return "done"

            async with worker.run():
                await asyncio.to_thread(stop.wait, 20.0)

        task = asyncio.create_task(job.result())
        await world.until(lambda: tasks_of_waits() != [])
        thread = threading.Thread(target=lambda: asyncio.run(host()))
        thread.start()
        try:
            assert await asyncio.wait_for(task, 20.0) == "done"
        finally:
            stop.set()
            await asyncio.to_thread(thread.join, 10.0)


async def test_an_end_during_a_look_is_not_missed() -> None:
    """What was read before the end is not the last word."""
    async with open_world() as world:
        worker = quiet_worker(world)
        end = asyncio.Event()

        @worker.handler("work")
        async def work(payload: int) -> int:
            await end.wait()
            return payload

        async with running(worker):
            job = await world.queue.dispatch("work", 1)
            await world.settle()
            gate = world.driver.hold_up("get", after=True)
            async with waiting(world, job) as (task,):
                end.set()
                await world.settle()
                assert await world.inner.get(job.id) is not None
                assert not task.done()
                gate.set()
                await world.settle()
                assert task.done()


async def test_an_attempt_that_is_retried_is_no_end() -> None:
    """It goes on waiting for the job."""
    async with open_world() as world:
        worker = quiet_worker(world)
        attempts = 0

        @worker.handler("work", retry=tenure.RetryPolicy(base=50.0, jitter=False))
        async def work(payload: None) -> int:
            nonlocal attempts
            attempts += 1
            if attempts == 1:
                raise ValueError("not yet")
            return attempts

        async with running(worker):
            job = await world.queue.dispatch("work")
            async with waiting(world, job) as (task,):
                await world.advance(49.0)
                assert not task.done()
                await world.advance(1.0)
                assert task.result() == 2


@each_store
@pytest.mark.parametrize(
    ("lasts", "late", "most"),
    [(0.05, 0.011, 8), (1.0, 0.07, 50), (10.0, 0.7, 90), (300.0, 1.0, 380)],
)
async def test_an_end_elsewhere_is_found_soon_with_few_looks(
    store: str, tmp_path: Path, lasts: float, late: float, most: int
) -> None:
    """A sixteenth of the time it took, ten milliseconds at least and a second at most."""
    async with open_world(store, tmp_path) as world:
        job = await world.queue.dispatch("work")
        async with waiting(world, job) as (task,):
            await world.advance(lasts)
            await finish(world, tenure.Completed(b"7"))
            assert not task.done()
            await world.advance(late)
            assert task.done()
            assert task.result() == 7
            assert looks(world) <= most


async def test_many_who_wait_share_one_task_and_a_bounded_rate() -> None:
    """Five hundred looks in a second, eight at once; each is found all the same."""
    async with open_world() as world:
        jobs = await world.queue.dispatch_many([tenure.Call("work", n) for n in range(300)])
        at_once, most = 0, 0

        async def counted(call: Callable[[], Awaitable[Any]]) -> Any:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0)
            at_once -= 1
            return await call()

        async with waiting(world, *jobs) as tasks:
            world.driver.hooks["get"] = counted
            assert len(tasks_of_waits()) == 1
            await world.advance(1.0)
            before = looks(world)
            await world.advance(2.0)
            assert 900 <= looks(world) - before <= 1032
            assert 1 < most <= 8
            claims = await world.claim_elsewhere(300)
            await world.inner.record([(c.hold, tenure.Completed(c.job.payload)) for c in claims])
            await world.advance(1.0)
            assert [task.result() for task in tasks] == list(range(300))


async def test_two_who_wait_for_one_job_share_the_looks_and_not_the_value() -> None:
    """What one does with its result is no business of the other."""
    async with open_world() as world:
        job = await world.queue.dispatch("work")
        async with waiting(world, job, job) as tasks:
            await world.advance(20.0)
            before = looks(world)
            await world.advance(10.0)
            assert looks(world) - before <= 10
            await finish(world, tenure.Completed(b'{"answer":[42]}'))
            await world.advance(1.0)
            first, second = (task.result() for task in tasks)
            assert first == second == {"answer": [42]}
            assert first is not second


async def test_a_wait_that_is_given_up_leaves_nothing_behind() -> None:
    """Cancelled, or out of time: no task, no look, nothing for a worker to do."""
    async with open_world() as world:
        jobs = [await world.queue.dispatch("work") for _ in range(2)]
        assert at_rest(world)
        async with waiting(world, *jobs) as tasks:
            assert not at_rest(world)
            tasks[0].cancel()
            await world.advance(20.0)
            assert tasks[0].cancelled()
            before = looks(world)
            await world.advance(10.0)
            assert 9 <= looks(world) - before <= 10  # for the second alone
        assert at_rest(world)
        with pytest.raises(TimeoutError):
            await world.run(jobs[0].result(timeout=5))
        assert at_rest(world)
        before = looks(world)
        await world.advance(60.0)
        assert looks(world) == before


async def test_a_job_that_is_retried_after_its_end_is_waited_for_anew() -> None:
    """Also while somebody has not yet taken note of the first end."""
    async with open_world() as world:
        job = await world.queue.dispatch("work")
        await world.queue.cancel(job.id)
        with pytest.raises(tenure.JobCancelled):
            await job.result()
        await world.queue.retry(job.id)
        async with waiting(world, job) as (task,):
            await world.advance(1.0)
            await finish(world, tenure.Completed(b"1"))
            await world.advance(1.0)
            assert task.result() == 1


@each_store
async def test_closing_the_queue_ends_every_wait_with_an_error(store: str, tmp_path: Path) -> None:
    """It says why; once the queue is open again, one can wait again."""
    async with open_world(store, tmp_path) as world:
        jobs = [await world.queue.dispatch("work") for _ in range(2)]
        async with waiting(world, *jobs) as tasks:
            await world.advance(1.0)
            await world.queue.close()
            await asyncio.wait(tasks, timeout=10.0)
            for task, job in zip(tasks, jobs, strict=True):
                with pytest.raises(tenure.RuntimeUnavailable, match=f"closed while job {job.id}"):
                    task.result()
        assert at_rest(world)
        with pytest.raises(tenure.RuntimeUnavailable, match="the queue is closed"):
            await jobs[0].result()
        if store == "sqlite":  # a store in memory is gone with its queue
            async with world.queue:
                with pytest.raises(TimeoutError):
                    await jobs[0].result(timeout=0)


async def test_closing_the_queue_ends_a_wait_on_another_loop() -> None:
    queue = tenure.Queue(MemoryDriver())
    waits, errors = threading.Event(), list[BaseException]()

    async def wait() -> None:
        job = await queue.dispatch("work")
        task = asyncio.create_task(job.result())
        for _ in range(20):
            await asyncio.sleep(0)
        assert queue.waits.anyone
        waits.set()
        try:
            await task
        except tenure.RuntimeUnavailable as error:
            errors.append(error)

    thread = threading.Thread(target=lambda: asyncio.run(wait()))
    thread.start()
    assert await asyncio.to_thread(waits.wait, 10.0)
    await queue.close()
    await asyncio.to_thread(thread.join, 10.0)
    assert not thread.is_alive()
    assert "closed" in str(errors[0])


async def test_a_store_that_cannot_be_asked_is_told_to_whoever_waits() -> None:
    """The others go on, and so can the one, by waiting once more."""
    async with open_world() as world:
        jobs = [await world.queue.dispatch("work") for _ in range(2)]
        async with waiting(world, *jobs) as tasks:
            await world.advance(10.0)
            world.driver.fail("get", unreachable(), times=1)
            await world.advance(1.0)
            ended = [task for task in tasks if task.done()]
            assert len(ended) == 1
            with pytest.raises(tenure.StoreUnavailable):
                ended[0].result()
            claims = await world.claim_elsewhere(2)
            await world.inner.record([(c.hold, tenure.Completed(b"1")) for c in claims])
            await world.advance(1.0)
            assert all(task.done() for task in tasks)
            assert await jobs[0].result() == await jobs[1].result() == 1


class Noted(Waits):
    """Also keeps what it is told."""

    def __init__(self, queue: tenure.Queue) -> None:
        super().__init__(queue.driver, queue.clock)
        self.told: list[list[str]] = []

    def settled(self, job_ids: Sequence[str]) -> None:
        self.told.append(list(job_ids))
        super().settled(job_ids)


async def test_where_nobody_waits_a_worker_tells_nobody() -> None:
    """An outcome costs nothing more then."""
    async with open_world() as world:
        noted = world.queue.waits = Noted(world.queue)
        worker = quiet_worker(world)

        @worker.handler("work")
        async def work(payload: float) -> None:
            await world.clock.sleep(payload)

        async with running(worker):
            await world.queue.dispatch_many([tenure.Call("work", 0.0) for _ in range(10)])
            await world.advance(1.0)
            assert (await world.queue.counts()).completed == 10
            assert noted.told == []
            job = await world.queue.dispatch("work", 1.0)
            async with waiting(world, job) as (task,):
                await world.advance(1.0)
                assert task.done()
            assert noted.told == [[job.id]]
