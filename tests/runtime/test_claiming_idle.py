"""W8: when a worker looks for jobs, and how seldom when there is nothing or the store fails."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.driver import Capability
from tests.runtime.arrange import Requests, hidden, running
from tests.runtime.scenes import errors_of, shut_down, unreachable
from tests.runtime.world import World, each_store, open_world


def noting(world: World, **options: Any) -> tuple[tenure.Worker, list[float]]:
    """A worker whose handler notes the instants of its starts."""
    worker = tenure.Worker(world.queue, **options)
    starts: list[float] = []

    @worker.handler("work")
    async def work(payload: None) -> None:
        starts.append(world.clock.monotonic())

    return worker, starts


def times_of(world: World, *operations: str) -> list[float]:
    """The instants of all calls of these operations, as they come, hooks kept."""
    times: list[float] = []

    def watch(operation: str) -> None:
        before = world.driver.hooks.get(operation)

        async def hook(call: Callable[[], Awaitable[Any]]) -> Any:
            times.append(world.clock.monotonic())
            return await (call() if before is None else before(call))

        world.driver.hooks[operation] = hook

    for operation in operations:
        watch(operation)
    return times


async def heard(world: World, **options: Any) -> tenure.JobHandle:
    """Dispatch a job, and let the worker hear of it and ask for the next due time."""
    before = Counter(world.driver.calls)
    job = await world.queue.dispatch("work", **options)
    await world.until(lambda: world.driver.calls.count("claim") > before["claim"])
    await world.advance(0.02)
    assert world.driver.calls.count("next_due") > before["next_due"]
    return job


def gaps(times: list[float]) -> list[float]:
    return [after - before for before, after in pairwise(times)]


# --- what ends the waiting ----------------------------------------------------------------------


@each_store
async def test_w08_a_hint_starts_a_job_at_once(store: str, tmp_path: Path) -> None:
    """W8: an idle worker hears of a dispatch; no poll is waited for."""
    async with open_world(store, tmp_path) as world:
        worker, starts = noting(world, poll_interval=60.0)
        async with running(world, worker):
            await world.advance(90.0)
            for count in range(1, 4):
                await world.queue.dispatch("work")
                await world.until(lambda count=count: len(starts) == count)  # type: ignore[misc]
                await world.advance(0.01)  # the floor after an empty claim
            assert starts == pytest.approx([90.0, 90.01, 90.02])


async def test_w08_without_hints_a_job_starts_within_the_poll_interval() -> None:
    """W8: polling is enough, with a lost hint or a store that has none."""
    async with open_world(**hidden("memory", Capability.WAIT)) as world:
        worker, starts = noting(world, poll_interval=3.0)
        async with running(world, worker):
            await world.advance(4.0)
            await world.queue.dispatch("work")
            await world.advance(1.9)
            assert starts == []
            await world.advance(0.2)
            assert starts == pytest.approx([6.0], abs=0.02)


@each_store
async def test_w08_a_free_slot_is_filled_at_once(store: str, tmp_path: Path) -> None:
    """W8: the next job starts when the one before it ends, without any time passing."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, concurrency=1, poll_interval=60.0)
        starts: list[float] = []
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: int) -> None:
            starts.append(world.clock.monotonic())
            await gate.wait()

        await world.queue.dispatch_many([tenure.Call("work", n) for n in range(5)])
        async with running(world, worker):
            await world.advance(7.0)
            gate.set()
            await world.settle()
            assert starts == [0.0, 7.0, 7.0, 7.0, 7.0]


@each_store
async def test_w08_a_delayed_job_starts_at_its_instant_on_an_idle_worker(
    store: str, tmp_path: Path
) -> None:
    """W8: the next due time ends the waiting, long before the poll."""
    async with open_world(store, tmp_path) as world:
        worker, starts = noting(world, poll_interval=60.0)
        async with running(world, worker):
            await world.advance(61.0)
            job = await heard(world, delay=7.5)
            await world.advance(7.47)
            assert starts == []
            assert (await world.queue.counts()).scheduled == 1
            await world.advance(0.01)
            assert starts == pytest.approx([68.5])
            assert await world.state(job) == "completed"


@each_store
async def test_w08_an_earlier_due_time_that_comes_later_is_seen(store: str, tmp_path: Path) -> None:
    """W8: the wait for one job's instant does not hide another's."""
    async with open_world(store, tmp_path) as world:
        worker, starts = noting(world, poll_interval=60.0)
        await world.queue.dispatch("work", delay=40.0)
        async with running(world, worker):
            await world.advance(1.0)
            await heard(world, delay=10.0)
            await world.advance(60.0)
            assert starts == pytest.approx([11.0, 40.0], abs=0.001)


@each_store
async def test_w08_a_retry_starts_when_its_delay_is_over(store: str, tmp_path: Path) -> None:
    """W8: alike for what goes back with a delay."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, poll_interval=60.0)
        starts: list[float] = []
        policy = tenure.RetryPolicy(max_attempts=3, base=8.0, jitter=False)

        @worker.handler("flaky", retry=policy)
        async def flaky(payload: None) -> None:
            starts.append(world.clock.monotonic())
            if len(starts) < 3:
                raise ValueError("not yet")

        await world.queue.dispatch("flaky")
        async with running(world, worker) as handle:
            await world.advance(25.0)
            assert starts == pytest.approx([0.0, 8.0, 24.0], abs=0.001)
            assert [type(error) for error in errors_of(handle)] == [tenure.JobFailed] * 2


async def test_w08_without_next_due_a_delayed_job_waits_for_a_poll() -> None:
    """W8: what the driver cannot say costs latency only."""
    async with open_world(**hidden("memory", Capability.NEXT_DUE)) as world:
        worker, starts = noting(world, poll_interval=2.0)
        await world.queue.dispatch("work", delay=3.0)
        async with running(world, worker):
            await world.advance(10.0)
            assert len(starts) == 1
            assert 3.0 <= starts[0] <= 5.0
            assert "next_due" not in world.driver.calls


async def test_w08_a_claim_that_fails_beside_outcomes_stops_no_later_one() -> None:
    """W8: the worker was at rest when it failed, and its next poll falls into the pause."""
    async with open_world() as world:
        worker, starts = noting(world)
        gate = asyncio.Event()

        @worker.handler("gated")
        async def gated(payload: None) -> None:
            await gate.wait()

        handle = worker.run()
        await world.queue.dispatch("gated")
        await world.advance(0.9)
        world.driver.fail("exchange", unreachable())
        gate.set()
        await world.advance(5.0)
        assert (await world.queue.counts()).completed == 1
        await world.queue.dispatch("work")
        await world.advance(1.0)
        assert len(starts) == 1
        assert len(errors_of(handle)) == 1
        await shut_down(world, handle)


# --- how seldom it looks ------------------------------------------------------------------------


@each_store
async def test_w08_an_idle_worker_makes_at_most_five_calls_a_second(
    store: str, tmp_path: Path
) -> None:
    """W8: with the defaults, all kinds of calls counted, over ten seconds.

    The timers of its loops may meet: within one second each kind of call is made twice at most.
    """
    async with open_world(store, tmp_path) as world:
        worker, _ = noting(world)
        async with running(world, worker):
            await world.advance(1.0)
            for _ in range(5):
                start = len(world.driver.calls)
                for _ in range(10):
                    before = len(world.driver.calls)
                    await world.advance(1.0)
                    assert max(Counter(world.driver.calls[before:]).values()) <= 2
                assert len(world.driver.calls) - start <= 50


@each_store
@pytest.mark.parametrize("delay", [0.0, 3600.0])
async def test_w08_a_busy_worker_with_no_free_slot_does_not_look(
    store: str, tmp_path: Path, delay: float
) -> None:
    """W8: whatever waits, due or not."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, concurrency=1)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> None:
            await gate.wait()

        await world.queue.dispatch("work")
        async with running(world, worker):
            await world.advance(5.0)
            await world.queue.dispatch("work", delay=delay)
            before = Counter(world.driver.calls)
            await world.advance(100.0)
            after = Counter(world.driver.calls) - before
            assert after["claim"] + after["exchange"] + after["next_due"] == 0
            assert after["wait"] <= 12
            gate.set()


async def test_w08_lying_hints_make_no_hot_loop() -> None:
    """W8: there is a floor after an empty claim."""
    async with open_world() as world:

        async def lie(call: object) -> bool:
            return True

        world.driver.hooks["wait"] = lie
        worker, _ = noting(world)
        async with running(world, worker):
            await world.advance(0.1)
            assert 2 <= world.driver.calls.count("claim") <= 60
            assert world.driver.calls.count("wait") <= 60


# --- a store that fails -------------------------------------------------------------------------


@pytest.mark.parametrize("fused", [True, False], ids=["exchange", "no exchange"])
@pytest.mark.parametrize("ambiguous", [False, True])
async def test_w08_failing_claims_are_reported_and_back_off_to_a_cap(
    fused: bool, ambiguous: bool
) -> None:
    """W8: poll interval, then growing, with jitter; one error for each; never a hot loop."""
    missing = () if fused else (Capability.EXCHANGE,)
    async with open_world(**hidden("memory", *missing)) as world:
        world.driver.fail("claim", unreachable(ambiguous=ambiguous), times=10**9)
        times = times_of(world, "claim", "exchange")
        worker, starts = noting(world, poll_interval=1.0)
        async with running(world, worker) as handle:
            await world.queue.dispatch("work")
            await world.advance(120.0)
            pauses = gaps(times)
            assert all(pause >= 0.5 for pause in pauses)
            assert max(pauses[3:]) <= 4.0 + 0.1
            assert sum(pauses[3:]) / len(pauses[3:]) > 2.0
            assert len({round(pause, 3) for pause in pauses}) > len(pauses) / 2  # jitter
            errors = errors_of(handle)
            assert len(errors) == len(times)
            assert {str(error) for error in errors} == {"the store is away"}
            assert starts == []
            del world.driver.hooks["claim"], world.driver.hooks["exchange"]
            await world.advance(5.1)
            assert len(starts) == 1
            assert handle.healthy


async def test_w08_a_definite_refusal_of_claims_backs_off_too() -> None:
    """W8: any error of the store, and a fast poll interval does not make it fast."""
    async with open_world() as world:
        world.driver.fail("claim", tenure.StoreError("refused"), times=10**9)
        worker, _ = noting(world, poll_interval=0.01)
        async with running(world, worker) as handle:
            await world.advance(100.0)
            assert world.driver.calls.count("claim") < 60
            assert len(errors_of(handle)) == world.driver.calls.count("claim")


async def test_w08_hints_that_fail_are_reported_and_polling_goes_on() -> None:
    """W8: and they are tried again, less and less often."""
    async with open_world() as world:
        world.driver.fail("wait", unreachable(), times=10**9)
        times = times_of(world, "wait")
        worker, starts = noting(world, poll_interval=1.0)
        async with running(world, worker) as handle:
            await world.queue.dispatch("work", delay=30.0)
            await world.advance(60.0)
            assert starts == pytest.approx([30.0], abs=1.0)
            assert 5 <= len(times) <= 60
            assert max(gaps(times)) <= 7.0
            errors = errors_of(handle)
            assert len(errors) in (len(times), len(times) - 1)
            assert {str(error) for error in errors} == {"the store is away"}
            assert world.driver.calls.count("claim") <= 200
            del world.driver.hooks["wait"]
            await world.advance(7.0)  # it listens again
            errors_of(handle)
            await world.advance(0.5)
            await world.queue.dispatch("work")
            await world.settle()
            assert len(starts) == 2


async def test_w08_an_unknown_next_due_time_is_reported_and_polling_goes_on() -> None:
    """W8: the poll takes its place."""
    async with open_world() as world:
        world.driver.fail("next_due", tenure.StoreError("refused"), times=10**9)
        worker, starts = noting(world, poll_interval=1.0)
        async with running(world, worker) as handle:
            await world.queue.dispatch("work", delay=5.5)
            await world.advance(10.0)
            assert starts == pytest.approx([6.0], abs=0.5)
            errors = errors_of(handle)
            assert {str(error) for error in errors} == {"refused"}
            assert len(errors) == world.driver.calls.count("next_due") <= 12


# --- a claim whose answer was lost --------------------------------------------------------------


@each_store
@pytest.mark.parametrize("acted", [True, False], ids=["acted", "did nothing"])
@pytest.mark.parametrize("times", [1, 3])
async def test_w08_after_an_ambiguous_claim_the_next_one_repeats_its_token(
    store: str, tmp_path: Path, acted: bool, times: int
) -> None:
    """W8, I14: with `again=True`, only then; nothing is lost and nothing runs twice."""
    async with open_world(store, tmp_path) as world:
        requests = Requests(world)
        error = unreachable(ambiguous=True)
        world.driver.fail("claim", error, times=times, after=acted)
        worker, starts = noting(world)
        jobs = await world.queue.dispatch_many([tenure.Call("work") for _ in range(3)])
        async with running(world, worker) as handle:
            await world.advance(20.0)
            assert errors_of(handle) == [error] * times
            assert len(starts) == 3
            for job in jobs:
                record = await world.job(job)
                assert (record.state, record.attempt, record.stalls) == ("completed", 1, 0)
        if acted:
            repeats = requests.requests[: times + 1]
            assert [request.again for request in repeats] == [False] + [True] * times
            assert len({request.token for request in repeats}) == 1
            assert len({(request.limit, request.queues) for request in repeats}) == 1
        later = [request for request in requests.requests if not request.again]
        assert len({request.token for request in later}) == len(later)
        assert requests.requests[-1].again is False


@each_store
async def test_w08_after_an_ambiguous_exchange_nothing_is_lost_or_run_twice(
    store: str, tmp_path: Path
) -> None:
    """W8, W16: outcomes and claim of one round trip, whose answer was lost."""
    async with open_world(store, tmp_path) as world:
        error = unreachable(ambiguous=True)
        world.driver.fail("exchange", error, after=True)
        worker = tenure.Worker(world.queue, concurrency=2)
        starts: list[int] = []

        @worker.handler("work")
        async def work(payload: int) -> int:
            starts.append(payload)
            return payload

        jobs = await world.queue.dispatch_many([tenure.Call("work", n) for n in range(6)])
        async with running(world, worker) as handle:
            await world.advance(10.0)
            assert errors_of(handle) == [error]
            assert starts == list(range(6))
            for n, job in enumerate(jobs):
                record = await world.job(job)
                assert (record.state, record.attempt, record.result) == ("completed", 1, n)


@each_store
async def test_w08_at_shutdown_an_ambiguous_claim_is_asked_for_once_more_and_released(
    store: str, tmp_path: Path
) -> None:
    """W8, W23: what it took goes back with no attempt spent."""
    async with open_world(store, tmp_path) as world:
        error = unreachable(ambiguous=True)
        world.driver.fail("claim", error, after=True)
        worker, starts = noting(world, poll_interval=30.0)
        job = await world.queue.dispatch("work")
        async with running(world, worker) as handle:
            await world.advance(0.01)
            assert errors_of(handle) == [error]
            assert await world.state(job) == "processing"
            ending = asyncio.create_task(handle.shutdown(5.0))
            await world.until(ending.done)
            record = await world.job(job)
            assert (record.state, record.attempt, record.stalls) == ("pending", 0, 0)
            assert starts == []
            assert ending.result() is None
