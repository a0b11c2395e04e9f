"""W14: which time limit, which bound on attempts, and which of several ends counts."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

import tenure
from tenure.drivers.memory import MemoryDriver
from tests.runtime.arrange import LeapingClock, open_world_on, running
from tests.runtime.scenes import crash, errors_of
from tests.runtime.world import World, each_store, open_world

# --- precedence ---------------------------------------------------------------------------------


@each_store
@pytest.mark.parametrize(
    ("dispatched", "registered", "limit"),
    [(None, None, 7.0), (None, 5.0, 5.0), (None, 9.0, 9.0), (3.0, 5.0, 3.0), (9.0, 5.0, 9.0)],
)
async def test_w14_a_time_limit_at_dispatch_beats_registration_beats_the_workers(
    store: str,
    tmp_path: Path,
    dispatched: float | None,
    registered: float | None,
    limit: float,
) -> None:
    """W14: whether it is longer or shorter."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, job_timeout=7.0)

        @worker.handler("work", timeout=registered)
        async def work(payload: None) -> None:
            await asyncio.Event().wait()

        job = await world.queue.dispatch("work", timeout=dispatched)
        async with running(world, worker) as handle:
            await world.advance(limit - 0.01)
            assert await world.state(job) == "processing"
            await world.advance(0.01)
            assert await world.state(job) == "failed"
            [error] = errors_of(handle)
            assert isinstance(error, tenure.JobTimedOut)
            assert error.timeout == limit


@each_store
@pytest.mark.parametrize(
    ("dispatched", "policy", "starts"),
    [(None, None, 1), (None, 3, 3), (1, 3, 1), (2, None, 2), (4, 2, 4), (3, 1, 3)],
)
async def test_w14_max_attempts_at_dispatch_beats_the_retry_policys(
    store: str, tmp_path: Path, dispatched: int | None, policy: int | None, starts: int
) -> None:
    """W14: the policy keeps giving the delays; without one the default policy does."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, poll_interval=30.0)
        retry = (
            None
            if policy is None
            else tenure.RetryPolicy(max_attempts=policy, base=1.0, factor=1.0, jitter=False)
        )
        seen: list[int] = []

        @worker.handler("work", retry=retry)
        async def work(payload: None, job: tenure.RunningJob) -> None:
            seen.append(job.attempt)
            raise ValueError("no")

        job = await world.queue.dispatch("work", max_attempts=dispatched)
        async with running(world, worker) as handle:
            await world.advance(10.0)
            record = await world.job(job)
            assert (record.state, record.attempt) == ("failed", starts)
            assert seen == list(range(1, starts + 1))
            assert [type(error) for error in errors_of(handle)] == [tenure.JobFailed] * starts


@each_store
@pytest.mark.parametrize("bound", [1, 2, 3])
@pytest.mark.parametrize("ending", ["exception", "timeout", "crash"])
async def test_w14_exactly_as_many_starts_as_max_attempts_says(
    store: str, tmp_path: Path, bound: int, ending: str
) -> None:
    """W14, I4, A42: whatever the attempts end with; the record says how many there were."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, poll_interval=30.0)
        retry = tenure.RetryPolicy(max_attempts=9, base=1.0, factor=1.0, jitter=False)
        seen: list[int] = []

        @worker.handler("work", retry=retry, timeout=1.0)
        async def work(payload: None, job: tenure.RunningJob) -> None:
            seen.append(job.attempt)
            if ending == "exception":
                raise ValueError("no")
            await asyncio.Event().wait()

        job = await world.queue.dispatch("work", max_attempts=bound)
        if ending == "crash":
            await crash(world, job, bound)
        async with running(world, worker) as handle:
            await world.advance(10.0)
            record = await world.job(job)
            assert (record.state, record.attempt) == ("failed", bound)
            if ending == "crash":
                assert seen == []
                [error] = errors_of(handle)
                assert "worker lost on attempt" in str(error)
            else:
                assert seen == list(range(1, bound + 1))
                assert len(errors_of(handle)) == bound


@pytest.mark.parametrize("bad", [0, -1])
async def test_w14_no_attempts_and_fewer_are_refused(bad: int) -> None:
    """W14, A42: zero never means for ever."""
    async with open_world() as world:
        with pytest.raises(tenure.InvalidJob) as caught:
            await world.queue.dispatch("work", max_attempts=bad)
        assert caught.value.path == "max_attempts"
        with pytest.raises(tenure.InvalidConfiguration):
            tenure.RetryPolicy(max_attempts=bad)


async def test_w14_the_delays_are_the_policys_and_permanent_errors_are_not_retried() -> None:
    """W14: `give_up_on` ends the job at once, whatever attempts are left."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue, poll_interval=60.0)
        starts: dict[str, list[float]] = {}

        @worker.handler(
            "work",
            retry=tenure.RetryPolicy(
                max_attempts=5,
                base=2.0,
                factor=3.0,
                cap=10.0,
                jitter=False,
                retry_on=(ValueError, LookupError),
                give_up_on=(KeyError,),
            ),
        )
        async def work(payload: str) -> None:
            starts.setdefault(payload, []).append(round(world.clock.monotonic(), 2))
            raise {"value": ValueError, "key": KeyError, "type": TypeError}[payload]("no")

        jobs = [await world.queue.dispatch("work", how) for how in ("value", "key", "type")]
        async with running(world, worker) as handle:
            await world.advance(40.0)
            assert starts == {"value": [0.0, 2.0, 8.0, 18.0, 28.0], "key": [0.0], "type": [0.0]}
            assert [(await world.job(job)).attempt for job in jobs] == [5, 1, 1]
            assert [await world.state(job) for job in jobs] == ["failed"] * 3
            assert len(errors_of(handle)) == 7


async def test_w14_a_job_with_a_backoff_that_overflows_is_kept_to_its_last_attempt() -> None:
    """A41: factor 5, 60 attempts; each delay at most the cap; then it has failed."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue, poll_interval=600.0, lease=864000.0)
        starts: list[float] = []
        retry = tenure.RetryPolicy(max_attempts=60, factor=5.0, cap=6.0, jitter=False)

        @worker.handler("work", retry=retry)
        async def work(payload: None) -> None:
            starts.append(world.clock.monotonic())
            raise ValueError("no")

        job = await world.queue.dispatch("work")
        async with running(world, worker) as handle:
            await world.advance(1.0 + 5.0 + 57 * 6.0 + 1.0)
            record = await world.job(job)
            assert (record.state, record.attempt) == ("failed", 60)
            assert max(b - a for a, b in pairwise(starts)) < 6.01
            assert len(errors_of(handle)) == 60


# --- several ends at once -----------------------------------------------------------------------


class Waiting(NamedTuple):
    """A job that waits for a gate, in a world whose clock can leap."""

    world: World
    clock: LeapingClock
    handle: tenure.WorkerHandle
    job: tenure.JobHandle
    gate: asyncio.Event


@contextlib.asynccontextmanager
async def at_once(job_timeout: float) -> AsyncGenerator[Waiting, None]:
    """A world whose clock can leap, and a worker with one job that waits for a gate."""
    clock = LeapingClock()
    async with open_world_on(MemoryDriver, clock) as world:
        worker = tenure.Worker(world.queue, job_timeout=job_timeout)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> str:
            await gate.wait()
            return "done"

        job = await world.queue.dispatch("work")
        async with running(world, worker) as handle:
            await world.settle()
            yield Waiting(world, clock, handle, job, gate)


async def test_w14_an_outcome_comes_before_a_deadline_at_the_same_instant() -> None:
    """W14: after the loop was blocked, say; the handler had only to be resumed."""
    async with at_once(5.0) as (world, clock, handle, job, gate):
        gate.set()
        clock.leap(5.0)
        await world.settle()
        assert (await world.job(job)).result == "done"
        assert errors_of(handle) == []


async def test_w14_an_outcome_comes_before_a_shutdown_at_the_same_instant() -> None:
    """W14: with no time to drain."""
    async with at_once(5.0) as (world, _, handle, job, gate):
        asyncio.get_running_loop().call_soon(gate.set)
        ending = asyncio.create_task(handle.shutdown(0.0))
        await world.until(ending.done)
        assert (await world.job(job)).result == "done"
        assert ending.result() is None


@pytest.mark.parametrize("again", [False, True], ids=["deadline rings first", "shutdown first"])
async def test_w14_a_deadline_comes_before_a_shutdown_at_the_same_instant(again: bool) -> None:
    """W14: whichever timer rings first, the attempt has timed out and is not put back."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue, job_timeout=5.0)

        @worker.handler("work")
        async def work(payload: None) -> None:
            await asyncio.Event().wait()

        job = await world.queue.dispatch("work")
        if again:
            await world.queue.dispatch("work", timeout=3.0)  # rings for both at 3 s, then anew
        async with running(world, worker) as handle:
            await world.settle()
            ending = asyncio.create_task(handle.shutdown(5.0))
            await world.advance(5.0)
            await world.until(ending.done)
            record = await world.job(job)
            assert record.state == "failed"
            assert record.error is not None
            assert record.error.kind == "timeout"
            errors = [*([ending.result()] if ending.result() else []), *errors_of(handle)]
            assert [type(error) for error in errors] == [tenure.JobTimedOut] * (1 + again)


async def test_w14_an_outcome_deadline_and_shutdown_at_the_same_instant() -> None:
    """W14: the outcome."""
    async with at_once(5.0) as (world, clock, handle, job, gate):
        ending = asyncio.create_task(handle.shutdown(5.0))
        await world.settle()
        gate.set()
        clock.leap(5.0)
        await world.until(ending.done)
        assert (await world.job(job)).result == "done"
        assert ending.result() is None
