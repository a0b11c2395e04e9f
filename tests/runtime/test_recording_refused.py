"""W16: a batch that the store refuses is halved until the bad item stands alone."""

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
    running,
    without,
)
from tests.runtime.world import each_store, open_world

# Outcomes travel alone, or together with a claim.
each_way = pytest.mark.parametrize(
    "capabilities",
    [MemoryDriver.capabilities, without(MemoryDriver, Capability.EXCHANGE)],
    ids=["exchange", "record"],
)


def completes_with(result: bytes) -> Any:
    def refuses(hold: tenure.Hold, outcome: tenure.Outcome) -> bool:
        return isinstance(outcome, tenure.Completed) and outcome.result == result

    return refuses


@each_store
@pytest.mark.parametrize("bad", ["a", "e", "h"])
async def test_w16_a_bad_item_is_found_by_halves_and_blocks_no_other(
    store: str, tmp_path: Path, bad: str
) -> None:
    """W16: wherever in the batch it stands, the others are recorded as they are."""
    async with open_world(store, tmp_path) as world:
        watched = WatchedWrites(world, completes_with(f'"{bad}"'.encode()))
        gates = Gates()
        worker = tenure.Worker(world.queue)
        worker.register("work", gates)
        async with running(worker) as handle:
            names = "abcdefgh"
            jobs = dict(zip(names, await dispatch_work(world, *names), strict=True))
            gates.let(*names)
            await world.settle()
            states = {name: await world.state(job) for name, job in jobs.items()}
            assert states == {n: "failed" if n == bad else "completed" for n in names}
            refused = [len(batch) for batch in watched.batches if len(batch) > 1]
            assert refused[0] == 8
            assert len(watched.batches) <= 12
            failed = await world.job(jobs[bad])
            assert failed.error is not None
            assert failed.error.kind == "serialization"
            assert "could not be stored" in failed.error.message
            errors = errors_of(handle)
            [error] = [error for error in errors if isinstance(error, tenure.JobFailed)]
            assert error.job_id == jobs[bad].id
            assert all(type(e) is tenure.StoreError for e in errors if e is not error)


@each_store
async def test_w16_a_bad_item_alone_is_recorded_as_failed(store: str, tmp_path: Path) -> None:
    """W16: the attempt counts, and the job is not run again."""
    async with open_world(store, tmp_path) as world:
        WatchedWrites(world, completes_with(b'"a"'))
        gates = Gates()
        worker = tenure.Worker(world.queue, concurrency=1)
        worker.register("work", gates)
        async with running(worker) as handle:
            bad, good = await dispatch_work(world, "a", "b")
            gates.let("a")
            await world.advance(10.0)
            gates.let("b")
            await world.settle()
            record = await world.job(bad)
            assert (record.state, record.attempt) == ("failed", 1)
            assert await world.state(good) == "completed"
            refused, failed = errors_of(handle)
            assert type(refused) is tenure.StoreError
            assert isinstance(failed, tenure.JobFailed)
            assert failed.job_id == bad.id
            assert gates.starts == ["a", "b"]


async def test_w16_what_cannot_be_recorded_at_all_is_left_to_its_lease() -> None:
    """W16: even the failure is refused: said once, the slot is free again, the job comes back."""
    async with open_world() as world:
        bad = b'"a"'
        refusing = True
        first: list[tenure.Hold] = []

        def refuses(hold: tenure.Hold, outcome: tenure.Outcome) -> bool:
            if isinstance(outcome, tenure.Completed) and outcome.result == bad:
                first.append(hold)
            return refusing and hold in first

        WatchedWrites(world, refuses)
        gates = Gates()
        worker = tenure.Worker(world.queue, concurrency=1)
        worker.register("work", gates)
        async with running(worker) as handle:
            job, other = await dispatch_work(world, "a", "b")
            gates.let("a")
            await world.advance(10.0)
            assert await world.state(job) == "processing"
            assert gates.starts == ["a", "b"]
            *refusals, error = errors_of(handle)
            assert [type(refusal) for refusal in refusals] == [tenure.StoreError] * 2
            assert isinstance(error, tenure.StateTransitionError)
            assert (error.job_id, error.operation) == (job.id, "fail")
            assert "left to its lease" in error.message
            gates.let("b")
            refusing = False
            await world.advance(60.0)  # its lease runs out, and it is run again
            assert gates.starts == ["a", "b", "a"]
            assert [await world.state(j) for j in (job, other)] == ["completed"] * 2
            assert errors_of(handle) == []


async def test_w16_a_release_that_the_store_refuses_fails_no_job() -> None:
    """W16, W23: nothing is wrong with the job; it is left to its lease instead."""
    async with open_world() as world:

        def refuses(hold: tenure.Hold, outcome: tenure.Outcome) -> bool:
            return isinstance(outcome, tenure.Released)

        watched = WatchedWrites(world, refuses)
        worker = tenure.Worker(world.queue)
        async with running(worker) as handle:
            job = await world.queue.dispatch("stranger")
            await world.settle()
            assert await world.state(job) == "processing"
            assert {type(outcome) for outcome in watched.outcomes} == {tenure.Released}
            refused, error = errors_of(handle)
            assert type(refused) is tenure.StoreError
            assert isinstance(error, tenure.StateTransitionError)
            assert error.operation == "release_unhandled"
