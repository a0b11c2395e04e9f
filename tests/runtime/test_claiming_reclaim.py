"""W5: jobs of expired leases come back, whichever worker held them, and no others do."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.driver import Capability
from tests.runtime.arrange import hidden, running
from tests.runtime.scenes import errors_of, unreachable
from tests.runtime.world import World, each_store, open_world

Starts = list[tuple[Any, int]]


def counting(world: World, *, lease: float = 30.0, **options: Any) -> tuple[tenure.Worker, Starts]:
    """A worker whose handler notes its starts."""
    worker = tenure.Worker(world.queue, lease=lease, **options)
    starts: Starts = []

    @worker.handler("work")
    async def work(payload: Any, job: tenure.RunningJob) -> None:
        starts.append((payload, job.attempt))

    return worker, starts


def looks_of(world: World) -> list[float]:
    """The instants at which the store was asked for expired holds, as they come."""
    looks: list[float] = []

    async def look(call: Callable[[], Awaitable[Any]]) -> Any:
        looks.append(world.clock.monotonic())
        return await call()

    world.driver.hooks["expired"] = look
    return looks


@each_store
async def test_w05_at_start_the_expired_lease_of_another_worker_is_reclaimed(
    store: str, tmp_path: Path
) -> None:
    """W5: the job of a worker that is gone runs again at once."""
    async with open_world(store, tmp_path) as world:
        job = await world.queue.dispatch("work")
        await world.claim_elsewhere(lease=5.0)
        await world.advance(5.0)
        events: list[tenure.Event] = []
        worker, starts = counting(world, observers=[events.append])
        async with running(world, worker):
            await world.advance(0.01)
            assert starts == [(None, 2)]
            assert await world.state(job) == "completed"
            reclaimed = [event for event in events if isinstance(event, tenure.JobsReclaimed)]
            assert [event.job_ids for event in reclaimed] == [(job.id,)]


@each_store
async def test_w05_a_lease_that_expires_later_is_reclaimed_within_one_interval(
    store: str, tmp_path: Path
) -> None:
    """W5, I7: also when its worker died while this one was running."""
    async with open_world(store, tmp_path) as world:
        job = await world.queue.dispatch("work")
        [claim] = await world.claim_elsewhere(lease=45.0)
        worker, starts = counting(world)
        async with running(world, worker):
            await world.advance(44.9)
            assert await world.state(job) == "processing"
            assert (await world.job(job)).serial == claim.hold.serial
            await world.advance(30.1)
            assert starts == [(None, 2)]
            assert await world.state(job) == "completed"


@each_store
async def test_w05_a_worker_with_a_short_lease_leaves_a_longer_one_alone(
    store: str, tmp_path: Path
) -> None:
    """W5: the deadline was recorded with the claim; the reclaimer's own lease does not matter."""
    async with open_world(store, tmp_path) as world:
        job = await world.queue.dispatch("work")
        [claim] = await world.claim_elsewhere(lease=100.0)
        worker, starts = counting(world, lease=3.0)
        async with running(world, worker):
            await world.advance(99.0)
            assert starts == []
            assert (await world.job(job)).serial == claim.hold.serial
            assert list(await world.inner.extend([claim.hold], 100.0)) == [tenure.Kept.KEPT]
            await world.advance(99.0)
            assert starts == []
            await world.advance(4.0)
            assert starts == [(None, 2)]


@pytest.mark.parametrize(("lease", "interval"), [(0.2, 1.0), (30.0, 30.0), (900.0, 60.0)])
async def test_w05_expired_leases_are_looked_for_every_lease_within_one_second_and_one_minute(
    lease: float, interval: float
) -> None:
    """W5: every max(1 s, min(lease, 60 s)), with jitter that only shortens."""
    async with open_world() as world:
        looks = looks_of(world)
        worker, _ = counting(world, lease=lease)
        async with running(world, worker):
            await world.advance(20 * interval)
        gaps = [after - before for before, after in pairwise(looks)]
        assert looks[0] == 0.0
        assert max(gaps) <= interval + 1e-6
        assert min(gaps) >= interval / 2
        assert len({round(gap, 6) for gap in gaps}) > 1  # several workers do not go in step


async def test_w05_a_driver_that_cannot_reclaim_gets_no_such_loop() -> None:
    """W5: what a driver cannot do is asked, not tried."""
    async with open_world(**hidden("memory", Capability.RECLAIM)) as world:
        await world.queue.dispatch("work")
        await world.claim_elsewhere(lease=1.0)
        worker, starts = counting(world)
        async with running(world, worker):
            await world.advance(300.0)
            assert not {"expired", "reclaim"} & set(world.driver.calls)
            assert starts == []


@each_store
@pytest.mark.parametrize("operation", ["expired", "reclaim"])
@pytest.mark.parametrize(
    "error", [tenure.StoreError("refused"), tenure.StoreUnavailable("away", ambiguous=True)]
)
async def test_w05_an_error_of_reclaiming_is_reported_and_the_loop_goes_on(
    store: str, tmp_path: Path, operation: str, error: tenure.StoreError
) -> None:
    """W5: the next look finds what this one could not."""
    async with open_world(store, tmp_path) as world:
        await world.queue.dispatch("work")
        await world.claim_elsewhere(lease=1.0)
        await world.advance(1.0)
        world.driver.fail(operation, error)
        worker, starts = counting(world)
        async with running(world, worker) as handle:
            await world.advance(1.0)
            assert starts == []
            assert errors_of(handle) == [error]
            await world.advance(30.0)
            assert starts == [(None, 2)]
            assert handle.healthy


@each_store
async def test_w05_a_worker_does_not_reclaim_what_it_has_still_to_record(
    store: str, tmp_path: Path
) -> None:
    """W5, W16: outcomes cannot be written for longer than a lease; none is run again for it."""
    async with open_world(store, tmp_path) as world:
        worker, starts = counting(world, lease=3.0)
        away = unreachable()
        world.driver.fail("exchange", away, times=10_000)
        world.driver.fail("record", away, times=10_000)
        async with running(world, worker) as handle:
            job = await world.queue.dispatch("work")
            await world.advance(20.0)
            assert (await world.inner.expired(1)).holds
            assert "reclaim" not in world.driver.calls
            del world.driver.hooks["exchange"], world.driver.hooks["record"]
            await world.advance(2.5)
            assert await world.state(job) == "completed"
            assert starts == [(None, 1)]
            assert {type(error) for error in errors_of(handle)} == {tenure.StoreUnavailable}


@each_store
async def test_w05_leases_of_running_attempts_are_not_reclaimed(store: str, tmp_path: Path) -> None:
    """W5, I6: what is extended in time stays where it is, also with a rival beside it."""
    async with open_world(store, tmp_path) as world:
        first, _ = counting(world, lease=3.0)
        rival, _ = counting(world, lease=3.0)
        others: list[str] = []
        gate = asyncio.Event()

        @first.handler("long")
        async def long(payload: None) -> None:
            await gate.wait()

        @rival.handler("long")
        async def run_twice(payload: None) -> None:
            others.append("twice")

        job = await world.queue.dispatch("long")
        async with running(world, first):
            await world.advance(0.01)
            async with running(world, rival):
                await world.advance(60.0)
                assert others == []
                gate.set()
                await world.settle()
                assert await world.state(job) == "completed"
                assert (await world.job(job)).attempt == 1


@each_store
@pytest.mark.parametrize("step", [3600.0, 86400.0 * 365])
async def test_w05_when_the_clock_has_jumped_only_what_stands_unextended_is_reclaimed(
    store: str, tmp_path: Path, step: float
) -> None:
    """I6, I7: all leases look run out then; who lives extends, and who does not is dead."""
    async with open_world(store, tmp_path) as world:
        worker, starts = counting(world, lease=5.0)
        await world.queue.dispatch_many([tenure.Call("work", name) for name in ("alive", "dead")])
        alive, _ = await world.claim_elsewhere(2, lease=30.0)
        async with running(world, worker):
            await world.advance(7.0)
            world.clock.step_wall(step)
            for _ in range(6):
                await world.advance(9.5)
                if world.clock.monotonic() < 37.0:  # a whole lease has not been seen to pass
                    assert starts == []
                await world.inner.extend([alive.hold], 30.0)
            await world.until(lambda: starts == [("dead", 2)])
            record = await world.queue.get(alive.hold.job_id)
            assert (record.state, record.serial) == ("processing", alive.hold.serial)
            await world.inner.record([(alive.hold, tenure.Completed())])


@each_store
@pytest.mark.parametrize("since", [0.0, 20.0])
async def test_w05_a_worker_that_starts_after_the_clock_was_set_forward_takes_nothing_of_the_living(
    store: str, tmp_path: Path, since: float
) -> None:
    """I6: all leases look run out to it; that the clock was set, the store has from who looked."""
    async with open_world(store, tmp_path) as world:
        assert (await world.inner.expired(1)).steady == inf  # as any worker looks when it starts
        await world.queue.dispatch_many([tenure.Call("work", name) for name in ("alive", "dead")])
        alive, _ = await world.claim_elsewhere(2, lease=60.0)
        await world.advance(1.0)
        world.clock.step_wall(3600.0)
        if since:  # others have looked meanwhile, and some have claimed, but none has extended
            assert (await world.inner.expired(1)).steady == 0.0
            await world.advance(since)
        worker, starts = counting(world, lease=5.0)
        began = world.clock.monotonic()
        async with running(world, worker):
            await world.advance(0.1)
            for _ in range(6):
                assert starts == []
                await world.inner.extend([alive.hold], 60.0)
                await world.advance(9.9)
            assert world.clock.monotonic() < began + 60.0
            await world.inner.extend([alive.hold], 60.0)
            await world.advance(6.0)
            assert starts == [("dead", 2)]
            record = await world.queue.get(alive.hold.job_id)
            assert (record.state, record.serial) == ("processing", alive.hold.serial)
            await world.inner.record([(alive.hold, tenure.Completed())])


@each_store
async def test_w05_a_worker_that_starts_long_after_the_clock_was_set_takes_over_at_once(
    store: str, tmp_path: Path
) -> None:
    """W5, I7: who lives has extended since."""
    async with open_world(store, tmp_path) as world:
        await world.inner.expired(1)
        world.clock.step_wall(3600.0)
        await world.inner.expired(1)
        await world.queue.dispatch("work")
        await world.claim_elsewhere(lease=5.0)
        await world.advance(30.0)
        assert (await world.inner.expired(1)).steady == 30.0
        worker, starts = counting(world)
        async with running(world, worker):
            await world.advance(0.01)
            assert starts == [(None, 2)]


@each_store
async def test_w05_after_a_jump_a_crowd_of_dead_holds_comes_back_together(
    store: str, tmp_path: Path
) -> None:
    """I7: they are watched side by side, more of them than are reclaimed at once."""
    async with open_world(store, tmp_path) as world:
        await world.queue.dispatch_many([tenure.Call("work")] * 1200)
        await world.claim_elsewhere(1200, lease=30.0)
        worker, starts = counting(world, lease=5.0)
        async with running(world, worker):
            await world.advance(1.0)
            world.clock.step_wall(3600.0)
            await world.advance(5.0 + 5.0 + 30.0 + 5.0)
            assert starts == [(None, 2)] * 1200


@each_store
@pytest.mark.parametrize("started", ["before", "after"])
async def test_w05_when_the_clock_was_set_back_who_lives_keeps_its_jobs_and_others_lose_them(
    store: str, tmp_path: Path, started: str
) -> None:
    """I6, I7: a lease that seems to last for an hour says nothing; who does not extend is dead."""
    async with open_world(store, tmp_path) as world:
        worker, starts = counting(world, lease=5.0)
        await world.queue.dispatch_many([tenure.Call("work", name) for name in ("alive", "dead")])
        alive, _ = await world.claim_elsewhere(2, lease=30.0)
        if started == "after":  # it has seen nothing of the step
            world.clock.step_wall(-3600.0)
        async with running(world, worker):
            await world.advance(7.0)
            if started == "before":
                world.clock.step_wall(-3600.0)
            for _ in range(6):
                await world.advance(9.5)
                if world.clock.monotonic() < 30.0:  # a whole lease has not been seen to pass
                    assert starts == []
                await world.inner.extend([alive.hold], 30.0)
            await world.until(lambda: starts == [("dead", 2)])
            record = await world.queue.get(alive.hold.job_id)
            assert (record.state, record.serial) == ("processing", alive.hold.serial)
            await world.inner.record([(alive.hold, tenure.Completed())])
