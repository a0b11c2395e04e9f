"""The retry policies on a worker: what each waits, and what becomes of a job when one is broken."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest

import tenure
from tests.runtime.arrange import running
from tests.runtime.scenes import errors_of
from tests.runtime.world import World, each_store, open_world


def failing(world: World, retry: tenure.RetryPolicy) -> tuple[tenure.Worker, list[float]]:
    """A worker whose handler raises what its payload names, and the instants of its starts."""
    worker = tenure.Worker(world.queue, poll_interval=600.0)
    starts: list[float] = []

    @worker.handler("work", retry=retry, timeout=1.0)
    async def work(payload: str) -> None:
        starts.append(round(world.clock.monotonic(), 2))
        match payload:
            case "timeout":
                await asyncio.Event().wait()
            case "retry":
                raise tenure.Retry
            case "exit":
                raise SystemExit(3)
            case _:
                raise ValueError("no")

    return worker, starts


@each_store
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (tenure.RetryPolicy.linear(step=2, max_attempts=4, jitter=False), [0, 2, 6, 12]),
        (tenure.RetryPolicy.linear(step=2, cap=3, max_attempts=4, jitter=False), [0, 2, 5, 8]),
        (tenure.RetryPolicy.delays([1, timedelta(seconds=5)]), [0, 1, 6]),
        (tenure.RetryPolicy.delays([1, 5], max_attempts=4), [0, 1, 6, 11]),
        (tenure.RetryPolicy.of(lambda attempt, error: 3 * attempt, max_attempts=3), [0, 3, 9]),
        (tenure.RetryPolicy.of(lambda attempt, error: 4 if attempt < 3 else None), [0, 4, 8]),
        (tenure.RetryPolicy(base=timedelta(seconds=1), jitter=False, max_attempts=3), [0, 1, 3]),
    ],
)
async def test_a_policy_gives_the_waits_between_the_starts(
    store: str, tmp_path: Path, policy: tenure.RetryPolicy, expected: list[float]
) -> None:
    async with open_world(store, tmp_path) as world:
        worker, starts = failing(world, policy)
        job = await world.queue.dispatch("work", "error")
        async with running(world, worker) as handle:
            await world.advance(20.0)
            assert starts == expected
            record = await world.job(job)
            assert (record.state, record.attempt) == ("failed", len(expected))
            assert [type(error) for error in errors_of(handle)] == [tenure.JobFailed] * len(starts)


async def test_a_function_is_asked_with_what_ended_the_attempt() -> None:
    """A timeout is a `TimeoutError`; what `retry_on` leaves out is never shown to it."""
    async with open_world() as world:
        seen: list[tuple[int, str]] = []

        def wait(attempt: int, error: BaseException) -> float | None:
            seen.append((attempt, type(error).__name__))
            return None

        worker, starts = failing(world, tenure.RetryPolicy.of(wait))
        jobs = [await world.queue.dispatch("work", how) for how in ("error", "timeout", "exit")]
        async with running(world, worker) as handle:
            await world.advance(5.0)
            assert sorted(seen) == [(1, "TimeoutError"), (1, "ValueError")]
            assert len(starts) == 3
            assert [await world.state(job) for job in jobs] == ["failed"] * 3
            assert len(errors_of(handle)) == 3


async def test_a_function_is_not_asked_after_the_last_attempt() -> None:
    async with open_world() as world:
        asked: list[int] = []

        def wait(attempt: int, error: BaseException) -> float:
            asked.append(attempt)
            return 1.0

        worker, starts = failing(world, tenure.RetryPolicy.of(wait, max_attempts=3))
        await world.queue.dispatch("work", "error")
        async with running(world, worker) as handle:
            await world.advance(10.0)
            assert (asked, len(starts)) == ([1, 2], 3)
            assert len(errors_of(handle)) == 3


async def test_a_retry_that_the_handler_asks_for_is_not_given_up_by_a_function() -> None:
    """`raise Retry()` asks for another in any case: then the default policy gives the wait."""
    async with open_world() as world:
        policy = tenure.RetryPolicy.of(lambda attempt, error: None, max_attempts=3)
        worker, starts = failing(world, policy)
        await world.queue.dispatch("work", "retry")
        async with running(world, worker) as handle:
            await world.advance(10.0)
            assert len(starts) == 3
            assert starts[1] <= 1.01
            assert starts[2] - starts[1] <= 2.01
            assert len(errors_of(handle)) == 3


def raising(attempt: int, error: BaseException) -> NoReturn:
    raise LookupError("no such delay")


def leaving(attempt: int, error: BaseException) -> NoReturn:
    raise SystemExit(1)


def overflowing(attempt: int, error: BaseException) -> float:
    return 5.0 ** (1000 * attempt)


def asking(attempt: int, error: BaseException) -> NoReturn:
    raise KeyboardInterrupt


def giving(value: Any) -> Callable[[int, BaseException], Any]:
    return lambda attempt, error: value


BROKEN: dict[str, Any] = {
    "raises": raising,
    "exits": leaving,
    "interrupts": asking,
    "no argument": lambda: 1.0,
    "NaN": giving(float("nan")),
    "infinite": giving(float("inf")),
    "negative": giving(-1),
    "text": giving("soon"),
    "too large": giving(5**1000),
    "overflows": overflowing,
}


@each_store
@pytest.mark.parametrize("payload", ["error", "timeout", "retry"])
@pytest.mark.parametrize("how", list(BROKEN))
async def test_w13_a_function_that_is_broken_ends_the_job_with_its_own_failure(
    store: str, tmp_path: Path, how: str, payload: str
) -> None:
    """W13: failed for good, the policy reported with the handler's name; the worker goes on."""
    async with open_world(store, tmp_path) as world:
        worker, starts = failing(world, tenure.RetryPolicy.of(BROKEN[how]))

        @worker.handler("canary")
        async def canary_handler(payload: None) -> None: ...

        job = await world.queue.dispatch("work", payload)
        async with running(world, worker) as handle:
            await world.advance(1.1)
            record = await world.job(job)
            assert (record.state, record.attempt, len(starts)) == ("failed", 1, 1)
            assert record.error is not None
            assert record.error.kind == ("timeout" if payload == "timeout" else "error")
            about, failed = errors_of(handle)
            assert isinstance(about, tenure.InvalidConfiguration)
            assert about.option == "retry"
            assert "for 'work' must give a usable delay: " in str(about)
            expected = tenure.JobTimedOut if payload == "timeout" else tenure.JobFailed
            assert type(failed) is expected
            canary = await world.queue.dispatch("canary")
            await world.advance(1.0)
            assert await world.state(canary) == "completed"


async def test_a_job_whose_policy_was_broken_can_be_brought_back() -> None:
    """As any failed job: by hand, with fresh attempts."""
    async with open_world() as world:
        worker, starts = failing(world, tenure.RetryPolicy.of(raising))
        job = await world.queue.dispatch("work", "error")
        async with running(world, worker) as handle:
            await world.advance(1.0)
            assert await world.queue.retry(job.id) == "done"
            await world.advance(1.0)
            assert len(starts) == 2
            assert await world.state(job) == "failed"
            assert len(errors_of(handle)) == 4
