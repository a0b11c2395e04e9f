"""W9: jobs whose name has no handler here are left to a worker that has one."""

from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.driver import Capability
from tests.runtime.arrange import NamesDriver, Requests, hidden, open_world_on, running
from tests.runtime.scenes import errors_of, fail_writes, unreachable
from tests.runtime.world import World, each_store, open_world

Delays = list[tuple[float, float | None]]


def bystander(world: World, **options: Any) -> tuple[tenure.Worker, Delays]:
    """A worker without the handler; it notes when it put jobs back, and for how long."""
    delays: Delays = []

    def observe(event: tenure.Event) -> None:
        if isinstance(event, tenure.JobSettled) and isinstance(event.outcome, tenure.Released):
            assert event.outcome.reason == "no handler here"
            delays.append((round(world.clock.monotonic(), 2), event.outcome.delay))

    # A long poll: jobs that were put back are found by their due time.
    options = {"poll_interval": 30.0} | options
    worker = tenure.Worker(world.queue, observers=[observe], **options)
    worker.register("mail.send", print)
    return worker, delays


@each_store
async def test_w09_an_unknown_name_is_released_with_a_delay_that_doubles_up_to_a_minute(
    store: str, tmp_path: Path
) -> None:
    """W9: 5, 10, 20, 40, 60, 60 s; no attempt is spent; reported once a minute."""
    async with open_world(store, tmp_path) as world:
        worker, delays = bystander(world)
        job = await world.queue.dispatch("other")
        async with running(world, worker) as handle:
            await world.advance(200.0)
            assert [delay for _, delay in delays] == [5, 10, 20, 40, 60, 60, 60]
            assert [at for at, _ in delays] == pytest.approx([0, 5, 15, 35, 75, 135, 195], abs=0.1)
            record = await world.job(job)
            assert (record.state, record.attempt, record.stalls) == ("pending", 0, 0)
            errors = errors_of(handle)
            assert 3 <= len(errors) <= 4  # at 0, 75, 135 and 195 s, if that is a minute to the dot
            for error in errors:
                assert isinstance(error, tenure.HandlerNotFound)
                assert (error.name, error.job_id) == ("other", job.id)


@each_store
async def test_w09_the_delay_doubles_once_per_round_and_not_for_each_job(
    store: str, tmp_path: Path
) -> None:
    """W9: all jobs of a name in one round wait equally long, and make one report."""
    async with open_world(store, tmp_path) as world:
        worker, delays = bystander(world, concurrency=4)
        jobs = await world.queue.dispatch_many([tenure.Call("other", n) for n in range(40)])
        async with running(world, worker) as handle:
            await world.advance(4.0)
            assert [delay for _, delay in delays] == [5.0] * 40
            await world.advance(4.0)
            assert [delay for _, delay in delays[40:]] == [10.0] * 40
            [error] = errors_of(handle)
            assert isinstance(error, tenure.HandlerNotFound)
            assert {(await world.job(job)).attempt for job in jobs} == {0}


async def test_w09_names_wait_and_are_reported_apart() -> None:
    """W9: one report for each name and minute, with the nearest name as a hint."""
    async with open_world() as world:
        worker, delays = bystander(world)
        await world.queue.dispatch("mail.sent")
        async with running(world, worker) as handle:
            await world.advance(16.0)
            await world.queue.dispatch("zzz")
            await world.advance(1.0)
            assert [delay for _, delay in delays] == [5.0, 10.0, 20.0, 5.0]
            near, far = errors_of(handle)
            assert "did you mean 'mail.send'?" in str(near)
            assert "'zzz'" in str(far)
            assert "did you mean" not in str(far)


async def test_w09_claims_of_unknown_names_are_throttled() -> None:
    """W9: a job that nobody here can run costs next to nothing while it waits."""
    async with open_world() as world:
        worker, delays = bystander(world)
        await world.queue.dispatch("other")
        async with running(world, worker) as handle:
            await world.advance(80.0)
            before = len(world.driver.calls), len(delays)
            await world.advance(120.0)
            assert len(world.driver.calls) - before[0] <= 5 * 120
            assert len(delays) - before[1] == 2
            assert 3 <= len(errors_of(handle)) <= 4


@each_store
async def test_w09_an_unknown_name_holds_up_no_other_job(store: str, tmp_path: Path) -> None:
    """W9: known jobs behind it run at once."""
    async with open_world(store, tmp_path) as world:
        worker, delays = bystander(world, concurrency=1)
        done: list[int] = []

        @worker.handler("known")
        async def known(payload: int) -> None:
            done.append(payload)

        await world.queue.dispatch_many([tenure.Call("other", priority=1) for _ in range(5)])
        await world.queue.dispatch_many([tenure.Call("known", n) for n in range(5)])
        async with running(world, worker) as handle:
            await world.advance(0.1)
            assert done == [0, 1, 2, 3, 4]
            assert len(delays) == 5
            assert [type(error) for error in errors_of(handle)] == [tenure.HandlerNotFound]


@each_store
async def test_w09_a_newer_worker_takes_the_job_when_its_delay_is_over(
    store: str, tmp_path: Path
) -> None:
    """W9: it is not failed, and its first attempt is still the first."""
    async with open_world(store, tmp_path) as world:
        old, _ = bystander(world)
        job = await world.queue.dispatch("other")
        async with running(world, old) as handle:
            await world.advance(1.0)
            assert len(errors_of(handle)) == 1
        newer = tenure.Worker(world.queue)
        starts: list[tuple[float, int]] = []

        @newer.handler("other")
        async def other(payload: None, job: tenure.RunningJob) -> None:
            starts.append((round(world.clock.monotonic(), 3), job.attempt))

        async with running(world, newer):
            await world.advance(10.0)
            assert starts == [(5.0, 1)]
            assert await world.state(job) == "completed"


async def test_w09_the_count_is_that_of_one_run() -> None:
    """W9: it lives in the worker's memory."""
    async with open_world() as world:
        worker, delays = bystander(world)
        await world.queue.dispatch("other")
        for _ in range(2):
            async with running(world, worker) as handle:
                await world.advance(0.1)
                assert len(errors_of(handle)) == 1
            await world.advance(5.0)
        assert [delay for _, delay in delays] == [5.0, 5.0]


async def test_w09_where_the_store_cannot_delay_the_job_is_recorded_as_failed() -> None:
    """W9: a release without a delay would come back at once, for ever."""
    async with open_world(**hidden("memory", Capability.DELAY)) as world:
        worker, _ = bystander(world)
        job = await world.queue.dispatch("other")
        async with running(world, worker) as handle:
            await world.settle()
            record = await world.job(job)
            assert (record.state, record.attempt) == ("failed", 0)
            assert record.error is not None
            assert record.error.kind == "no_handler"
            assert "'other'" in record.error.message
            [error] = errors_of(handle)
            assert isinstance(error, tenure.HandlerNotFound)


@pytest.mark.parametrize("missing", [(), (Capability.DELAY,)], ids=["release", "fail"])
async def test_w09_if_that_write_is_fenced_its_error_is_reported_instead(
    missing: tuple[Capability, ...],
) -> None:
    """W9: nothing is said of the handler, since nothing was done to the job."""
    async with open_world(**hidden("memory", *missing)) as world:
        worker, _ = bystander(world)
        job = await world.queue.dispatch("other")
        gate = world.driver.hold_up("record")
        world.driver.hooks["exchange"] = world.driver.hooks["record"]
        async with running(world, worker) as handle:
            await world.settle()
            later = (await world.job(job)).created_at.replace(year=2031)
            await world.inner.reclaim(1, [0.0], now=later)
            gate.set()
            await world.settle()
            [error] = errors_of(handle)
            assert isinstance(error, tenure.StateTransitionError)
            assert (error.job_id, error.operation) == (job.id, "release_unhandled")


async def test_w09_if_that_write_is_refused_its_error_is_reported_instead() -> None:
    """W9: the store's own words come first."""
    async with open_world(**hidden("memory", Capability.DELAY)) as world:
        worker, _ = bystander(world)
        job = await world.queue.dispatch("other")
        fail_writes(world, tenure.StoreError("refused"), times=1)
        async with running(world, worker) as handle:
            await world.settle()
            refused, left = errors_of(handle)
            assert str(refused) == "refused"
            assert isinstance(left, tenure.StateTransitionError)
            assert (left.job_id, left.operation) == (job.id, "release_unhandled")
            assert await world.state(job) == "processing"  # left to its lease


async def test_w09_an_unreachable_store_is_reported_and_the_write_repeated() -> None:
    """W9: and then the missing handler is."""
    async with open_world() as world:
        worker, delays = bystander(world)
        await world.queue.dispatch("other")
        fail_writes(world, unreachable(), times=1)
        async with running(world, worker) as handle:
            await world.advance(0.1)
            away, missing = errors_of(handle)
            assert isinstance(away, tenure.StoreUnavailable)
            assert isinstance(missing, tenure.HandlerNotFound)
            assert [delay for _, delay in delays] == [5.0]


async def test_w09_where_the_store_filters_by_name_it_is_not_claimed_and_not_reported() -> None:
    """W9: a driver with `Capability.NAMES` is asked for the known names only."""
    async with open_world_on(NamesDriver) as world:
        requests = Requests(world)
        worker, delays = bystander(world)
        job = await world.queue.dispatch("other")
        async with running(world, worker):
            await world.advance(120.0)
            record = await world.job(job)
            assert (record.state, record.serial) == ("pending", 0)
            assert delays == []
            assert {request.names for request in requests.requests} == {frozenset({"mail.send"})}
            newer = tenure.Worker(world.queue)
            newer.register("other", _nothing)
            async with running(world, newer):
                await world.advance(0.1)
                assert await world.state(job) == "completed"


async def test_w09_where_the_store_does_not_filter_no_names_are_sent() -> None:
    """W9: none of the built-in drivers does."""
    async with open_world() as world:
        requests = Requests(world)
        worker, _ = bystander(world)
        async with running(world, worker):
            await world.settle()
            assert [request.names for request in requests.requests] == [None]


async def _nothing(payload: Any) -> None:
    """Runs whatever it is given."""
