"""W5: where the store sees that a worker is gone, its jobs come back without waiting for leases."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.beside import Lifeline
from tenure.driver import Capability
from tests.runtime.arrange import hidden, running
from tests.runtime.scenes import errors_of, unreachable
from tests.runtime.world import World, each_store, open_world

LEASE = 300.0


def counting(
    world: World, *, lease: float = LEASE, **options: Any
) -> tuple[tenure.Worker, list[int]]:
    """A worker whose handler notes the attempts that it starts."""
    worker = tenure.Worker(world.queue, lease=lease, **options)
    attempts: list[int] = []

    @worker.handler("work")
    async def work(payload: Any, job: tenure.RunningJob) -> None:
        attempts.append(job.attempt)

    return worker, attempts


async def tied(world: World) -> Lifeline:
    lifeline = await world.inner.lifeline("elsewhere")
    assert lifeline is not None
    return lifeline


@each_store
async def test_w05_a_job_of_a_worker_that_is_gone_is_started_again_within_two_seconds(
    store: str, tmp_path: Path
) -> None:
    """W5, I7: its lease would have run for minutes."""
    async with open_world(store, tmp_path) as world:
        job = await world.queue.dispatch("work")
        lifeline = await tied(world)
        await world.claim_elsewhere(lease=LEASE)
        events: list[tenure.Event] = []
        worker, attempts = counting(world, observers=[events.append])
        async with running(world, worker):
            await world.advance(10.0)
            assert attempts == []
            await lifeline.cut()
            await world.advance(1.6)
            assert attempts == [2]
            assert await world.state(job) == "completed"
            reclaimed = [event for event in events if isinstance(event, tenure.JobsReclaimed)]
            assert [event.job_ids for event in reclaimed] == [(job.id,)]


@each_store
async def test_w05_a_worker_that_starts_takes_over_at_once_from_one_that_is_gone(
    store: str, tmp_path: Path
) -> None:
    """W5: a program that is restarted goes on where it was killed."""
    async with open_world(store, tmp_path) as world:
        await world.queue.dispatch("work")
        lifeline = await tied(world)
        await world.claim_elsewhere(lease=LEASE)
        await lifeline.cut()
        worker, attempts = counting(world)
        async with running(world, worker):
            await world.advance(0.01)
            assert attempts == [2]


@each_store
async def test_w05_a_worker_that_gave_its_lifeline_up_keeps_its_lease(
    store: str, tmp_path: Path
) -> None:
    """I6: what it left behind may still run in one of its threads."""
    async with open_world(store, tmp_path) as world:
        await world.queue.dispatch("work")
        lifeline = await tied(world)
        await world.claim_elsewhere(lease=100.0)
        await lifeline.close()
        worker, attempts = counting(world, lease=30.0)
        async with running(world, worker):
            await world.advance(99.0)
            assert attempts == []
            await world.advance(31.0)
            assert attempts == [2]


async def test_w05_the_store_is_asked_once_in_a_second_at_most() -> None:
    """W5: with jitter that only shortens, and whatever the lease."""
    async with open_world() as world:
        worker, _ = counting(world)
        async with running(world, worker):
            await world.advance(100.0)
            asked = world.driver.calls.count("shorten")
            looked = world.driver.calls.count("expired")
    assert 62 <= asked <= 80
    assert looked <= 4


async def test_w05_leases_that_end_in_a_moment_are_looked_for_then() -> None:
    """W5: a store may give a worker that lives some seconds to come back."""
    async with open_world() as world:
        looks: list[float] = []
        left: list[float | None] = [None]

        async def look(call: Callable[[], Awaitable[Any]]) -> Any:
            looks.append(world.clock.monotonic())
            return await call()

        async def shorten(call: Callable[[], Awaitable[Any]]) -> float | None:
            return left[0]

        world.driver.hooks.update(expired=look, shorten=shorten)
        worker, _ = counting(world)
        async with running(world, worker):
            await world.advance(10.0)
            begun = world.clock.monotonic()
            looks.clear()
            left[0] = 5.0
            await world.advance(1.6)
            left[0] = None
            assert looks == []
            await world.advance(5.0)
            [look_at] = looks
            assert begun + 5.0 <= look_at <= begun + 6.6


async def test_w05_an_error_of_it_is_reported_and_leases_go_on_to_be_looked_for() -> None:
    """W5: it is never the only way in which a job comes back."""
    async with open_world() as world:
        await world.queue.dispatch("work")
        await world.claim_elsewhere(lease=5.0)
        world.driver.fail("shorten", unreachable(), times=1000)
        worker, attempts = counting(world, lease=3.0)
        async with running(world, worker) as handle:
            await world.advance(8.0)
            assert attempts == [2]
            await world.advance(92.0)
            errors = errors_of(handle)
    assert 10 <= len(errors) <= 14
    assert {type(error) for error in errors} == {tenure.StoreUnavailable}


async def test_w05_a_store_that_cannot_see_it_is_not_asked() -> None:
    """W5: what a driver cannot do is asked, not tried."""
    async with open_world(**hidden("memory", Capability.LIFELINE)) as world:
        worker, _ = counting(world)
        async with running(world, worker):
            await world.advance(100.0)
    assert not {"lifeline", "shorten"} & set(world.driver.calls)


class _Noting:
    """A lifeline that notes its end among the calls of the store."""

    def __init__(self, calls: list[str]) -> None:
        self._calls = calls

    async def close(self) -> None:
        self._calls.append("lifeline.close")

    async def cut(self) -> None:
        raise AssertionError("a worker never cuts its lifeline")


@pytest.mark.parametrize("way", ["shutdown", "abort"])
async def test_w05_a_worker_is_tied_before_its_first_claim_until_after_its_last_call(
    way: str,
) -> None:
    """W5: so that no hold of it is without, and none that ends with it is taken for lost."""
    async with open_world() as world:
        calls = world.driver.calls

        async def tie(call: Callable[[], Awaitable[Any]]) -> Lifeline:
            return _Noting(calls)

        world.driver.hooks["lifeline"] = tie
        worker, _ = counting(world)
        handle = worker.run()
        await world.advance(1.0)
        if way == "abort":
            handle.abort()
            await handle.wait()
        else:
            await world.run(handle.shutdown())
    assert calls.index("lifeline") < calls.index("claim")
    assert calls.count("lifeline") == calls.count("lifeline.close") == 1
    assert calls[-2:] == ["lifeline.close", "close"]  # and the store's own


async def test_w05_a_worker_that_cannot_be_tied_works_all_the_same() -> None:
    """W5: the error is reported."""
    async with open_world() as world:
        await world.queue.dispatch("work")
        world.driver.fail("lifeline", tenure.StoreError("not here"))
        worker, attempts = counting(world)
        async with running(world, worker) as handle:
            await world.advance(1.0)
            assert attempts == [1]
            assert [str(error) for error in errors_of(handle)] == ["not here"]
