"""What a handler says of its own job: snooze, another attempt, cancel."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import tenure
from tests.runtime.scenes import errors_of, quiet_worker, running
from tests.runtime.world import World, each_store, open_world


def noting(
    world: World, handler: Callable[[int], Any], **options: Any
) -> tuple[tenure.Worker, list[tuple[float, int]]]:
    """A worker whose handler notes its starts: when, and which attempt."""
    worker = quiet_worker(world)
    starts: list[tuple[float, int]] = []

    @worker.handler("work", **options)
    async def work(payload: Any, job: tenure.RunningJob) -> Any:
        starts.append((round(world.clock.monotonic(), 3), job.attempt))  # stores keep microseconds
        return handler(len(starts))

    return worker, starts


@each_store
@pytest.mark.parametrize("delay", [30, timedelta(seconds=30)])
async def test_a_snoozed_job_runs_again_later_with_no_attempt_spent(
    store: str, tmp_path: Path, delay: Any
) -> None:
    """I4: however often; the one attempt of the default is still there."""
    async with open_world(store, tmp_path) as world:
        worker, starts = noting(world, lambda n: tenure.Snooze(delay) if n < 4 else "done")
        job = await world.queue.dispatch("work")
        async with running(worker) as handle:
            await world.advance(100.0)
            assert starts == [(0.0, 1), (30.0, 1), (60.0, 1), (90.0, 1)]
            assert await job.result(timeout=0) == "done"
            assert errors_of(handle) == []


@pytest.mark.parametrize("delay", ["soon", float("nan"), 1e12])
async def test_a_snooze_that_cannot_be_has_failed(delay: Any) -> None:
    async with open_world() as world:
        worker, starts = noting(world, lambda n: tenure.Snooze(delay))
        job = await world.queue.dispatch("work")
        async with running(worker) as handle:
            await world.advance(1.0)
            record = await world.job(job)
            assert record.state == "failed"
            assert record.error is not None
            assert "Snooze" in record.error.message
            assert len(starts) == len(errors_of(handle)) == 1


def again(**options: Any) -> Any:
    def handler(n: int) -> None:
        raise tenure.Retry("the gate is closed", **options)

    return handler


@each_store
async def test_a_handler_may_ask_for_another_attempt_and_say_when(
    store: str, tmp_path: Path
) -> None:
    """Bounded by the default policy, where nobody gave another bound."""
    async with open_world(store, tmp_path) as world:
        worker, starts = noting(world, again(after=10))
        job = await world.queue.dispatch("work")
        async with running(worker) as handle:
            await world.advance(100.0)
            assert starts == [(10.0 * n, n + 1) for n in range(5)]
            record = await world.job(job)
            assert record.state == "failed"
            assert record.error is not None
            assert record.error.message == "Retry: the gate is closed"
            assert [type(error) for error in errors_of(handle)] == [tenure.JobFailed] * 5


async def test_a_bound_that_was_given_holds_for_it_too() -> None:
    """W14, I4: that of the dispatch, else that of the policy."""
    async with open_world() as world:
        policy = tenure.RetryPolicy(max_attempts=2, base=1.0, jitter=False)
        worker, starts = noting(world, again(after=10), retry=policy)
        await world.queue.dispatch("work")
        async with running(worker) as handle:
            await world.advance(100.0)
            assert starts == [(0.0, 1), (10.0, 2)]
            await world.queue.dispatch("work", max_attempts=1)
            await world.advance(100.0)
            assert len(starts) == 3
            errors_of(handle)


async def test_without_a_time_it_waits_as_its_policy_says() -> None:
    """Also for a failure that the policy would not retry by itself."""
    async with open_world() as world:
        policy = tenure.RetryPolicy(
            max_attempts=3, base=4.0, jitter=False, retry_on=(ConnectionError,)
        )
        worker, starts = noting(world, again(), retry=policy)
        await world.queue.dispatch("work")
        async with running(worker) as handle:
            await world.advance(100.0)
            assert starts == [(0.0, 1), (4.0, 2), (12.0, 3)]
            errors_of(handle)


@each_store
async def test_a_handler_may_cancel_its_job(store: str, tmp_path: Path) -> None:
    """It has not failed: nothing is reported, nothing retried, and waiting for it says so."""
    async with open_world(store, tmp_path) as world:

        def handler(n: int) -> None:
            raise tenure.Cancel("no longer needed")

        worker, starts = noting(world, handler, retry=tenure.RetryPolicy())
        job = await world.queue.dispatch("work")
        async with running(worker) as handle:
            await world.advance(100.0)
            assert len(starts) == 1
            assert await world.state(job) == "cancelled"
            with pytest.raises(tenure.JobCancelled):
                await job.result(timeout=0)
            assert errors_of(handle) == []


async def test_they_work_in_threads_too() -> None:
    """W10: a plain function raises and returns the same."""
    async with open_world() as world:
        worker = quiet_worker(world)

        @worker.handler("later")
        def later_on(payload: None) -> tenure.Snooze:
            return tenure.Snooze(60)

        @worker.handler("never")
        def never(payload: None) -> None:
            raise tenure.Cancel

        later = await world.queue.dispatch("later")
        cancelled = await world.queue.dispatch("never")
        async with running(worker) as handle:
            await world.until(lambda: "exchange" in world.driver.calls)
            await world.ended(later, cancelled)
            assert await world.state(cancelled) == "cancelled"
            record = await world.job(later)
            assert (record.state, record.attempt) == ("pending", 0)
            assert errors_of(handle) == []
