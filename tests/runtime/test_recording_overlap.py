"""W16 where two writes under way are faster than one after the other (`Driver.overlap`)."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import tenure
from tests.runtime import world as world_module
from tests.runtime.arrange import Requests
from tests.runtime.scenes import (
    Gates,
    WatchedWrites,
    dispatch_work,
    errors_of,
    hold_up_writes,
    running,
    unreachable,
    writes,
)
from tests.runtime.world import World


@asynccontextmanager
async def open_world() -> AsyncGenerator[World]:
    """A world whose store gains by a second write of sixteen outcomes or more."""
    async with world_module.open_world() as world:
        world.driver.overlap = 16  # type: ignore[misc]
        yield world


def slow_down(world: World) -> None:
    """Let each answer take its time."""

    async def late(call: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await call()
        finally:
            await world.clock.sleep(0.005)

    for operation in ("claim", "exchange", "record"):
        world.driver.hooks[operation] = late


def named(first: str, count: int) -> list[str]:
    return [f"{first}{number}" for number in range(count)]


async def test_w16_a_full_worker_writes_in_two_halves_and_runs_one_while_the_other_is_written() -> (
    None
):
    """W6: never more handlers than slots, whatever is on its way."""
    async with open_world() as world:
        watched = WatchedWrites(world)
        gates = Gates()
        worker = tenure.Worker(world.queue, concurrency=64)
        worker.register("work", gates)
        async with running(worker) as handle:
            first = named("a", 64)
            await dispatch_work(world, *first, *named("b", 64))
            await world.settle()
            written = hold_up_writes(world)
            gates.let(*first)
            await world.settle()
            assert writes(world) == 2
            written.set()
            await world.settle()
            assert [len(batch) for batch in watched.batches] == [32, 32]
            assert len(gates.starts) == 128
            gates.let(*named("b", 64))
            await world.settle()
            assert (await world.queue.counts()).completed == 128
            assert errors_of(handle) == []


async def test_w16_a_few_outcomes_wait_for_the_write_in_flight() -> None:
    """A second write pays from sixteen on."""
    async with open_world() as world:
        watched = WatchedWrites(world)
        gates = Gates()
        worker = tenure.Worker(world.queue, concurrency=40)
        worker.register("work", gates)
        async with running(worker) as handle:
            names = named("a", 40)
            await dispatch_work(world, *names)
            await world.settle()
            written = hold_up_writes(world)
            gates.let(*names[:1])
            await world.settle()
            gates.let(*names[1:16])
            await world.settle()
            assert writes(world) == 1
            gates.let(names[16])
            await world.settle()
            assert writes(world) == 2
            gates.let(*names[17:])
            await world.settle()
            assert writes(world) == 2  # and never a third
            written.set()
            await world.settle()
            assert sorted(len(batch) for batch in watched.batches) == [1, 16, 23]
            assert errors_of(handle) == []


async def test_w16_a_store_that_is_away_is_asked_by_one_write_at_a_time() -> None:
    """Until it has answered again."""
    async with open_world() as world:
        gates = Gates()
        worker = tenure.Worker(world.queue, concurrency=64)
        worker.register("work", gates)
        async with running(worker) as handle:
            names = named("a", 64)
            await dispatch_work(world, *names)
            await world.settle()
            under_way = most = 0

            async def away(call: Callable[[], Awaitable[Any]]) -> Any:
                nonlocal under_way, most
                under_way += 1
                most = max(most, under_way)
                try:
                    await world.clock.sleep(0.01)
                    raise unreachable()
                finally:
                    under_way -= 1

            hold_up_writes(world)
            gates.let(*names)
            for operation in ("record", "exchange"):
                world.driver.hooks[operation] = away
            await world.advance(0.2)
            assert most == 2  # both had been sent before it was known
            most = 0
            await world.advance(20.0)
            assert most == 1
            world.driver.hooks.clear()
            await world.advance(2.0)
            assert (await world.queue.counts()).completed == 64
            assert {type(error) for error in errors_of(handle)} == {tenure.StoreUnavailable}


async def test_w16_a_bad_outcome_is_found_while_others_come_without_end() -> None:
    """One bad item never blocks the others, nor do they keep it from being found."""
    async with open_world() as world:
        watched = WatchedWrites(world, lambda _, outcome: outcome == tenure.Completed(b'"bad"'))
        left = 2000

        async def work(payload: int) -> str | None:
            nonlocal left
            left -= 1
            if left > 0:
                await world.queue.dispatch("work", left)
            return "bad" if payload == -1 else None

        slow_down(world)
        worker = tenure.Worker(world.queue, concurrency=64)
        worker.register("work", work)
        async with running(worker) as handle:
            await world.queue.dispatch_many([tenure.Call("work", n) for n in range(80)])
            bad = await world.queue.dispatch("work", -1, priority=100)
            await world.advance(0.3)
            record = await world.job(bad)
            assert record.error is not None
            assert record.error.kind == "serialization"
            assert left > 0
            await world.advance(30.0)
            counts = await world.queue.counts()
            assert (counts.completed, counts.failed) == (2079, 1)
            assert min(len(batch) for batch in watched.batches) == 1
            errors_of(handle)


async def test_w6_two_claims_in_flight_ask_together_for_no_more_than_the_free_slots() -> None:
    """Nothing is claimed that could not start."""
    async with open_world() as world:
        gates = Gates()
        worker = tenure.Worker(world.queue, concurrency=64)
        worker.register("work", gates)
        async with running(worker) as handle:
            names = named("a", 40)
            await dispatch_work(world, *names)
            await world.settle()
            seen = Requests(world)
            written = hold_up_writes(world, after=True)
            gates.let(*names[:16])
            await world.settle()
            gates.let(*names[16:32])
            await world.settle()
            assert [request.limit for request in seen.requests] == [24 + 16, 16]
            written.set()
            gates.let(*names[32:])
            await world.settle()
            assert errors_of(handle) == []


async def test_w6_a_queue_gets_no_more_slots_than_it_may_have_with_two_claims_in_flight() -> None:
    """What the first claim may bring is counted when the second one asks."""
    async with open_world() as world:
        running_now: Counter[str] = Counter()
        most: Counter[str] = Counter()

        async def work(payload: str) -> None:
            running_now[payload] += 1
            most[payload] = max(most[payload], running_now[payload])
            await world.clock.sleep(0.01)
            running_now[payload] -= 1

        worker = tenure.Worker(
            world.queue, concurrency=64, queues=("slow", "default"), slots={"slow": 20}
        )
        worker.register("work", work)
        for name in ("slow", "default"):
            await world.queue.dispatch_many(
                [tenure.Call("work", name, queue=name) for _ in range(300)]
            )

        slow_down(world)
        async with running(worker) as handle:
            await world.advance(10.0)
            assert (await world.queue.counts()).completed == 600
            assert most["slow"] == 20
            assert 44 <= most["default"] <= 64
            assert errors_of(handle) == []


def let_storm(world: World, seed: int) -> None:
    """Calls fail before or after they reached the store, or take their time, at random."""
    chances = random.Random(seed)

    async def storm(call: Callable[[], Awaitable[Any]]) -> Any:
        chance = chances.random()
        if chance < 0.05:
            raise unreachable()
        if chance < 0.5:
            await world.clock.sleep(chances.random() / 100)
        answer = await call()
        if chance < 0.1:
            raise unreachable(ambiguous=True)
        if chance < 0.3:
            await world.clock.sleep(chances.random() / 100)
        return answer

    for operation in ("claim", "exchange", "record"):
        world.driver.hooks[operation] = storm


@pytest.mark.parametrize("seed", range(5))
async def test_i5_w16_no_outcome_and_no_claim_is_lost_where_answers_are(seed: int) -> None:
    """I14: both writes and both claims are repeated; each job ends once, in its first attempt."""
    async with open_world() as world:
        starts: Counter[int] = Counter()
        running_now = most = 0

        async def work(payload: int) -> None:
            nonlocal running_now, most
            starts[payload] += 1
            running_now += 1
            most = max(most, running_now)
            await world.clock.sleep((payload % 7) / 1000)
            running_now -= 1

        let_storm(world, seed)
        worker = tenure.Worker(world.queue, concurrency=64, lease=600.0, job_timeout=600.0)
        worker.register("work", work)
        await world.queue.dispatch_many([tenure.Call("work", n) for n in range(2000)])
        async with running(worker) as handle:
            for _ in range(400):
                await world.advance(1.0)
                if (await world.queue.counts()).completed == 2000:
                    break
            assert starts == Counter(range(2000))
            assert most == 64
            assert {type(error) for error in errors_of(handle)} <= {tenure.StoreUnavailable}
            world.driver.hooks.clear()
            await world.advance(5.0)  # what was still under way


async def test_w7_two_claims_whose_answers_were_lost_are_put_back_at_shutdown() -> None:
    """W23: each is asked for once more."""
    async with open_world() as world:
        gates = Gates()
        worker = tenure.Worker(world.queue, concurrency=64)
        worker.register("work", gates)
        handle = worker.run()
        first = named("a", 64)
        await dispatch_work(world, *first, *named("b", 64))
        await world.settle()
        answered = asyncio.Event()

        async def unanswered(call: Callable[[], Awaitable[Any]]) -> Any:
            await call()
            await answered.wait()
            raise unreachable(ambiguous=True)

        world.driver.hooks["exchange"] = unanswered
        gates.let(*first)
        await world.settle()
        stopping = asyncio.ensure_future(handle.shutdown(0.5))
        await world.settle()
        world.driver.hooks.clear()
        answered.set()
        await world.advance(2.0)
        await stopping
        counts = await world.queue.counts()
        assert (counts.completed, counts.pending, counts.processing) == (64, 64, 0)
        assert gates.starts == first
        assert {type(error) for error in errors_of(handle)} <= {tenure.StoreUnavailable}
