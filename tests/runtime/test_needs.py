"""What handlers are given beside their arguments: made before, put away after, whatever the end."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Annotated, Any

import pytest

import tenure
from tenure import INJECTED, Depends
from tests.runtime.scenes import errors_of, quiet_worker, running
from tests.runtime.world import World, open_world


async def run_one(
    world: World, tasks: tenure.Tasks, name: str, /, **options: Any
) -> tuple[tenure.Job[Any], list[tenure.QueueError]]:
    """Run one job of this name to its end; the job, and what was reported."""
    job = await world.queue.dispatch(name, {})
    async with running(quiet_worker(world, tasks=[tasks], **options)) as handle:
        await world.ended(job)
        errors = errors_of(handle)
    return await world.job(job), errors


async def test_a_dependency_is_made_for_each_attempt_and_put_away_after_it() -> None:
    """In the reverse order; each function once, though two ask for it."""
    tasks, seen = tenure.Tasks(), list[str]()

    async def connection(job: tenure.RunningJob) -> AsyncIterator[str]:
        seen.append(f"open {job.attempt}")
        yield "connection"
        seen.append("close")

    def cursor(connection: Annotated[str, Depends(connection)]) -> Iterator[str]:
        seen.append(f"cursor of {connection}")
        yield f"cursor of {connection}"
        seen.append("cursor closed")

    @tasks.task(max_attempts=2)
    async def work(
        connection: Annotated[str, Depends(connection)] = INJECTED,
        cursor: Annotated[str, Depends(cursor)] = INJECTED,
    ) -> None:
        seen.append("work")
        assert cursor == f"cursor of {connection}"

    async with open_world("memory") as world:
        for _ in range(2):
            job, errors = await run_one(world, tasks, "work")
            assert (job.state, errors) == ("completed", [])
        one = ["open 1", "cursor of connection", "work", "cursor closed", "close"]
        assert seen == [*one, *one]


async def test_a_generator_is_thrown_what_the_handler_raised() -> None:
    """So that a transaction is rolled back; the failure stays the handler's own."""
    tasks, seen = tenure.Tasks(), list[str]()

    async def transaction() -> AsyncIterator[None]:
        try:
            yield
        except ValueError as error:
            seen.append(f"rolled back for {error}")
            raise

    def plain() -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            seen.append(f"plain, for {error}")
            raise

    @tasks.task
    def work(
        a: Annotated[None, Depends(transaction)] = INJECTED,
        b: Annotated[None, Depends(plain)] = INJECTED,
    ) -> None:
        raise ValueError("no")

    async with open_world("memory") as world:
        job, errors = await run_one(world, tasks, "work")
        assert job.error is not None
        assert job.error.message == "ValueError: no"
        assert seen == ["plain, for no", "rolled back for no"]
        assert [type(error) for error in errors] == [tenure.JobFailed]


@pytest.mark.parametrize("plain", [True, False])
async def test_a_dependency_that_fails_fails_the_attempt(plain: bool) -> None:
    """As a failure of the handler would, retries and all; what was made before is put away."""
    tasks, seen = tenure.Tasks(), list[str]()

    async def first() -> AsyncIterator[None]:
        try:
            yield
        finally:
            seen.append("put away")

    def broken() -> None:
        raise ConnectionError("no database")

    async def broken_too() -> None:
        raise ConnectionError("no database")

    @tasks.task
    async def work(
        a: Annotated[None, Depends(first)] = INJECTED,
        b: Annotated[None, Depends(broken if plain else broken_too)] = INJECTED,
    ) -> None:
        seen.append("called")

    async with open_world("memory") as world:
        job, _ = await run_one(world, tasks, "work")
        assert (job.state, seen) == ("failed", ["put away"])
        assert job.error is not None
        assert job.error.message == "ConnectionError: no database"


async def test_plain_functions_run_in_threads_and_async_ones_on_the_loop() -> None:
    """W10: a plain def never blocks the loop."""
    tasks, here = tenure.Tasks(), threading.get_ident()

    def plain() -> int:
        return threading.get_ident()

    def generated() -> Iterator[int]:
        yield threading.get_ident()

    async def on_loop() -> int:
        return threading.get_ident()

    @tasks.task
    def work(
        a: Annotated[int, Depends(plain)] = INJECTED,
        b: Annotated[int, Depends(generated)] = INJECTED,
        c: Annotated[int, Depends(on_loop)] = INJECTED,
    ) -> list[bool]:
        return [a == here, b == here, c == here, threading.get_ident() == here]

    async with open_world("memory") as world:
        job, _ = await run_one(world, tasks, "work")
        assert job.result == [False, False, True, False]


async def test_a_shared_dependency_is_made_once_for_a_run_and_put_away_at_its_end() -> None:
    tasks, seen = tenure.Tasks(), list[str]()

    async def pool() -> AsyncIterator[str]:
        seen.append("open")
        await asyncio.sleep(0)
        yield "pool"
        seen.append("close")

    async def client(pool: Annotated[str, Depends(pool, scope="worker")]) -> str:
        return f"client of {pool}"

    @tasks.task
    async def work(client: Annotated[str, Depends(client)] = INJECTED) -> str:
        seen.append("work")
        return client

    async with open_world("memory") as world:
        jobs = [await world.queue.dispatch("work", {}) for _ in range(3)]
        async with running(quiet_worker(world, tasks=[tasks])):
            await world.ended(*jobs)
            await world.settle()
            assert [(await world.job(job)).result for job in jobs] == ["client of pool"] * 3
        assert seen == ["open", "work", "work", "work", "close"]


async def test_a_shared_dependency_that_failed_is_tried_again_by_the_next_job() -> None:
    tasks, tries = tenure.Tasks(), list[int]()

    async def pool() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionError("not yet")
        return "pool"

    @tasks.task(retry=tenure.RetryPolicy(max_attempts=2))
    async def work(pool: Annotated[str, Depends(pool, scope="worker")] = INJECTED) -> str:
        return pool

    async with open_world("memory") as world:
        job = await work.using(on=world.queue).enqueue()
        async with running(quiet_worker(world, tasks=[tasks])):
            assert await world.run(job.result()) == "pool"
        assert len(tries) == 2


async def test_a_dependency_is_replaced_for_a_test() -> None:
    """Per worker: nothing is changed for others."""
    tasks = tenure.Tasks()

    def database() -> str:
        raise AssertionError("the real one")

    def user(database: Annotated[str, Depends(database)]) -> str:
        return f"user of {database}"

    @tasks.task
    async def work(user: Annotated[str, Depends(user)] = INJECTED) -> str:
        return user

    async with open_world("memory") as world:
        job, _ = await run_one(world, tasks, "work", overrides={database: lambda: "a fake"})
        assert job.result == "user of a fake"


def test_what_cannot_be_made_is_refused_when_the_worker_is_built() -> None:
    def needy(name: str) -> None: ...

    def endless(other: None) -> None: ...

    endless.__annotations__["other"] = Annotated[None, Depends(endless)]

    def per_job() -> None: ...

    def shared(other: Annotated[None, Depends(per_job)]) -> None: ...

    for function, scope, message in [
        (needy, "job", "needy must have a default"),
        (shared, "worker", "must not need what a job does"),
        (endless, "job", "must not depend on itself"),
    ]:
        tasks = tenure.Tasks()

        @tasks.task
        def work(value: Any = INJECTED) -> None: ...

        work.function.__annotations__["value"] = Annotated[Any, Depends(function, scope=scope)]  # type: ignore[arg-type]
        with pytest.raises(tenure.InvalidConfiguration, match=message):
            tenure.Worker(tenure.connect("memory://"), tasks=[tasks])
    with pytest.raises(tenure.InvalidConfiguration, match="must be given a function"):
        Depends("pool")  # type: ignore[arg-type]
    with pytest.raises(tenure.InvalidConfiguration, match='"job" or "worker"'):
        Depends(per_job, scope="forever")  # type: ignore[arg-type]


# --- middleware and hooks -------------------------------------------------------------------------


async def test_middleware_surrounds_each_attempt_the_first_outermost() -> None:
    """Of tasks and of plain handlers, async or not."""
    seen: list[str] = []

    def noting(name: str) -> Callable[..., Awaitable[Any]]:
        async def around(job: tenure.RunningJob, call: Callable[[], Awaitable[Any]]) -> Any:
            seen.append(f"{name} before {job.name}")
            result = await call()
            seen.append(f"{name} after")
            return f"{name}({result})"

        return around

    async with open_world("memory") as world:
        worker = quiet_worker(world, middleware=[noting("a"), noting("b")])

        @worker.handler("work")
        def work(payload: Any) -> str:
            seen.append("work")
            return "done"

        job = await world.queue.dispatch("work")
        async with running(worker):
            await world.ended(job)
            assert (await world.job(job)).result == "a(b(done))"
        assert seen == ["a before work", "b before work", "work", "b after", "a after"]


async def test_what_middleware_raises_the_attempt_has_raised() -> None:
    """It is contained in its job: retried as its policy says, and the worker goes on."""
    async with open_world("memory") as world:

        async def failing(job: tenure.RunningJob, call: Callable[[], Awaitable[Any]]) -> Any:
            if job.attempt == 1:
                raise ConnectionError("no tracer")
            return await call()

        worker = quiet_worker(world, middleware=[failing])

        @worker.handler("work", retry=tenure.RetryPolicy(max_attempts=2))
        async def work(payload: Any) -> str:
            return "done"

        job = await world.queue.dispatch("work")
        async with running(worker) as handle:
            assert await world.run(job.result()) == "done"
            [error] = errors_of(handle)
            assert isinstance(error, tenure.JobFailed)
            assert error.failure.message == "ConnectionError: no tracer"


async def test_hooks_are_called_before_the_first_claim_and_after_the_last_handler() -> None:
    seen: list[str] = []
    async with open_world("memory") as world:
        worker = quiet_worker(world)
        here = threading.get_ident()

        @worker.on_start
        async def open_pool() -> None:
            seen.append("open")

        @worker.on_stop
        def close_pool() -> None:
            seen.append(f"close, on the loop: {threading.get_ident() == here}")

        @worker.on_stop
        async def second() -> None:
            seen.append("registered last")

        @worker.handler("work")
        async def work(payload: Any) -> None:
            seen.append("work")

        job = await world.queue.dispatch("work")
        async with running(worker):
            await world.ended(job)
        assert seen == ["open", "work", "registered last", "close, on the loop: False"]


async def test_a_start_hook_that_fails_ends_the_run_before_it_has_claimed() -> None:
    async with open_world("memory") as world:
        worker = quiet_worker(world)

        @worker.on_start
        async def broken() -> None:
            raise ConnectionError("no database")

        job = await world.queue.dispatch("work")
        handle = worker.run()
        await handle.wait()
        [error] = errors_of(handle)
        assert isinstance(error, tenure.RuntimeUnavailable)
        assert "on_start hook" in str(error)
        assert "no database" in str(error)
        assert await world.state(job) == "pending"


async def test_a_stop_hook_that_fails_is_reported_and_the_others_are_called() -> None:
    seen: list[str] = []
    async with open_world("memory") as world:
        worker = quiet_worker(world)

        @worker.on_stop
        async def last() -> None:
            seen.append("called")

        @worker.on_stop
        async def broken() -> None:
            raise ValueError("no")

        handle = worker.run()
        await world.settle()
        error = await handle.shutdown()
        assert isinstance(error, tenure.HookFailed)
        assert isinstance(error.__cause__, ValueError)
        assert seen == ["called"]


async def test_a_stop_hook_that_hangs_does_not_hold_up_the_end() -> None:
    """W23: shutdown returns within drain + 1 s."""
    called: list[int] = []
    async with open_world("memory") as world:
        worker = quiet_worker(world)

        @worker.on_stop
        async def hanging() -> None:
            called.append(1)
            await asyncio.Event().wait()

        handle = worker.run()
        await world.settle()
        ending = asyncio.create_task(handle.shutdown(drain=2.0))
        await world.until(lambda: bool(called))
        await world.advance(1.0)
        assert not ending.done()
        await world.advance(2.0)
        await world.until(ending.done)
        assert isinstance(ending.result(), tenure.HookFailed)
