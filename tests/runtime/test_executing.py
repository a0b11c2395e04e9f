"""W10: where a handler runs, and what it sees of the others."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tenure
from tests.runtime.arrange import running
from tests.runtime.scenes import errors_of
from tests.runtime.world import each_store, open_world

whose: contextvars.ContextVar[str] = contextvars.ContextVar("whose", default="nobody's")


async def test_w10_each_handler_runs_in_its_own_task() -> None:
    """W10: also when they run one after another in one slot."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue, concurrency=1)
        tasks: list[asyncio.Task[Any] | None] = []

        @worker.handler("work")
        async def work(payload: None, job: tenure.RunningJob) -> None:
            task = asyncio.current_task()
            tasks.append(task)
            assert task is not None
            assert task.get_name() == job.id

        await world.queue.dispatch_many([tenure.Call("work") for _ in range(3)])
        async with running(world, worker):
            await world.settle()
            assert len({id(task) for task in tasks}) == 3
            assert asyncio.current_task() not in tasks


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_w10_the_context_is_a_fresh_copy_for_each_handler(kind: str) -> None:
    """W10: what one job sets shows neither in the next one nor to the host."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue, concurrency=1)
        seen: list[str] = []

        def look_and_set(payload: str) -> None:
            seen.append(whose.get())
            whose.set(payload)

        async def look_and_set_here(payload: str) -> None:
            look_and_set(payload)

        handler: Callable[..., Any] = look_and_set if kind == "sync" else look_and_set_here
        worker.register("work", handler)
        token = whose.set("the host's")
        try:
            await world.queue.dispatch_many([tenure.Call("work", f"job {n}") for n in range(3)])
            async with running(world, worker):
                await world.until(lambda: len(seen) == 3)
                await world.settle()
            # Each saw what was set where the worker was started.
            assert seen == ["the host's"] * 3
            assert whose.get() == "the host's"
        finally:
            whose.reset(token)


async def test_w10_what_the_host_sets_later_does_not_reach_the_handlers() -> None:
    """W10: the context is the one of the start."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue)
        seen: list[str] = []

        @worker.handler("work")
        async def work(payload: None) -> None:
            seen.append(whose.get())

        async with running(world, worker):
            token = whose.set("later")
            await world.queue.dispatch("work")
            await world.settle()
            whose.reset(token)
            assert seen == ["nobody's"]


@each_store
async def test_w10_a_plain_def_never_blocks_the_loop(store: str, tmp_path: Path) -> None:
    """W10: it runs in a daemon thread, while coroutines go on."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, concurrency=3)
        gate = threading.Event()
        threads: list[threading.Thread] = []
        meet = threading.Barrier(2)

        @worker.handler("slow")
        def slow(payload: int) -> int:
            threads.append(threading.current_thread())
            meet.wait(10)  # both are here at once
            gate.wait(10)
            return payload

        @worker.handler("quick")
        async def quick(payload: None) -> str:
            return threading.current_thread().name

        slow_jobs = await world.queue.dispatch_many([tenure.Call("slow", n) for n in range(2)])
        async with running(world, worker):
            await world.until(lambda: len(threads) == 2)
            job = await world.queue.dispatch("quick")
            await world.advance(0.01)
            await world.until(lambda: world.driver.calls.count("exchange") >= 1)
            await world.ended(job)
            assert (await world.job(job)).result == threading.current_thread().name
            assert [await world.state(job) for job in slow_jobs] == ["processing"] * 2
            gate.set()
            await world.ended(*slow_jobs)
            assert [(await world.job(job)).result for job in slow_jobs] == [0, 1]
            assert threading.current_thread() not in threads
            assert all(thread.daemon for thread in threads)


async def test_w10_a_thread_that_is_idle_is_used_again() -> None:
    """W10: at most as many threads as there are plain handlers at once."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue, concurrency=1)
        threads: list[str] = []

        @worker.handler("work")
        def work(payload: None) -> None:
            threads.append(threading.current_thread().name)

        await world.queue.dispatch_many([tenure.Call("work") for _ in range(20)])
        async with running(world, worker):
            await world.until(lambda: len(threads) == 20)
            await world.settle()
        assert set(threads) == {"tenure-handler-1"}


async def test_w10_what_a_plain_def_returns_to_be_awaited_is_awaited_on_the_loop() -> None:
    """W10: a plain function that gives a coroutine back is one that was wrapped."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue)

        async def inner(payload: int) -> int:
            assert threading.current_thread() is threading.main_thread()
            return payload + 1

        @worker.handler("work")
        def work(payload: int) -> Any:
            return inner(payload)

        job = await world.queue.dispatch("work", 1)
        async with running(world, worker) as handle:
            await world.until(lambda: "exchange" in world.driver.calls)
            await world.ended(job)
            assert (await world.job(job)).result == 2
            assert errors_of(handle) == []


async def test_w10_a_handler_sees_its_job() -> None:
    """W10: the second argument, and what it tells."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue, queues=("mail",))
        seen: list[tenure.RunningJob] = []

        @worker.handler("work")
        async def work(payload: list[int], job: tenure.RunningJob) -> None:
            seen.append(job)
            assert job.payload is payload

        dispatched = await world.queue.dispatch(
            "work", [1, 2], queue="mail", headers={"trace": "abc"}
        )
        async with running(world, worker):
            await world.settle()
        [job] = seen
        assert (job.id, job.name, job.queue) == (dispatched.id, "work", "mail")
        assert (job.attempt, job.fence, job.cancelled) == (1, 1, False)
        assert job.headers == {"trace": "abc"}
        assert job.payload == [1, 2]
