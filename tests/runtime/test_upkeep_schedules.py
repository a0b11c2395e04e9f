"""The loop that fires schedules: when, how often, and what it makes of missed instants (I13)."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import tenure
from tests.runtime.scenes import errors_of, quiet_worker, running, unreachable
from tests.runtime.world import World, open_world


def counting(world: World, **options: Any) -> tuple[tenure.Worker, list[tuple[float, Any]]]:
    """A worker that notes when its handler starts, and the tick it is told."""
    worker = quiet_worker(world, **options)
    starts: list[tuple[float, Any]] = []

    @worker.handler("tick")
    async def tick(payload: Any, job: tenure.RunningJob) -> None:
        starts.append((round(world.clock.monotonic(), 3), payload))

    return worker, starts


async def test_a_schedule_fires_at_each_of_its_instants() -> None:
    async with open_world() as world:
        worker, starts = counting(world)
        await world.queue.schedule("s", "@every 10s", "tick", "x")
        async with running(worker) as handle:
            await world.advance(35.0)
            assert starts == [(10.0, "x"), (20.0, "x"), (30.0, "x")]
            assert errors_of(handle) == []


async def test_of_many_workers_one_fires_an_instant() -> None:
    """I13, FAULTS A39: no leader, no mark that goes away with the job."""
    async with open_world() as world:
        workers = [counting(world) for _ in range(5)]
        await world.queue.schedule("s", "@every 1s", "tick")
        async with (
            running(workers[0][0]),
            running(workers[1][0]),
            running(workers[2][0]),
            running(workers[3][0]),
            running(workers[4][0]),
        ):
            await world.advance(30.5)
        assert sum(len(starts) for _, starts in workers) == 30
        counts = await world.queue.counts()
        assert (counts.completed, counts.pending, counts.scheduled) == (30, 0, 0)


async def test_the_job_is_due_at_its_instant_and_says_where_it_comes_from() -> None:
    async with open_world() as world:
        worker, _ = counting(world)
        schedule = await world.queue.schedule(
            "nightly", "@every 10s", "tick", {"n": 1}, priority=3, timeout=5, headers={"a": "b"}
        )
        async with running(worker):
            await world.advance(10.0)
        (job,) = (await world.queue.list()).jobs
        instant = schedule.created_at + timedelta(seconds=10)
        assert (job.run_at, job.payload, job.priority, job.timeout) == (instant, {"n": 1}, 3, 5.0)
        assert job.headers == {"a": "b", "schedule": "nightly", "tick": instant.isoformat()}


@pytest.mark.parametrize(
    ("missed", "runs", "skipped"), [("skip", 0, 72), ("once", 1, 71), ("all", 72, 0)]
)
async def test_missed_instants_are_made_up_for_as_asked(
    missed: str, runs: int, skipped: int
) -> None:
    """FAULTS A38: six hours of outage, then three workers."""
    async with open_world() as world:
        events: list[tenure.TicksSkipped] = []

        def observe(event: object) -> None:
            if isinstance(event, tenure.TicksSkipped):
                events.append(event)

        workers = [counting(world, observers=[observe]) for _ in range(3)]
        await world.queue.schedule("s", "@every 5m", "tick", missed=missed)
        await world.advance(6 * 3600 + 90.0)
        async with running(workers[0][0]), running(workers[1][0]), running(workers[2][0]):
            await world.advance(1.0)
            assert sum(len(starts) for _, starts in workers) == runs
            assert sum(event.skipped for event in events) == skipped
            await world.advance(300.0)
        assert sum(len(starts) for _, starts in workers) == runs + 1


async def test_skipped_instants_are_told_of_once_however_many_others_are_fired() -> None:
    """The log and the observers are told of an outage, not of each instant after it."""
    async with open_world() as world:
        events: list[tenure.TicksSkipped] = []

        def observe(event: object) -> None:
            if isinstance(event, tenure.TicksSkipped):
                events.append(event)

        worker, starts = counting(world, observers=[observe])
        schedule = await world.queue.schedule("s", "@every 10s", "tick")
        await world.advance(305.0)
        async with running(worker):
            await world.advance(1.0)
        assert len(starts) == 6  # those of the last minute
        first = schedule.created_at + timedelta(seconds=250)
        assert [(event.skipped, event.until) for event in events] == [(24, first)]


async def test_a_worker_that_polls_rarely_misses_no_instant_of_a_new_schedule() -> None:
    """An instant that a worker could have run is not skipped as if there had been none."""
    async with open_world() as world:
        worker, starts = counting(world)
        async with running(worker):
            await world.advance(1.0)
            await world.queue.schedule("s", "@every 20s", "tick")
            await world.advance(125.0)
        assert len(starts) == 6


async def test_a_changed_definition_leaves_no_instants_of_the_old_one() -> None:
    async with open_world() as world:
        worker, starts = counting(world, strict=False)
        await world.queue.schedule("s", "@every 10s", "tick", "old")
        async with running(worker):
            await world.advance(14.0)
            await world.queue.schedule("s", "@every 30s", "tick", "new")
            await world.advance(1000.0)  # the worker looks at the schedules again
        assert starts[0] == (10.0, "old")
        # The worker knew the old definition until its next instant, which the store refused.
        assert starts[1] == (44.0, "new")
        assert {payload for _, payload in starts[1:]} == {"new"}


async def test_the_same_definition_again_changes_nothing() -> None:
    async with open_world() as world:
        first = await world.queue.schedule("s", "@every 10s", "tick", {"a": 1}, headers={"x": "y"})
        await world.advance(7.0)
        again = await world.queue.schedule("s", "@every 10s", "tick", {"a": 1}, headers={"x": "y"})
        assert (again.created_at, again.last, again.next) == (
            first.created_at,
            first.last,
            first.next,
        )


async def test_a_paused_schedule_fires_nothing_and_resumes_with_the_next_instant() -> None:
    async with open_world() as world:
        worker, starts = counting(world)
        await world.queue.schedule("s", "@every 10s", "tick", missed="all")
        await world.queue.pause_schedule("s")
        async with running(worker):
            await world.advance(1035.0)
            assert starts == []
            await world.queue.resume_schedule("s")
            await world.advance(970.0)  # the worker looks at the schedules again
        # Those from 1040 to 2000, and none of the pause.
        assert len(starts) == 97
        assert (await world.queue.schedules())[0].paused is False


async def test_an_outage_of_the_store_loses_no_instant() -> None:
    """Reported, tried again; what may have passed is looked up and not fired twice."""
    async with open_world() as world:
        worker, starts = counting(world)
        await world.queue.schedule("s", "@every 10s", "tick")
        world.driver.fail("fire", unreachable(ambiguous=True), times=1, after=True)
        async with running(worker) as handle:
            await world.advance(35.0)
            assert [at for at, _ in starts] == [10.0, 20.0, 30.0]
            assert [type(error).__name__ for error in errors_of(handle)] == ["StoreUnavailable"]


async def test_a_lost_fire_that_did_not_reach_the_store_is_made_up_for() -> None:
    async with open_world() as world:
        worker, starts = counting(world)
        await world.queue.schedule("s", "@every 10s", "tick")
        world.driver.fail("fire", unreachable(), times=1)
        async with running(worker):
            await world.advance(25.0)
        assert len(starts) == 2
        assert starts[0][0] < 12.0


@pytest.mark.parametrize(
    "change", [{"priority": 10**30}, {"name": "\0"}, {"queue": ""}, {"timeout": -1.0}]
)
async def test_a_schedule_whose_jobs_no_store_takes_counts_as_one_that_cannot_be_read(
    change: dict[str, Any], tmp_path: Path
) -> None:
    """I12: what other hands have made of it stands in one call with the ticks of others."""
    async with open_world("sqlite", tmp_path) as world:
        worker, starts = counting(world)
        await world.queue.schedule("good", "@every 10s", "tick", "x")
        (good,) = (await world.inner.schedules()).items
        stored = json.loads(good.definition)
        changed = json.dumps(stored | change).encode()
        bad = tenure.NewSchedule(id="bad", revision="r", definition=changed)
        await world.inner.put_schedules([bad])
        async with running(worker) as handle:
            await world.advance(25.0)
            assert [payload for _, payload in starts] == ["x", "x"]
            (error,) = errors_of(handle)
            assert isinstance(error, tenure.SerializationError)
            assert "schedule 'bad'" in str(error)


async def test_a_schedule_that_cannot_be_read_is_reported_once_and_harms_no_other() -> None:
    """I12."""
    async with open_world() as world:
        worker, starts = counting(world)
        broken = tenure.NewSchedule(id="broken", revision="r", definition=b"{")
        await world.inner.put_schedules([broken])
        await world.queue.schedule("s", "@every 10s", "tick")
        async with running(worker) as handle:
            await world.advance(20.0)
            assert len(starts) == 2
            (error,) = errors_of(handle)
            assert isinstance(error, tenure.SerializationError)
            assert "broken" in str(error)
        shown = {schedule.id: schedule for schedule in await world.queue.schedules()}
        assert shown["broken"].damage
        assert shown["broken"].upcoming(3) == ()
        assert shown["s"].damage is None
