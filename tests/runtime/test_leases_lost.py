"""W19: a lost hold stops its handler and says why, a request to cancel reaches it, nothing else."""

import asyncio
import threading
from pathlib import Path

import pytest

import tenure
from tests.runtime.scenes import (
    errors_of,
    quiet_worker,
    running,
    stubborn,
    take_over,
    unreachable,
)
from tests.runtime.world import each_store, open_world


@each_store
async def test_w19_a_lost_hold_cancels_its_handler_and_says_why(store: str, tmp_path: Path) -> None:
    """W19: at the keeper's next turn; nothing is written, the job is the rival's."""
    async with open_world(store, tmp_path) as world:
        events: list[tenure.Event] = []
        worker = quiet_worker(world, concurrency=1, lease=30.0, observers=[events.append])
        cancelled: list[float] = []

        @worker.handler("work")
        async def work(payload: None) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(world.clock.monotonic())
                raise

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.settle()
            rival = await take_over(world, job.id)
            before = await world.job(job)
            del world.driver.calls[:]
            await world.advance(9.9)
            assert cancelled == []
            await world.advance(0.1)
            assert cancelled == [10.0]
            [error] = errors_of(handle)
            assert isinstance(error, tenure.LeaseLost)
            assert error.job_id == job.id
            [ended] = [event for event in events if isinstance(event, tenure.LeaseEnded)]
            assert ended.job.id == job.id
            assert ended.hold.serial < rival.hold.serial
            await world.advance(60.0)
            assert await world.job(job) == before
            assert not {"record", "exchange"} & set(world.driver.calls)
            assert errors_of(handle) == []


@each_store
async def test_w19_the_slot_of_a_lost_attempt_is_free_again(store: str, tmp_path: Path) -> None:
    """W19: the worker goes on with other jobs."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world, concurrency=1)
        starts: list[str] = []

        @worker.handler("work")
        async def work(payload: str) -> None:
            starts.append(payload)
            if payload == "lost":
                await asyncio.Event().wait()

        async with running(worker) as handle:
            lost = await world.queue.dispatch("work", "lost")
            await world.settle()
            await take_over(world, lost.id)
            other = await world.queue.dispatch("work", "other")
            await world.advance(10.0)
            assert starts == ["lost", "other"]
            assert await world.state(other) == "completed"
            assert [type(error) for error in errors_of(handle)] == [tenure.LeaseLost]


async def test_w19_a_handler_in_a_thread_sees_that_its_hold_is_lost() -> None:
    """W19, W12: a thread cannot be interrupted; `job.cancelled` tells it."""
    async with open_world() as world:
        worker = quiet_worker(world, concurrency=1)
        stopped = threading.Event()

        @worker.handler("work")
        def work(payload: None, job: tenure.RunningJob) -> None:
            while not job.cancelled:
                stopped.wait(0.001)
            stopped.set()

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.settle()
            await take_over(world, job.id)
            before = await world.job(job)
            await world.advance(10.0)
            await world.until(stopped.is_set)
            lost = await handle.next_error()
            refused = await handle.next_error()
            assert await world.job(job) == before
            assert isinstance(lost, tenure.LeaseLost)
            assert isinstance(refused, tenure.StateTransitionError)  # the thread's own result


@each_store
async def test_w19_what_a_lost_handler_returns_all_the_same_is_refused(
    store: str, tmp_path: Path
) -> None:
    """W19, I3: it swallowed the cancellation; its result meets another hold."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world, concurrency=1)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> str:
            await stubborn(gate)
            return "late"

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.settle()
            await take_over(world, job.id)
            before = await world.job(job)
            await world.advance(30.0)
            gate.set()
            await world.settle()
            assert await world.job(job) == before
            lost, refused = errors_of(handle)
            assert isinstance(lost, tenure.LeaseLost)
            assert isinstance(refused, tenure.StateTransitionError)
            assert refused.operation == "complete"


@each_store
async def test_w19_a_request_to_cancel_reaches_the_handler_within_one_keeper_turn(
    store: str, tmp_path: Path
) -> None:
    """W19: the turn is a third of the lease; the job ends as cancelled, its attempt spent."""
    async with open_world(store, tmp_path) as world:
        events: list[tenure.Event] = []
        worker = quiet_worker(world, lease=30.0, observers=[events.append])
        cancelled: list[float] = []

        @worker.handler("work")
        async def work(payload: None) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(world.clock.monotonic())
                raise

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.advance(1.0)
            assert await world.queue.cancel(job.id) == tenure.Answer.REQUESTED
            await world.advance(10.0)
            assert cancelled == [10.0]
            record = await world.job(job)
            assert (record.state, record.attempt) == ("cancelled", 1)
            [settled] = [event for event in events if isinstance(event, tenure.JobSettled)]
            assert settled.outcome == tenure.Cancelled("cancel requested")
            assert errors_of(handle) == []
            with pytest.raises(tenure.JobCancelled):
                await job.result(timeout=0)


@each_store
async def test_w19_what_a_handler_finishes_in_spite_of_the_request_stands(
    store: str, tmp_path: Path
) -> None:
    """Section 3: `Completed` and `Failed` stand; what is recorded follows what it really did."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world)

        @worker.handler("returns")
        async def returns(payload: None) -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "done"
            return "never"

        @worker.handler("raises")
        async def raises(payload: None) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ValueError("its own") from None

        async with running(worker) as handle:
            one = await world.queue.dispatch("returns")
            two = await world.queue.dispatch("raises")
            await world.settle()
            await world.queue.cancel([one.id, two.id])
            await world.advance(10.0)
            assert [await world.state(one), await world.state(two)] == ["completed", "failed"]
            [error] = errors_of(handle)
            assert isinstance(error, tenure.JobFailed)
            assert error.job_id == two.id


@each_store
async def test_w19_a_job_that_was_asked_to_cancel_is_not_tried_again(
    store: str, tmp_path: Path
) -> None:
    """Section 3: `Retried` becomes cancelled where a request is stored."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world)
        gate = asyncio.Event()
        starts: list[int] = []

        @worker.handler("work", retry=tenure.RetryPolicy(max_attempts=3, base=1.0))
        async def work(payload: None, job: tenure.RunningJob) -> None:
            starts.append(job.attempt)
            await gate.wait()
            raise ValueError("no")

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.settle()
            await world.queue.cancel(job.id)
            gate.set()  # it fails before the request has reached it
            await world.advance(60.0)
            assert starts == [1]
            assert await world.state(job) == "cancelled"
            [error] = errors_of(handle)
            assert isinstance(error, tenure.JobFailed)


async def test_w19_a_store_that_cannot_be_reached_cancels_nothing_however_long() -> None:
    """W19: twenty leases without the store; nobody reclaimed, so the work is kept."""
    async with open_world() as world:
        worker = quiet_worker(world, lease=3.0)
        gate = asyncio.Event()
        interrupted: list[None] = []

        @worker.handler("work")
        async def work(payload: None) -> str:
            try:
                await gate.wait()
            except asyncio.CancelledError:
                interrupted.append(None)
                raise
            return "done"

        def away() -> None:
            raise unreachable()

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.settle()
            world.driver.keeper_hook = away
            for operation in ("expired", "record", "exchange", "claim", "next_due"):
                world.driver.fail(operation, unreachable(), times=10_000)
            await world.advance(60.0)
            assert interrupted == []
            errors = errors_of(handle)
            assert errors
            assert {type(error) for error in errors} == {tenure.StoreUnavailable}
            world.driver.keeper_hook = None
            world.driver.hooks.clear()
            await world.advance(1.0)
            gate.set()
            await world.settle()
            record = await world.job(job)
            assert (record.state, record.result, record.attempt) == ("completed", "done", 1)
            assert {type(error) for error in errors_of(handle)} <= {tenure.StoreUnavailable}


@each_store
async def test_w19_a_worker_does_not_reclaim_what_it_runs_itself(
    store: str, tmp_path: Path
) -> None:
    """W18, W19: its keeper alone cannot reach the store; as soon as it can, the lease is good."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world, lease=3.0)
        gate = asyncio.Event()
        starts: list[int] = []

        @worker.handler("work")
        async def work(payload: None, job: tenure.RunningJob) -> None:
            starts.append(job.attempt)
            await gate.wait()

        def away() -> None:
            raise unreachable()

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.settle()
            world.driver.keeper_hook = away
            await world.advance(15.0)
            assert (await world.inner.expired(1)).holds
            assert "reclaim" not in world.driver.calls
            world.driver.keeper_hook = None
            await world.advance(1.0)
            assert not (await world.inner.expired(1)).holds
            gate.set()
            await world.settle()
            assert starts == [1]
            assert await world.state(job) == "completed"
            assert {type(error) for error in errors_of(handle)} == {tenure.StoreUnavailable}


async def test_w19_a_hold_that_is_lost_after_an_outage_cancels_then() -> None:
    """W19: a rival could reach the store meanwhile; the first answer after the outage says so."""
    async with open_world() as world:
        worker = quiet_worker(world, concurrency=1, lease=30.0)
        interrupted: list[float] = []

        @worker.handler("work")
        async def work(payload: None) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                interrupted.append(world.clock.monotonic())
                raise

        def away() -> None:
            raise unreachable()

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.settle()
            world.driver.keeper_hook = away
            await world.advance(25.0)
            await take_over(world, job.id)
            await world.advance(3.0)
            assert interrupted == []
            world.driver.keeper_hook = None
            await world.advance(2.5)  # the next tick
            assert len(interrupted) == 1
            *away_errors, lost = errors_of(handle)
            assert isinstance(lost, tenure.LeaseLost)
            assert all(isinstance(error, tenure.StoreUnavailable) for error in away_errors)
