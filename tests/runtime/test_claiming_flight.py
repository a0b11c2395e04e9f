"""W7: what becomes of a claim that is in flight, and of an answer that comes late."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.driver import Capability
from tenure.drivers.memory import MemoryDriver
from tests.runtime.arrange import (
    AT_SHUTDOWN,
    Gated,
    LeapingClock,
    capabilities_but,
    hidden,
    released,
    running,
)
from tests.runtime.scenes import errors_of
from tests.runtime.world import Interposed, World, each_store, open_world

LATE = "the claim was answered after its lease had run out"


class HeldClaims:
    """Holds claims up and notes whether anybody cancelled one."""

    def __init__(self, world: World, *, after: bool) -> None:
        self.gate = asyncio.Event()
        self.flying = 0
        self.cancelled = 0

        async def hook(call: Callable[[], Awaitable[Any]]) -> Any:
            self.flying += 1
            try:
                answer = await call() if after else None
                await self.gate.wait()
                return answer if after else await call()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
            finally:
                self.flying -= 1

        world.driver.hooks["claim"] = hook


@each_store
@pytest.mark.parametrize("fused", [True, False], ids=["exchange", "no exchange"])
async def test_w07_outcomes_are_recorded_while_a_claim_is_in_flight(
    store: str, tmp_path: Path, fused: bool
) -> None:
    """W7: a finishing handler neither cancels the claim nor waits for it."""
    missing = () if fused else (Capability.EXCHANGE,)
    async with open_world(store, tmp_path, **hidden(store, *missing)) as world:
        gated = Gated(world, concurrency=2)
        first = await world.queue.dispatch("work", 1)
        async with running(world, gated.worker):
            await world.advance(0.5)
            held = HeldClaims(world, after=False)
            await world.advance(1.0)  # the poll
            assert held.flying == 1
            second = await world.queue.dispatch("work", 2)
            gated.gates[1].set()
            await world.settle()
            assert await world.state(first) == "completed"
            assert (held.flying, held.cancelled) == (1, 0)
            held.gate.set()
            await world.settle()
            assert gated.starts == [1, 2]
            assert held.cancelled == 0
            gated.gates[2].set()
            await world.settle()
            assert await world.state(second) == "completed"


@each_store
@pytest.mark.parametrize("drain", [0.0, 10.0])
async def test_w07_what_a_claim_returns_after_shutdown_was_requested_is_released_at_once(
    store: str, tmp_path: Path, drain: float
) -> None:
    """W7: "worker shutdown before dispatch", with no attempt spent; the claim is not cancelled."""
    async with open_world(store, tmp_path) as world:
        gated = Gated(world)
        job = await world.queue.dispatch("work", 1)
        held = HeldClaims(world, after=True)
        async with running(world, gated.worker) as handle:
            await world.settle()
            assert await world.state(job) == "processing"
            ending = asyncio.create_task(handle.shutdown(drain))
            await world.settle()
            assert held.flying == 1
            held.gate.set()
            await world.until(ending.done)
            assert held.cancelled == 0
            record = await world.job(job)
            assert (record.state, record.attempt, record.stalls) == ("pending", 0, 0)
            assert gated.starts == []
            assert released(gated.events) == [(job.id, AT_SHUTDOWN)]
            assert ending.result() is None


@each_store
async def test_w07_a_claim_that_never_answers_is_abandoned_at_the_bound_of_shutdown(
    store: str, tmp_path: Path
) -> None:
    """W7, W23: only there, reported, and what it took is left to its lease."""
    async with open_world(store, tmp_path) as world:
        gated = Gated(world)
        job = await world.queue.dispatch("work", 1)
        held = HeldClaims(world, after=True)
        async with running(world, gated.worker) as handle:
            await world.settle()
            ending = asyncio.create_task(handle.shutdown(0.0))
            await world.advance(0.5)
            assert (held.flying, held.cancelled) == (1, 0)
            await world.advance(0.5)
            await world.until(ending.done)
            error = ending.result()
            assert isinstance(error, tenure.StoreUnavailable)
            assert error.ambiguous
            assert errors_of(handle) == []
        assert await world.state(job) == "processing"


@each_store
async def test_w07_a_late_answer_is_released_and_not_started(store: str, tmp_path: Path) -> None:
    """W7: the time since the claim was sent is a lease by then; no attempt is spent."""
    async with open_world(store, tmp_path, **hidden(store, Capability.RECLAIM)) as world:
        gated = Gated(world, lease=30.0)
        job = await world.queue.dispatch("work", 1)
        held = HeldClaims(world, after=True)
        async with running(world, gated.worker):
            await world.advance(30.0)
            assert gated.starts == []
            held.gate.set()
            await world.settle()
            assert released(gated.events) == [(job.id, LATE)]
            # It is claimed anew, and that answer comes in time.
            assert gated.starts == [1]
            record = await world.job(job)
            assert (record.attempt, record.serial) == (1, 2)
            gated.gates[1].set()
            await world.settle()
            assert await world.state(job) == "completed"


async def test_w07_an_answer_within_the_lease_is_started() -> None:
    """W7: the bound is the lease itself."""
    async with open_world(**hidden("memory", Capability.RECLAIM)) as world:
        gated = Gated(world, lease=30.0)
        await world.queue.dispatch("work", 1)
        held = HeldClaims(world, after=True)
        async with running(world, gated.worker):
            await world.advance(29.9)
            held.gate.set()
            await world.settle()
            assert gated.starts == [1]
            assert released(gated.events) == []
            gated.gates[1].set()


@each_store
async def test_w07_a_repeated_claim_counts_from_its_first_sending(
    store: str, tmp_path: Path
) -> None:
    """W7: the lease of what an unanswered claim took has been running since then."""
    async with open_world(store, tmp_path, **hidden(store, Capability.RECLAIM)) as world:
        gated = Gated(world, lease=1.5, poll_interval=10.0)
        job = await world.queue.dispatch("work", 1)
        lost = tenure.StoreUnavailable("no answer", ambiguous=True)
        world.driver.fail("claim", lost, after=True)
        async with running(world, gated.worker) as handle:
            await world.advance(4.1)  # the repeat came after 2 to 4 s
            assert errors_of(handle) == [lost]
            assert released(gated.events) == [(job.id, LATE)]
            assert gated.starts == [1]
            assert (await world.job(job)).attempt == 1
            gated.gates[1].set()


async def test_w07_a_handler_is_not_called_when_its_lease_ran_out_before_its_first_step() -> None:
    """W7: the process was suspended when the answer had come and the handler had not begun."""
    clock = LeapingClock()
    inner = MemoryDriver(clock=clock)
    # Nobody extends or reclaims in that moment: what is tested is the worker's own judgement.
    without = capabilities_but("memory", Capability.KEEPER, Capability.RECLAIM)
    world = World(clock, inner, Interposed(inner, without))
    async with world.queue:
        starts: list[int] = []
        events: list[tenure.Event] = []

        def suspend(event: tenure.Event) -> None:
            events.append(event)
            if isinstance(event, tenure.JobStarted) and clock.monotonic() < 30.0:
                clock.leap(30.0)

        worker = tenure.Worker(world.queue, lease=30.0, observers=[suspend])

        @worker.handler("work")
        async def work(payload: None, job: tenure.RunningJob) -> None:
            starts.append(job.attempt)

        job = await world.queue.dispatch("work")
        async with running(world, worker):
            await world.settle()
            assert released(events) == [
                (job.id, "its lease had run out before its handler was called")
            ]
            assert starts == [1]  # from another claim, with no attempt spent on the first
            assert (await world.job(job)).serial == 2


async def test_w07_a_late_answer_is_left_to_its_lease_where_the_store_cannot_release() -> None:
    """W7: it is not started then either."""
    missing = hidden("memory", Capability.RELEASE, Capability.RECLAIM)
    async with open_world(**missing) as world:
        gated = Gated(world, lease=30.0)
        job = await world.queue.dispatch("work", 1)
        held = HeldClaims(world, after=True)
        async with running(world, gated.worker):
            await world.advance(30.0)
            held.gate.set()
            await world.advance(60.0)
            assert gated.starts == []
            assert await world.state(job) == "processing"


async def test_w07_a_shutdown_beside_an_answered_claim_spends_no_attempt() -> None:
    """W7, W23: the answer and the request to stop at once arrive in one turn of the loop."""
    async with open_world() as world:
        gated = Gated(world)
        job = await world.queue.dispatch("work", 1)
        held = HeldClaims(world, after=True)
        async with running(world, gated.worker) as handle:
            await world.settle()
            # The answer is judged, and the handler's task made, just before the stop is seen.
            asyncio.get_running_loop().call_soon(held.gate.set)
            ending = asyncio.create_task(handle.shutdown(0.0))
            await world.until(ending.done)
            record = await world.job(job)
            assert (record.state, record.attempt) == ("pending", 0)
            assert ending.result() is None


async def test_w07_shutdown_waits_for_no_claim_where_none_is_in_flight() -> None:
    """W7: an idle worker stops without any time passing."""
    async with open_world() as world:
        gated = Gated(world)
        async with running(world, gated.worker) as handle:
            await world.advance(0.5)
            ending = asyncio.create_task(handle.shutdown(25.0))
            await world.until(ending.done)
            assert ending.result() is None
