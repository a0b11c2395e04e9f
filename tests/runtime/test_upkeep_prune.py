"""I16: finished jobs are deleted when their time is over, by any worker, in small steps."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

import tenure
from tenure.driver import Capability
from tenure.drivers.memory import MemoryDriver
from tests.runtime.scenes import errors_of, quiet_worker, running, unreachable, without
from tests.runtime.world import World, each_store, open_world

DAY = 86400.0


async def ended(world: World, count: int = 1, *, failed: bool = False) -> list[str]:
    """Jobs that another worker has completed, or failed."""
    jobs = await world.queue.dispatch_many([tenure.Call("work") for _ in range(count)])
    claims = await world.claim_elsewhere(count)
    failure = tenure.Failure(kind="error", message="no", at=world.clock.now(), attempt=1)
    outcome = tenure.Failed(failure) if failed else tenure.Completed()
    await world.inner.record([(claim.hold, outcome) for claim in claims])
    return [job.id for job in jobs]


async def left(world: World) -> int:
    counts = await world.queue.counts()
    return counts.completed + counts.failed + counts.cancelled


@each_store
async def test_i16_completed_jobs_are_kept_a_day_and_failed_ones_a_fortnight(
    store: str, tmp_path: Path
) -> None:
    """By default."""
    async with open_world(store, tmp_path) as world:
        await ended(world, 3)
        await ended(world, 2, failed=True)
        cancelled = await world.queue.dispatch("work")
        await world.queue.cancel(cancelled.id)
        for pause, kept in ((DAY - 100, 6), (200, 3), (13 * DAY - 400, 3), (400, 0)):
            await world.advance(pause)
            async with running(quiet_worker(world)) as handle:
                await world.advance(5.0)
                assert await left(world) == kept
                assert errors_of(handle) == []


@each_store
async def test_i16_only_the_newest_completed_jobs_are_kept(store: str, tmp_path: Path) -> None:
    """However young the others are; a minute old at least."""
    async with open_world(store, tmp_path) as world:
        first = await ended(world, 10)
        await world.advance(1.0)
        last = await ended(world, 5)
        worker = quiet_worker(world, retention=tenure.Retention(completed_count=5))
        async with running(worker):
            await world.advance(30.0)
            assert await left(world) == 15
            await world.advance(100.0)
            assert {job.id for job in (await world.queue.list()).jobs} == set(last)
            assert not set(first) & set(last)


@each_store
async def test_i16_completed_jobs_are_kept_up_to_their_bytes(store: str, tmp_path: Path) -> None:
    """1 GiB of each queue by default; less where the worker says so."""
    assert tenure.Retention().completed_bytes == 1024**3
    async with open_world(store, tmp_path) as world:
        await ended(world, 10)
        await world.advance(1.0)
        last = await ended(world, 5)
        keep = tenure.Retention(completed_bytes=5 * len(b"null"))
        async with running(quiet_worker(world, retention=keep)):
            await world.advance(30.0)
            assert await left(world) == 15
            await world.advance(100.0)
            assert {job.id for job in (await world.queue.list()).jobs} == set(last)


async def test_i16_many_are_deleted_in_small_steps_without_long_pauses() -> None:
    """A backlog is worked off, and others come between."""
    async with open_world() as world:
        await ended(world, 2200)
        await world.advance(2 * DAY)
        deleted: list[int] = []

        async def note(call: Callable[[], Awaitable[Any]]) -> Any:
            deleted.append(await call())
            return deleted[-1]

        world.driver.hooks["prune"] = note
        async with running(quiet_worker(world)):
            await world.advance(1.0)
            assert deleted[:5] == [500, 500, 500, 500, 200]
            assert await left(world) == 0
            before = len(deleted)
            await world.advance(300.0)
            assert len(deleted) - before < 15


async def test_i16_nothing_is_deleted_where_retention_is_none() -> None:
    async with open_world() as world:
        await ended(world, 3)
        await world.advance(100 * DAY)
        async with running(quiet_worker(world, retention=None)):
            await world.advance(5.0)
            assert await left(world) == 3
        assert "prune" not in world.driver.calls


async def test_i16_a_store_that_cannot_prune_is_not_asked_to() -> None:
    async with open_world(capabilities=without(MemoryDriver, Capability.PRUNE)) as world:
        async with running(quiet_worker(world)):
            await world.advance(100.0)
        assert "prune" not in world.driver.calls


async def test_i16_a_store_that_is_away_is_reported_and_asked_again_later() -> None:
    """W26 is for defects; this is a failure of the store."""
    async with open_world() as world:
        await ended(world, 3)
        await world.advance(2 * DAY)
        world.driver.fail("prune", unreachable(), times=2)
        async with running(quiet_worker(world)) as handle:
            await world.advance(20.0)
            assert await left(world) == 0
            assert [type(error) for error in errors_of(handle)] == [tenure.StoreUnavailable] * 2


@pytest.mark.parametrize(
    ("retention", "named"),
    [
        (7, "retention"),
        (tenure.Retention(completed=-1), "retention.completed"),
        (tenure.Retention(failed=float("nan")), "retention.failed"),
        (tenure.Retention(completed_count=-1), "retention.completed_count"),
        (tenure.Retention(completed_bytes=-1), "retention.completed_bytes"),
        (tenure.Retention(completed_bytes=True), "retention.completed_bytes"),
        (tenure.Retention(completed_bytes=cast(int, 1e6)), "retention.completed_bytes"),
    ],
)
async def test_an_impossible_retention_is_refused(retention: Any, named: str) -> None:
    async with open_world() as world:
        with pytest.raises(tenure.InvalidConfiguration) as caught:
            tenure.Worker(world.queue, retention=retention)
        assert caught.value.option == named
