"""W16: outcomes are written in batches, durable before a job is done, repeated until answered."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.driver import Capability
from tenure.drivers.memory import MemoryDriver
from tests.runtime.scenes import (
    Gates,
    WatchedWrites,
    dispatch_work,
    errors_of,
    fail_writes,
    hold_up_writes,
    running,
    take_over,
    unreachable,
    without,
    writes,
)
from tests.runtime.world import each_store, open_world

# Outcomes travel alone, or together with a claim.
each_way = pytest.mark.parametrize(
    "capabilities",
    [MemoryDriver.capabilities, without(MemoryDriver, Capability.EXCHANGE)],
    ids=["exchange", "record"],
)


def settled(events: list[tenure.Event]) -> list[tenure.JobSettled]:
    return [event for event in events if isinstance(event, tenure.JobSettled)]


@each_store
async def test_w16_while_one_write_is_in_flight_the_next_batch_gathers(
    store: str, tmp_path: Path
) -> None:
    """W16: one write for the first outcome, one for all that came meanwhile."""
    async with open_world(store, tmp_path) as world:
        watched = WatchedWrites(world)
        gates = Gates()
        worker = tenure.Worker(world.queue)
        worker.register("work", gates)
        async with running(worker) as handle:
            jobs = await dispatch_work(world, "a", "b", "c", "d", "e")
            written = hold_up_writes(world)
            gates.let("a")
            await world.settle()
            gates.let("b", "c")
            await world.settle()
            gates.let("d", "e")
            await world.settle()
            assert writes(world) == 1
            written.set()
            await world.settle()
            assert [len(batch) for batch in watched.batches] == [1, 4]
            assert [await world.state(job) for job in jobs] == ["completed"] * 5
            assert errors_of(handle) == []


@each_way
async def test_w16_a_job_is_done_when_its_outcome_is_durable_and_not_before(
    capabilities: frozenset[Capability],
) -> None:
    """W16: neither its event nor its slot is given before the store has answered."""
    async with open_world(capabilities=capabilities) as world:
        events: list[tenure.Event] = []
        gates = Gates()
        worker = tenure.Worker(world.queue, concurrency=1, observers=[events.append])
        worker.register("work", gates)
        async with running(worker) as handle:
            job, _ = await dispatch_work(world, "a", "b")
            answered = hold_up_writes(world, after=True)
            gates.let("a")
            await world.advance(5.0)
            assert await world.state(job) == "completed"  # stored, but the worker cannot know
            assert settled(events) == []
            assert gates.starts == ["a"]
            answered.set()
            await world.advance(0.1)
            assert [event.job.id for event in settled(events)] == [job.id]
            assert gates.starts == ["a", "b"]
            gates.let("b")
            await world.settle()
            assert errors_of(handle) == []


@each_store
async def test_w16_a_slot_can_be_claimed_for_in_the_exchange_that_frees_it(
    store: str, tmp_path: Path
) -> None:
    """W16: one round trip writes the outcome and brings the next job."""
    async with open_world(store, tmp_path) as world:
        gates = Gates()
        worker = tenure.Worker(world.queue, concurrency=1)
        worker.register("work", gates)
        async with running(worker) as handle:
            await dispatch_work(world, "a", "b")
            del world.driver.calls[:]
            gates.let("a")
            await world.settle()
            assert gates.starts == ["a", "b"]
            written = [c for c in world.driver.calls if c in ("claim", "record", "exchange")]
            assert written == ["exchange"]
            gates.let("b")
            await world.settle()
            assert errors_of(handle) == []


@each_way
async def test_w16_a_write_is_repeated_with_growing_pauses_until_it_is_answered(
    capabilities: frozenset[Capability],
) -> None:
    """W16: from 0.05 s, doubled up to 2 s, each shortened by at most a half; never given up."""
    async with open_world(capabilities=capabilities) as world:
        gates = Gates()
        worker = tenure.Worker(world.queue)
        worker.register("work", gates)
        tries: list[float] = []
        away = True

        async def hook(call: Any) -> Any:
            tries.append(world.clock.monotonic())
            if away:
                raise unreachable()
            return await call()

        async with running(worker) as handle:
            [job] = await dispatch_work(world, "a")
            world.driver.hooks.update(record=hook, exchange=hook)
            gates.let("a")
            await world.advance(20.0)
            assert await world.state(job) == "processing"
            pauses = [after - before for before, after in pairwise(tries)]
            assert len(pauses) >= 9
            for number, pause in enumerate(pauses):
                longest = min(2.0, 0.05 * 2**number)
                assert longest / 2 <= round(pause, 6) <= longest
            away = False
            await world.advance(2.0)
            assert await world.state(job) == "completed"
            errors = errors_of(handle)
            assert len(errors) == len(pauses) + 1
            assert all(isinstance(error, tenure.StoreUnavailable) for error in errors)


@each_store
async def test_w16_outcomes_that_come_while_a_write_is_repeated_ride_with_it(
    store: str, tmp_path: Path
) -> None:
    """W16: the backoff is of the writing, not of one outcome."""
    async with open_world(store, tmp_path) as world:
        watched = WatchedWrites(world)
        gates = Gates()
        worker = tenure.Worker(world.queue)
        worker.register("work", gates)
        async with running(worker) as handle:
            jobs = await dispatch_work(world, "a", "b", "c")
            fail_writes(world, unreachable())
            gates.let("a")
            await world.settle()
            gates.let("b", "c")
            await world.settle()
            assert writes(world) == 1
            await world.advance(0.05)
            assert [len(batch) for batch in watched.batches] == [3]
            assert [await world.state(job) for job in jobs] == ["completed"] * 3
            [error] = errors_of(handle)
            assert isinstance(error, tenure.StoreUnavailable)


@each_store
@pytest.mark.parametrize("after", [False, True], ids=["nothing_done", "done"])
async def test_w16_an_outcome_whose_answer_was_lost_is_recorded_once(
    store: str, tmp_path: Path, after: bool
) -> None:
    """W16, I14: the repeat is applied, or answered as the repeat that it is; both count once."""
    async with open_world(store, tmp_path) as world:
        events: list[tenure.Event] = []
        gates = Gates()
        worker = tenure.Worker(world.queue, observers=[events.append])
        worker.register("work", gates)
        async with running(worker) as handle:
            [job] = await dispatch_work(world, "a")
            fail_writes(world, unreachable(ambiguous=True), after=after)
            gates.let("a")
            await world.advance(10.0)
            record = await world.job(job)
            assert (record.state, record.result, record.attempt) == ("completed", "a", 1)
            assert [type(event.outcome) for event in settled(events)] == [tenure.Completed]
            [error] = errors_of(handle)
            assert isinstance(error, tenure.StoreUnavailable)
            assert error.ambiguous
            assert gates.starts == ["a"]


@each_store
async def test_w16_jobs_of_an_exchange_whose_answer_was_lost_are_started_once(
    store: str, tmp_path: Path
) -> None:
    """W16, I14: the outcome and the claim of the same lost answer are both found again."""
    async with open_world(store, tmp_path) as world:
        gates = Gates()
        worker = tenure.Worker(world.queue, concurrency=1)
        worker.register("work", gates)
        async with running(worker) as handle:
            jobs = await dispatch_work(world, "a", "b")
            world.driver.fail("exchange", unreachable(ambiguous=True), after=True)
            gates.let("a")
            await world.settle()
            assert await world.state(jobs[1]) == "processing"  # it was claimed, and nobody knows
            await world.advance(5.0)
            assert gates.starts == ["a", "b"]
            assert (await world.job(jobs[1])).attempt == 1
            gates.let("b")
            await world.settle()
            assert [await world.state(job) for job in jobs] == ["completed"] * 2
            [error] = errors_of(handle)
            assert isinstance(error, tenure.StoreUnavailable)


@each_store
async def test_w16_a_repeat_that_is_fenced_is_reported_as_unsure(
    store: str, tmp_path: Path
) -> None:
    """W16, section 3: the first try may have been applied; nobody says that work was lost."""
    async with open_world(store, tmp_path) as world:
        gates = Gates()
        worker = tenure.Worker(world.queue, concurrency=1)
        worker.register("work", gates)
        async with running(worker) as handle:
            [job] = await dispatch_work(world, "a")
            fail_writes(world, unreachable(ambiguous=True))
            gates.let("a")
            await world.settle()
            await take_over(world, job.id)
            await world.advance(0.05)
            lost, unsure = errors_of(handle)
            assert isinstance(lost, tenure.StoreUnavailable)
            assert isinstance(unsure, tenure.StateTransitionError)
            assert unsure.operation == "complete"
            assert unsure.message.startswith("the first try may have been applied")


@each_store
async def test_w16_a_repeat_about_a_job_that_is_gone_is_reported_as_unsure(
    store: str, tmp_path: Path
) -> None:
    """W16: the first try was applied, the job was deleted since, and the repeat cannot know."""
    async with open_world(store, tmp_path) as world:
        gates = Gates()
        worker = tenure.Worker(world.queue, concurrency=1)
        worker.register("work", gates)
        async with running(worker) as handle:
            [job] = await dispatch_work(world, "a")
            fail_writes(world, unreachable(ambiguous=True), after=True)
            gates.let("a")
            await world.settle()
            assert await world.queue.delete(job.id) == tenure.Answer.DONE
            await world.advance(0.05)
            lost, unsure = errors_of(handle)
            assert isinstance(lost, tenure.StoreUnavailable)
            assert isinstance(unsure, tenure.StateTransitionError)
            assert unsure.message == (
                "the first try may have been applied, the repeat was not: "
                "the job is not there any more"
            )


@each_store
async def test_w16_a_repeat_after_a_definite_failure_is_not_unsure(
    store: str, tmp_path: Path
) -> None:
    """W16: where the store did nothing, a fenced repeat is plainly lost."""
    async with open_world(store, tmp_path) as world:
        gates = Gates()
        worker = tenure.Worker(world.queue, concurrency=1)
        worker.register("work", gates)
        async with running(worker) as handle:
            [job] = await dispatch_work(world, "a")
            fail_writes(world, unreachable())
            gates.let("a")
            await world.settle()
            await take_over(world, job.id)
            await world.advance(0.05)
            _, lost = errors_of(handle)
            assert isinstance(lost, tenure.StateTransitionError)
            assert lost.message.startswith("nothing was changed")
