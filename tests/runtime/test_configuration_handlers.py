"""W3, W4: how handlers are registered, and how a run begins.

Every shape that a handler may have is in tests/unit/test_handlers.py.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.drivers.memory import MemoryDriver
from tests.runtime.arrange import running
from tests.runtime.scenes import errors_of
from tests.runtime.world import World, each_store, open_world


def queue_in_memory() -> tenure.Queue:
    return tenure.Queue(MemoryDriver())


@each_store
@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_w03_register_takes_sync_and_async_handlers_also_as_a_decorator(
    store: str, tmp_path: Path, kind: str
) -> None:
    """W3: the decorator gives the function back unchanged."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue)

        def plain(payload: int) -> int:
            return payload + 1

        async def coroutine(payload: int) -> int:
            return payload + 1

        function: Callable[..., Any] = plain if kind == "sync" else coroutine
        assert worker.handler("decorated")(function) is function
        worker.register("registered", function)
        async with running(world, worker) as handle:
            jobs = await world.queue.dispatch_many(
                [tenure.Call("decorated", 1), tenure.Call("registered", 2)]
            )
            results = [await result_of(world, job) for job in jobs]
            assert results == [2, 3]
            assert errors_of(handle) == []


async def result_of(world: World, job: tenure.JobHandle) -> Any:
    """The result of a job that needs no simulated time, but perhaps a thread."""
    states: list[tenure.Job[Any]] = []

    async def look() -> None:
        while not states or states[-1].state not in ("completed", "failed"):
            states.append(await world.job(job))
            await asyncio.sleep(0)

    looking = asyncio.create_task(look())
    await world.until(looking.done)
    assert states[-1].state == "completed", states[-1].error
    return states[-1].result


def test_w03_a_name_registered_twice_is_an_error() -> None:
    """W3: the first registration stays."""
    worker = tenure.Worker(queue_in_memory())
    worker.register("work", print)
    with pytest.raises(tenure.InvalidConfiguration, match="registered already") as caught:
        worker.register("work", repr)
    assert (caught.value.option, caught.value.value) == ("name", "work")
    with pytest.raises(tenure.InvalidConfiguration, match="replace=True"):
        worker.handler("work")(repr)


async def test_w03_replace_replaces_the_handler() -> None:
    """W3: with `replace=True` the later registration counts."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue)
        seen: list[str] = []

        @worker.handler("work")
        async def first(payload: None) -> None:
            seen.append("first")

        @worker.handler("work", replace=True)
        async def second(payload: None) -> None:
            seen.append("second")

        async with running(world, worker) as handle:
            await world.queue.dispatch("work")
            await world.settle()
            assert seen == ["second"]
            assert errors_of(handle) == []


async def test_w03_run_takes_a_snapshot_of_the_handlers() -> None:
    """W3: what is registered or replaced later shows in later runs only."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue, queues=("a",))
        seen: list[str] = []

        @worker.handler("work")
        async def first(payload: None) -> None:
            seen.append("first")

        async with running(world, worker) as handle:
            await world.settle()

            @worker.handler("work", replace=True)
            async def second(payload: None) -> None:
                seen.append("second")

            @worker.handler("more")
            async def more(payload: None) -> None:
                seen.append("more")

            await world.queue.dispatch("work", queue="a")
            await world.queue.dispatch("more", queue="a")
            await world.advance(1.0)
            assert seen == ["first"]
            [error] = errors_of(handle)
            assert isinstance(error, tenure.HandlerNotFound)
        async with running(world, worker) as handle:
            await world.queue.dispatch("work", queue="a")
            await world.advance(5.0)
            assert sorted(seen) == ["first", "more", "second"]
            assert errors_of(handle) == []


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"timeout": -1}, "timeout"),
        ({"executor": "processes"}, "executor"),
        ({"retry": 3}, "retry"),
        ({"retry": tenure.RetryPolicy}, "retry"),
        ({"name": ""}, "name"),
        ({"name": "a\0"}, "name"),
        ({"handler": "not callable"}, "handler"),
    ],
)
def test_w03_an_impossible_registration_is_refused_and_leaves_the_name_free(
    options: dict[str, Any], option: str
) -> None:
    """W3: alike for every argument, named in the error."""
    worker = tenure.Worker(queue_in_memory())
    given: dict[str, Any] = {"name": "work", "handler": print} | options
    with pytest.raises(tenure.InvalidConfiguration) as caught:
        worker.register(given.pop("name"), given.pop("handler"), **given)
    assert caught.value.option == option
    worker.register("work", print)


# --- W4 -----------------------------------------------------------------------------------------


def test_w04_run_outside_a_running_event_loop_is_refused() -> None:
    """W4: `RuntimeUnavailable`, which says what to do."""
    worker = tenure.Worker(queue_in_memory())
    with pytest.raises(tenure.RuntimeUnavailable, match="call run\\(\\) inside a coroutine"):
        worker.run()


async def test_w04_a_run_that_is_refused_has_started_no_task() -> None:
    """W4: the queue is closed."""
    queue = queue_in_memory()
    worker = tenure.Worker(queue)
    await queue.close()
    before = asyncio.all_tasks()
    with pytest.raises(tenure.RuntimeUnavailable, match="closed"):
        worker.run()
    assert asyncio.all_tasks() == before


@each_store
async def test_w04_one_worker_may_run_several_times_independently(
    store: str, tmp_path: Path
) -> None:
    """W4: each run has its own slots, errors and end."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, concurrency=1)
        begun: list[str] = []
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: str) -> None:
            begun.append(payload)
            await gate.wait()
            raise ValueError(payload)

        async with running(world, worker) as first:
            await world.queue.dispatch("work", "one")
            await world.until(lambda: begun == ["one"])
            async with running(world, worker) as second:
                await world.queue.dispatch("work", "two")
                await world.until(lambda: begun == ["one", "two"])
                gate.set()
                await world.settle()
                texts = [[str(error) for error in errors_of(handle)] for handle in (first, second)]
                assert [len(found) for found in texts] == [1, 1]
                assert "one" in texts[0][0]
                assert "two" in texts[1][0]
            assert not second.running
            assert first.running
            await world.queue.dispatch("work", "three")
            await world.until(lambda: begun == ["one", "two", "three"])
            await world.settle()
            assert len(errors_of(first)) == 1
            assert errors_of(second) == []
