"""W13: what becomes of the jobs when the host cancels everything."""

import asyncio
import contextlib
import threading
from pathlib import Path

import pytest

import tenure
from tenure.clock import SystemClock
from tenure.driver import Driver
from tenure.drivers.memory import MemoryDriver
from tests.runtime.arrange import database, turns
from tests.runtime.scenes import errors_of
from tests.runtime.world import World, each_store, open_world


async def cancel_everything(world: World) -> None:
    """What `asyncio.run` does at its end: cancel all tasks at once, and wait for them."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    everything = asyncio.gather(*tasks, return_exceptions=True)
    await world.until(everything.done)


@each_store
async def test_w13_when_the_host_cancels_everything_jobs_are_released_and_none_has_failed(
    store: str, tmp_path: Path
) -> None:
    """W13: an abort, with time for the release: no attempt is spent, no error reported."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, concurrency=2, prefetch=1)
        started: list[int] = []

        @worker.handler("work")
        async def work(payload: int) -> None:
            started.append(payload)
            await asyncio.Event().wait()

        jobs = await world.queue.dispatch_many([tenure.Call("work", n) for n in range(3)])
        handle = worker.run()
        await world.settle()
        assert started == [0, 1]
        await cancel_everything(world)
        assert not handle.running
        for job in jobs:
            record = await world.job(job)
            assert (record.state, record.attempt, record.error) == ("pending", 0, None)
        assert errors_of(handle) == []


@each_store
async def test_w13_what_handlers_do_while_the_host_cancels_them_is_recorded(
    store: str, tmp_path: Path
) -> None:
    """W13, W11: one that returns has completed, one that raises has failed by itself."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue)

        @worker.handler("work")
        async def work(payload: str) -> str:
            try:
                await asyncio.Event().wait()
            finally:
                if payload == "return":
                    return "saved"  # noqa: B012 - a handler may do just this
                if payload == "raise":
                    raise ValueError("lost the file")
            return ""

        jobs = [await world.queue.dispatch("work", how) for how in ("return", "raise", "give way")]
        handle = worker.run()
        await world.settle()
        await cancel_everything(world)
        records = [await world.job(job) for job in jobs]
        assert [record.state for record in records] == ["completed", "failed", "pending"]
        assert [record.attempt for record in records] == [1, 1, 0]
        [error] = errors_of(handle)
        assert isinstance(error, tenure.JobFailed)
        assert error.failure.message == "ValueError: lost the file"


async def test_w13_a_job_whose_task_had_not_begun_is_released_too() -> None:
    """W13: the host cancels in the very turn of the loop in which the claim was answered."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue)
        started: list[int] = []

        @worker.handler("work")
        async def work(payload: int) -> None:
            started.append(payload)

        job = await world.queue.dispatch("work", 1)
        gate = world.driver.hold_up("claim", after=True)
        handle = worker.run()
        await world.settle()
        gate.set()
        for _ in range(100):  # one turn at a time, so as to see the very first
            await turns(1)
            if [task for task in asyncio.all_tasks() if task.get_name() == job.id]:
                break
        assert started == []
        await cancel_everything(world)
        record = await world.job(job)
        assert (record.state, record.attempt) == ("pending", 0)
        assert started == []
        assert errors_of(handle) == []


async def test_w13_an_outcome_that_waits_for_the_last_progress_is_recorded_too() -> None:
    """W13: the host cancels in the very turn in which the task that writes it was made."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None, job: tenure.RunningJob) -> str:
            await gate.wait()
            await job.log("nearly")
            return "done"

        job = await world.queue.dispatch("work")
        handle = worker.run()
        await world.settle()
        gate.set()
        for _ in range(100):  # one turn at a time, so as to see the very first
            await turns(1)
            if [task for task in asyncio.all_tasks() if task.get_name() == "tenure-progress"]:
                break
        await cancel_everything(world)
        record = await world.job(job)
        assert (record.state, record.result) == ("completed", "done")
        assert errors_of(handle) == []


@each_store
async def test_w13_the_job_of_a_thread_is_left_to_its_lease_when_the_host_cancels(
    store: str, tmp_path: Path
) -> None:
    """W13, W12: the thread may still run, so its job must not start elsewhere before that."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue)
        gate = threading.Event()
        started = threading.Event()

        @worker.handler("work")
        def work(payload: None) -> None:
            started.set()
            gate.wait(20)

        job = await world.queue.dispatch("work")
        handle = worker.run()
        await world.until(started.is_set)
        await cancel_everything(world)
        record = await world.job(job)
        assert (record.state, record.attempt, record.error) == ("processing", 1, None)
        assert errors_of(handle) == []
        gate.set()


def driver_for(store: str, tmp_path: Path) -> Driver:
    if store == "memory":
        return MemoryDriver()
    from tenure.drivers.sqlite import SqliteDriver

    return SqliteDriver(database(tmp_path), clock=SystemClock())


class Program:
    """Dispatches two jobs, and ends in one of three ways while both run."""

    def __init__(self, driver: Driver, leaving: str) -> None:
        self.driver = driver
        self.leaving = leaving
        self.jobs: list[str] = []
        self.handle: tenure.WorkerHandle | None = None

    async def main(self) -> None:
        queue = tenure.Queue(self.driver)
        worker = tenure.Worker(queue)
        both = asyncio.Event()
        begun: list[int] = []

        @worker.handler("work")
        async def work(payload: int) -> None:
            begun.append(payload)
            if len(begun) == 2:
                both.set()
            await asyncio.Event().wait()

        handles = await queue.dispatch_many([tenure.Call("work", n) for n in range(2)])
        self.jobs = [job.id for job in handles]
        self.handle = worker.run()
        await both.wait()
        if self.leaving == "raise":
            raise ValueError("the program's own")
        if self.leaving == "cancel":
            raise asyncio.CancelledError

    def run(self) -> None:
        with contextlib.suppress(ValueError, asyncio.CancelledError):
            asyncio.run(self.main())


async def states_of(driver: Driver, jobs: list[str]) -> list[tuple[str, int]]:
    async with tenure.Queue(driver) as queue:
        found = [await queue.get(job) for job in jobs]
    return [(str(job.state), job.attempt) for job in found]


@each_store
@pytest.mark.parametrize("leaving", ["return", "raise", "cancel"])
def test_w13_a_program_that_ends_while_jobs_run_gives_them_back(
    store: str, tmp_path: Path, leaving: str
) -> None:
    """W13: the end of `asyncio.run`, with the real clock, however the main task ends."""
    program = Program(driver_for(store, tmp_path), leaving)
    thread = threading.Thread(target=program.run)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    assert program.handle is not None
    assert not program.handle.running
    assert errors_of(program.handle) == []
    assert asyncio.run(states_of(program.driver, program.jobs)) == [("pending", 0)] * 2
