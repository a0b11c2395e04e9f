"""W6: how much is claimed, and that nothing more runs than there are slots."""

import asyncio
import threading
from pathlib import Path

import pytest

import tenure
from tests.runtime.arrange import AT_SHUTDOWN, Gated, Requests, released, running
from tests.runtime.scenes import errors_of, take_over
from tests.runtime.world import each_store, open_world


@each_store
async def test_w06_never_more_handlers_at_once_than_concurrency(store: str, tmp_path: Path) -> None:
    """W6: and a slot that comes free is used again, until all is done."""
    async with open_world(store, tmp_path) as world:
        gated = Gated(world, concurrency=3)
        await world.queue.dispatch_many([tenure.Call("work", n) for n in range(10)])
        async with running(world, gated.worker):
            for done in range(10):
                await world.advance(1.0)
                assert gated.starts == list(range(min(10, done + 3)))
                gated.gates[done].set()
            await world.settle()
            assert gated.most == 3
            assert (await world.queue.counts()).completed == 10


@each_store
async def test_w06_never_more_threads_at_once_than_concurrency(store: str, tmp_path: Path) -> None:
    """W6: alike for plain functions."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, concurrency=2)
        lock, gate = threading.Lock(), threading.Event()
        now = most = started = 0

        @worker.handler("work")
        def work(payload: None) -> None:
            nonlocal now, most, started
            with lock:
                now, started = now + 1, started + 1
                most = max(most, now)
            gate.wait(10)
            with lock:
                now -= 1

        jobs = await world.queue.dispatch_many([tenure.Call("work") for _ in range(6)])
        async with running(world, worker):
            await world.until(lambda: started == 2)
            await world.advance(5.0)
            assert started == 2
            gate.set()
            await world.until(lambda: started == 6 and now == 0)
            await world.ended(*jobs)
            assert most == 2
            assert [await world.state(job) for job in jobs] == ["completed"] * 6


@each_store
async def test_w06_a_claim_asks_for_at_most_the_free_slots(store: str, tmp_path: Path) -> None:
    """W6: with one of three slots in use it asks for two, and with all in use not at all."""
    async with open_world(store, tmp_path) as world:
        requests = Requests(world)
        gated = Gated(world, concurrency=3)
        await world.queue.dispatch("work", "a")
        async with running(world, gated.worker):
            await world.advance(1.5)
            assert requests.requests[0].limit == 3
            assert {request.limit for request in requests.requests[1:]} == {2}
            await world.queue.dispatch_many([tenure.Call("work", n) for n in "bcd"])
            await world.advance(1.5)
            assert gated.starts == ["a", "b", "c"]
            before = len(requests.requests)
            await world.advance(100.0)
            assert len(requests.requests) == before
            gated.gates["b"].set()
            await world.settle()
            assert gated.starts == ["a", "b", "c", "d"]
            assert max(request.limit for request in requests.requests[before:]) == 1
            assert all(
                queue.limit == request.limit
                for request in requests.requests
                for queue in request.queues
            )


@each_store
@pytest.mark.parametrize(("prefetch", "processing"), [(None, 2), (3, 5)])
async def test_w06_nothing_is_claimed_that_cannot_start_now_unless_prefetch_says_so(
    store: str, tmp_path: Path, prefetch: int | None, processing: int
) -> None:
    """W6: prefetch beyond the slots is 0 by default; prefetched jobs do not run early."""
    async with open_world(store, tmp_path) as world:
        options = {} if prefetch is None else {"prefetch": prefetch}
        gated = Gated(world, concurrency=2, **options)
        await world.queue.dispatch_many([tenure.Call("work", n) for n in range(8)])
        async with running(world, gated.worker):
            await world.advance(10.0)
            counts = await world.queue.counts()
            assert (counts.processing, counts.pending) == (processing, 8 - processing)
            assert gated.starts == [0, 1]
            for n in range(8):
                await world.settle()
                gated.gates[n].set()
            await world.settle()
            assert gated.starts == list(range(8))
            assert gated.most == 2


@each_store
async def test_w06_prefetched_jobs_are_put_back_at_shutdown_with_no_attempt_spent(
    store: str, tmp_path: Path
) -> None:
    """W6, W7: what waits for a slot here goes back at once."""
    async with open_world(store, tmp_path) as world:
        gated = Gated(world, concurrency=1, prefetch=1)
        jobs = await world.queue.dispatch_many([tenure.Call("work", n) for n in range(2)])
        async with running(world, gated.worker) as handle:
            await world.settle()
            ending = asyncio.create_task(handle.shutdown(5.0))
            await world.settle()
            waiting = await world.job(jobs[1])
            assert (waiting.state, waiting.attempt) == ("pending", 0)
            assert await world.state(jobs[0]) == "processing"
            gated.gates[0].set()
            assert await ending is None
            assert released(gated.events) == [(jobs[1].id, AT_SHUTDOWN)]
            assert await world.state(jobs[0]) == "completed"


@each_store
async def test_w06_a_prefetched_job_that_was_taken_over_is_not_started_here(
    store: str, tmp_path: Path
) -> None:
    """W6, I2: the keeper finds its hold lost while it waits for a slot."""
    async with open_world(store, tmp_path) as world:
        gated = Gated(world, concurrency=1, prefetch=1)
        jobs = await world.queue.dispatch_many([tenure.Call("work", n) for n in range(2)])
        async with running(world, gated.worker):
            await world.settle()
            await take_over(world, jobs[1].id)
            await world.advance(10.0)  # one turn of the keeper
            gated.gates[0].set()
            await world.settle()
            assert gated.starts == [0]
            assert await world.state(jobs[1]) == "processing"  # the rival's


@each_store
async def test_w06_a_prefetched_job_that_is_to_be_cancelled_is_not_started(
    store: str, tmp_path: Path
) -> None:
    """W6, W19: the keeper hears of the wish while the job waits for a slot."""
    async with open_world(store, tmp_path) as world:
        gated = Gated(world, concurrency=1, prefetch=1)
        jobs = await world.queue.dispatch_many([tenure.Call("work", n) for n in range(2)])
        async with running(world, gated.worker):
            await world.settle()
            assert await world.queue.cancel(jobs[1].id) == "requested"
            await world.advance(10.0)
            job = await world.job(jobs[1])
            assert (job.state, job.attempt) == ("cancelled", 0)
            gated.gates[0].set()
            await world.settle()
            assert gated.starts == [0]


@each_store
async def test_w06_the_slot_of_a_lost_lease_is_used_again(store: str, tmp_path: Path) -> None:
    """W6: an attempt that ends without any outcome gives its slot back all the same."""
    async with open_world(store, tmp_path) as world:
        gated = Gated(world, concurrency=1)
        lost = await world.queue.dispatch("work", 0)
        async with running(world, gated.worker) as handle:
            await world.settle()
            await take_over(world, lost.id)
            job = await world.queue.dispatch("work", 1)
            await world.advance(10.0)  # one turn of the keeper
            [error] = errors_of(handle)
            assert isinstance(error, tenure.LeaseLost)
            assert gated.starts == [0, 1]
            gated.gates[1].set()
            await world.settle()
            assert await world.state(job) == "completed"
