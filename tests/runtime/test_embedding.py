"""W25: a worker lives inside a program as a library does; it takes over nothing of it."""

import asyncio
import logging
import signal
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path

import pytest

import tenure
from tenure.drivers.memory import MemoryDriver
from tests.runtime.scenes import errors_of, quiet_worker, running
from tests.runtime.world import Interposed, each_store, open_world


def signal_handlers() -> dict[int, object]:
    """What the process does on each signal."""
    return {number: signal.getsignal(number) for number in signal.valid_signals()}


def setup_of(logger: logging.Logger) -> list[object]:
    """What could be configured of a logger."""
    return [
        list(logger.handlers),
        logger.level,
        logger.propagate,
        logger.disabled,
        list(logger.filters),
    ]


def logging_setup() -> dict[str, object]:
    """What is configured of the root logger and of ours."""
    names = ["", *(name for name in logging.root.manager.loggerDict if name.startswith("tenure"))]
    return {name: setup_of(logging.getLogger(name)) for name in names}


async def test_w25_a_worker_installs_no_signal_handler() -> None:
    """W25: neither while it runs nor after it."""
    async with open_world() as world:
        before = signal_handlers()
        wakeup = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(wakeup)
        async with running(quiet_worker(world)) as handle:
            await world.settle()
            assert signal_handlers() == before
            assert errors_of(handle) == []
        assert signal_handlers() == before


async def test_w25_a_worker_configures_no_logging() -> None:
    """W25: no handler, level or filter, on the root logger or on ours."""
    before = logging_setup()
    async with open_world() as world:
        worker = quiet_worker(world)
        worker.register("work", print)
        async with running(worker) as handle:
            await world.queue.dispatch("stranger")
            await world.settle()
            assert len(errors_of(handle)) == 1
            during = logging_setup()
    assert {name: during[name] for name in before} == before
    fresh = setup_of(logging.getLogger("a logger that nobody has configured"))
    assert all(setup == fresh for name, setup in during.items() if name not in before)


def build(store: str, tmp_path: Path) -> tenure.Queue:
    if store == "memory":
        return tenure.Queue(MemoryDriver())
    return tenure.connect(f"sqlite:///{tmp_path / 'jobs.db'}", synchronous="NORMAL")


def in_thread(main: Callable[[], Awaitable[object]]) -> None:
    """Run a program of its own in a thread that is not the main one."""
    failures: list[BaseException] = []

    async def program() -> None:
        await main()

    def run() -> None:
        try:
            asyncio.run(program())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30.0)
    assert not thread.is_alive()
    if failures:
        raise failures[0]


@each_store
def test_w25_a_worker_runs_in_a_thread_with_its_own_loop(store: str, tmp_path: Path) -> None:
    """W25: started and stopped there, with async and plain handlers."""

    async def main() -> None:
        async with build(store, tmp_path) as queue:
            worker = tenure.Worker(queue)

            @worker.handler("double")
            async def double(payload: int) -> int:
                return 2 * payload

            @worker.handler("where")
            def where(payload: None) -> bool:
                return threading.current_thread() is threading.main_thread()

            async with worker.run() as handle:
                one = await queue.dispatch("double", 21)
                two = await queue.dispatch("where")
                assert await one.result(timeout=20) == 42
                assert await two.result(timeout=20) is False
                assert await handle.shutdown() is None

    in_thread(main)


@each_store
async def test_w25_the_main_loop_dispatches_while_a_worker_runs_in_a_thread(
    store: str, tmp_path: Path
) -> None:
    """W25: one queue, used from two loops."""
    async with build(store, tmp_path) as queue:
        worker = tenure.Worker(queue)
        started, stop = threading.Event(), threading.Event()

        @worker.handler("double")
        async def double(payload: int) -> int:
            return 2 * payload

        async def main() -> None:
            async with worker.run() as handle:
                started.set()
                await asyncio.get_running_loop().run_in_executor(None, stop.wait, 20.0)
                assert await handle.shutdown() is None

        thread = asyncio.create_task(asyncio.to_thread(in_thread, main))
        try:
            await asyncio.to_thread(started.wait, 20.0)
            jobs = [await queue.dispatch("double", n) for n in range(5)]
            assert [await job.result(timeout=20) for job in jobs] == [0, 2, 4, 6, 8]
        finally:
            stop.set()
            await thread


@each_store
def test_w25_the_end_of_the_program_puts_running_jobs_back(store: str, tmp_path: Path) -> None:
    """W13: `asyncio.run` ends and cancels everything: an abort that has time to release."""
    seen: list[tenure.Job[object]] = []

    async def program() -> None:
        queue = build(store, tmp_path)
        worker = tenure.Worker(queue)
        started = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> None:
            started.set()
            await asyncio.Event().wait()

        handle = worker.run()
        kept.append((handle, queue))
        job = await queue.dispatch("work", id="the-job")
        assert job.id == "the-job"
        await asyncio.wait_for(started.wait(), 20.0)

    async def look() -> None:
        _, queue = kept[0]
        if store == "sqlite":
            queue = build(store, tmp_path)
        async with queue:
            seen.append(await queue.get("the-job"))

    kept: list[tuple[tenure.WorkerHandle, tenure.Queue]] = []
    in_thread(program)
    handle, queue = kept[0]
    assert not handle.running
    assert errors_of(handle) == []
    in_thread(look)
    assert [(job.state, job.attempt) for job in seen] == [("pending", 0)]

    async def close() -> None:
        await queue.close()

    in_thread(close)


def test_w25_the_end_of_the_program_puts_back_what_a_cut_claim_had_taken() -> None:
    """W13, section 3: the claim was made, its answer never came; its token is asked for again."""
    inner = MemoryDriver()

    async def program() -> None:
        driver = Interposed(inner)
        claimed = asyncio.Event()

        async def cut(call: Callable[[], Awaitable[object]]) -> None:
            await call()
            driver.hooks.clear()
            claimed.set()
            await asyncio.Event().wait()

        driver.hooks["claim"] = cut
        queue = tenure.Queue(driver)
        await queue.dispatch("work", id="the-job")
        worker = tenure.Worker(queue)
        worker.register("work", print)
        kept.append(worker.run())
        await asyncio.wait_for(claimed.wait(), 20.0)

    async def look() -> None:
        job = await inner.get("the-job")
        assert job is not None
        seen.append((job.state, job.attempt))

    kept: list[tenure.WorkerHandle] = []
    seen: list[tuple[str, int]] = []
    in_thread(program)
    in_thread(look)
    assert seen == [("pending", 0)]
    assert errors_of(kept[0]) == []


@each_store
async def test_w25_the_end_of_a_task_group_puts_running_jobs_back(
    store: str, tmp_path: Path
) -> None:
    """W13: the host cancels its own tasks, the worker among them through its context manager."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world, drain_timeout=0.0)
        handles: list[tenure.WorkerHandle] = []

        @worker.handler("work")
        async def work(payload: None) -> None:
            await asyncio.Event().wait()

        async def host() -> None:
            async with worker.run() as handle:
                handles.append(handle)
                await asyncio.Event().wait()

        async def failing() -> None:
            await fail.wait()
            raise ZeroDivisionError

        async def group() -> None:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(host())
                tasks.create_task(failing())

        fail = asyncio.Event()
        grouped = asyncio.create_task(group())
        job = await world.queue.dispatch("work")
        await world.settle()
        fail.set()
        await world.until(grouped.done)
        with pytest.raises(ExceptionGroup):
            grouped.result()
        assert not handles[0].running
        assert errors_of(handles[0]) == []
        record = await world.job(job)
        assert (record.state, record.attempt) == ("pending", 0)


async def test_w25_two_queues_in_one_process_know_nothing_of_each_other() -> None:
    """STYLE: no global state; each worker runs the jobs of its own queue."""
    async with open_world() as one, open_world() as two:
        done: list[str] = []
        for name, world in (("one", one), ("two", two)):

            async def work(payload: None, name: str = name) -> None:
                done.append(name)

            world_worker = quiet_worker(world)
            world_worker.register("work", work)
            async with running(world_worker) as handle:
                await world.queue.dispatch("work")
                await world.settle()
                assert errors_of(handle) == []
        assert done == ["one", "two"]
        assert (await one.queue.counts()).completed == 1


variable: ContextVar[str] = ContextVar("variable", default="unset")


async def test_w25_the_hosts_context_is_seen_and_never_changed() -> None:
    """W10, W25: what a handler sets stays in its attempt."""
    async with open_world() as world:
        worker = quiet_worker(world)
        seen: list[str] = []

        @worker.handler("work")
        async def work(payload: str) -> None:
            seen.append(variable.get())
            variable.set(payload)

        token = variable.set("of the host")
        try:
            async with running(worker) as handle:
                for payload in ("a", "b"):
                    await world.queue.dispatch("work", payload)
                    await world.advance(0.1)
                assert seen == ["of the host"] * 2
                assert variable.get() == "of the host"
                assert errors_of(handle) == []
        finally:
            variable.reset(token)
