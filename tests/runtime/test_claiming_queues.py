"""One worker, several queues: shares, strict order, and bounds of their own."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tenure
from tests.runtime.scenes import errors_of, quiet_worker, running
from tests.runtime.world import World, each_store, open_world


class Queues:
    """A worker on some queues whose handler waits for a gate; notes what was started."""

    def __init__(self, world: World, **options: Any) -> None:
        self.worker = quiet_worker(world, **options)
        self.worker.register("work", self._work)
        self.started: list[str] = []
        self.running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.gate = asyncio.Event()

    async def _work(self, payload: Any, job: tenure.RunningJob) -> None:
        self.started.append(job.queue)
        self.running[job.queue] += 1
        self.most[job.queue] = max(self.most[job.queue], self.running[job.queue])
        try:
            await self.gate.wait()
        finally:
            self.running[job.queue] -= 1


async def fill(world: World, **counts: int) -> None:
    calls = [tenure.Call("work", queue=queue) for queue, n in counts.items() for _ in range(n)]
    await world.queue.dispatch_many(calls)


@each_store
async def test_queues_are_served_by_weight_and_none_starves(store: str, tmp_path: Path) -> None:
    """A46: a queue that is never empty leaves the others their share."""
    async with open_world(store, tmp_path) as world:
        queues = Queues(world, queues={"mail": 5, "default": 1}, concurrency=4)
        queues.gate.set()
        await fill(world, mail=600, default=100)
        async with running(queues.worker) as handle:
            await world.until(lambda: len(queues.started) >= 240)
            share = Counter(queues.started[:240])
            assert share["default"] == pytest.approx(40, abs=8)
            await world.until(lambda: len(queues.started) == 700)
            assert errors_of(handle) == []


async def test_names_alone_have_equal_shares() -> None:
    async with open_world() as world:
        queues = Queues(world, queues=["a", "b", "c"], concurrency=2)
        queues.gate.set()
        await fill(world, a=60, b=60, c=60)
        async with running(queues.worker):
            await world.until(lambda: len(queues.started) == 180)
            share = Counter(queues.started[:90])
            assert all(share[name] == pytest.approx(30, abs=4) for name in "abc")


async def test_strict_order_serves_the_first_queue_first() -> None:
    async with open_world() as world:
        queues = Queues(world, queues=["a", "b"], strict=True, concurrency=3)
        queues.gate.set()
        await fill(world, b=20, a=20)
        async with running(queues.worker):
            await world.until(lambda: len(queues.started) == 40)
            assert queues.started == ["a"] * 20 + ["b"] * 20


@each_store
async def test_a_queue_takes_no_more_slots_than_it_may(store: str, tmp_path: Path) -> None:
    """What it leaves is for the others; each slot that it gives back is used again."""
    async with open_world(store, tmp_path) as world:
        queues = Queues(world, queues=["slow", "default"], slots={"slow": 2}, concurrency=6)
        await fill(world, slow=9, default=3)
        async with running(queues.worker) as handle:
            await world.advance(5.0)
            assert queues.running == {"slow": 2, "default": 3}
            await fill(world, default=9)
            await world.until(lambda: queues.running["default"] == 4)
            assert queues.running["slow"] == 2
            queues.gate.set()
            await world.until(lambda: len(queues.started) == 21)
            await world.settle()
            assert queues.most["slow"] == 2
            assert (await world.queue.counts()).completed == 21
            assert errors_of(handle) == []


async def test_a_full_queue_alone_claims_nothing_and_goes_on_when_it_is_not() -> None:
    """No claim is made that could bring nothing, and none is missed."""
    async with open_world() as world:
        queues = Queues(world, queues=["slow"], slots={"slow": 1}, concurrency=6)
        await fill(world, slow=5)
        async with running(queues.worker):
            await world.advance(1.0)
            before = world.driver.calls.count("claim")
            await world.advance(200.0)
            assert world.driver.calls.count("claim") == before
            assert queues.running == {"slow": 1}
            queues.gate.set()
            await world.until(lambda: len(queues.started) == 5)
            assert queues.most == {"slow": 1}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"queues": {"a": 0}}, "queues['a']"),
        ({"queues": {"a": float("inf")}}, "queues['a']"),
        ({"queues": {"a": True}}, "queues['a']"),
        ({"slots": {"default": 0}}, "slots['default']"),
        ({"slots": {"other": 1}}, "slots"),
    ],
)
async def test_an_impossible_share_or_bound_is_refused(options: Any, named: str) -> None:
    async with open_world() as world:
        with pytest.raises(tenure.InvalidConfiguration) as caught:
            tenure.Worker(world.queue, **options)
        assert caught.value.option == named
