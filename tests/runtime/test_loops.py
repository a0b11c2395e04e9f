"""W26: the worker's own loops die loudly and start again."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import tenure
from tests.runtime.scenes import errors_of, quiet_worker, running, unreachable
from tests.runtime.world import World, each_store, open_world


class Defect(Exception):
    """What no store may raise: neither a `QueueError` nor known to anybody."""


def deaths(errors: Sequence[tenure.QueueError], loop: str) -> int:
    """How often that loop died; nothing else may have been reported."""
    for error in errors:
        assert isinstance(error, tenure.WorkerTaskError)
        assert error.task == loop
        assert error.message == "Defect: bug"
        assert isinstance(error.__cause__, Defect)
    return len(errors)


def echo(world: World, **options: Any) -> tenure.Worker:
    """A worker whose jobs return at once."""
    worker = tenure.Worker(world.queue, **options)

    @worker.handler("work")
    async def work(payload: object) -> object:
        return payload

    return worker


@each_store
async def test_w26_a_claimer_that_dies_is_reported_and_goes_on(store: str, tmp_path: Path) -> None:
    """W26: the next claim works, the job is run once."""
    async with open_world(store, tmp_path) as world:
        world.driver.fail("claim", Defect("bug"))
        async with running(echo(world)) as handle:
            job = await world.queue.dispatch("work", 1)
            await world.advance(5.0)
            record = await world.job(job)
            assert (record.state, record.attempt) == ("completed", 1)
            assert deaths(errors_of(handle), "claimer") == 1
            assert handle.healthy


@each_store
async def test_w26_what_a_dying_claimer_had_claimed_is_found_again(
    store: str, tmp_path: Path
) -> None:
    """W26, I14: the claim was made, its answer was lost in the defect."""
    async with open_world(store, tmp_path) as world:
        job = await world.queue.dispatch("work", 1)
        world.driver.fail("claim", Defect("bug"), after=True)
        async with running(echo(world)) as handle:
            await world.advance(5.0)
            record = await world.job(job)
            assert (record.state, record.attempt) == ("completed", 1)
            assert deaths(errors_of(handle), "claimer") == 1


@each_store
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_w26_a_recorder_that_dies_is_reported_and_loses_no_outcome(
    store: str, tmp_path: Path, after: bool
) -> None:
    """W26: what it had taken is put back before it goes, and written once."""
    async with open_world(store, tmp_path) as world:
        settled: list[tenure.Event] = []
        worker = echo(world, observers=[settled.append])
        async with running(worker) as handle:
            await world.settle()
            world.driver.fail("record", Defect("bug"), after=after)
            world.driver.hooks["exchange"] = world.driver.hooks["record"]
            jobs = await world.queue.dispatch_many([tenure.Call("work", n) for n in range(3)])
            await world.advance(5.0)
            assert [(await world.job(job)).result for job in jobs] == [0, 1, 2]
            assert len([e for e in settled if isinstance(e, tenure.JobSettled)]) == 3
            assert deaths(errors_of(handle), "recorder") == 1


@each_store
async def test_w26_a_reclaim_loop_that_dies_is_reported_and_goes_on(
    store: str, tmp_path: Path
) -> None:
    """W26: lost jobs are recovered all the same."""
    async with open_world(store, tmp_path) as world:
        job = await world.queue.dispatch("work", 1)
        await world.claim_elsewhere(lease=1.0)
        world.driver.fail("expired", Defect("bug"))
        async with running(echo(world, lease=2.0)) as handle:
            await world.advance(5.0)
            assert await world.state(job) == "completed"
            assert deaths(errors_of(handle), "reclaim") == 1


async def test_w26_a_keeper_that_dies_is_reported_and_keeps_the_leases() -> None:
    """W26: it goes on at the next tick."""
    async with open_world() as world:
        worker = quiet_worker(world, lease=12.0)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> None:
            await gate.wait()

        def bug() -> None:
            world.driver.keeper_hook = None
            raise Defect("bug")

        async with running(worker) as handle:
            await world.queue.dispatch("work")
            world.driver.keeper_hook = bug
            await world.advance(30.0)
            assert not (await world.inner.expired(1)).holds
            assert deaths(errors_of(handle), "keeper") == 1
            assert handle.healthy
            gate.set()
            await world.settle()


@pytest.mark.parametrize("error", [Defect("bug"), unreachable()], ids=["defect", "unreachable"])
async def test_w26_a_keeper_that_cannot_reach_the_store_at_first_tries_again(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W26, W18: its handle is the first thing that it needs; no lease may be lost for that."""
    async with open_world() as world:
        worker = quiet_worker(world, lease=12.0)
        gate = asyncio.Event()
        open_handle = world.driver.keeper_handle
        tries: list[None] = []

        def keeper_handle() -> tenure.KeeperHandle:
            tries.append(None)
            if len(tries) == 1:
                raise error
            return open_handle()

        monkeypatch.setattr(world.driver, "keeper_handle", keeper_handle)

        @worker.handler("work")
        async def work(payload: None) -> None:
            await gate.wait()

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.advance(30.0)
            assert len(tries) == 2
            assert not (await world.inner.expired(1)).holds
            gate.set()
            await world.settle()
            assert await world.state(job) == "completed"
            [reported] = errors_of(handle)
            if isinstance(error, Defect):
                assert deaths([reported], "keeper") == 1
            else:
                assert reported is error


@pytest.mark.parametrize(
    ("operation", "loop"), [("claim", "claimer"), ("expired", "reclaim"), ("record", "recorder")]
)
async def test_w26_a_loop_is_started_again_with_growing_pauses(operation: str, loop: str) -> None:
    """W26: no hot loop, whatever is broken; and it never gives up."""
    async with open_world() as world:
        tries: list[float] = []

        async def hook(call: Any) -> Any:
            tries.append(world.clock.monotonic())
            raise Defect("bug")

        # Leases are looked for every second, where that is what is broken; else none runs out.
        lease = 1.0 if loop == "reclaim" else 900.0
        async with running(echo(world, lease=lease)) as handle:
            await world.settle()
            world.driver.hooks[operation] = hook
            if operation == "record":
                world.driver.hooks["exchange"] = hook
            await world.queue.dispatch("work", 1)
            await world.advance(60.0)
            assert 10 <= len(tries) <= 60
            pauses = [after - before for before, after in pairwise(tries)]
            assert max(pauses[:2]) < 2.0
            assert max(pauses) <= 11.0
            assert min(pauses[-3:]) >= 1.0
            assert deaths(errors_of(handle), loop) == len(tries)
            world.driver.hooks.clear()
            await world.advance(20.0)
            assert (await world.queue.counts()).completed == 1
            assert errors_of(handle) == []


@pytest.mark.parametrize(
    ("operation", "loop"), [("claim", "claimer"), ("expired", "reclaim"), ("record", "recorder")]
)
async def test_w26_three_deaths_in_a_row_make_the_worker_unhealthy(
    operation: str, loop: str
) -> None:
    """W26: two do not; a good turn makes it healthy again."""
    async with open_world() as world:
        left = 0

        async def hook(call: Any) -> Any:
            nonlocal left
            if left > 0:
                left -= 1
                raise Defect("bug")
            return await call()

        world.driver.hooks[operation] = hook
        if operation == "record":
            world.driver.hooks["exchange"] = hook
        async with running(echo(world, lease=1.0)) as handle:
            await world.settle()
            left = 2
            await world.queue.dispatch("work", 1)
            await world.advance(30.0)
            assert deaths(errors_of(handle), loop) == 2
            health = [handle.healthy]
            left = 3
            await world.queue.dispatch("work", 2)
            for _ in range(3000):
                await world.advance(0.01)
                if not left:
                    break
            health.append(handle.healthy)
            await world.advance(30.0)
            assert deaths(errors_of(handle), loop) == 3
            health.append(handle.healthy)
            assert health == [True, False, True]
            assert (await world.queue.counts()).completed == 2


async def test_w26_three_deaths_of_the_keeper_make_the_worker_unhealthy() -> None:
    """W26: the keeper is no loop of the event loop, and counts as one."""
    async with open_world() as world:
        worker = quiet_worker(world, lease=12.0)
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: None) -> None:
            await gate.wait()

        def bug() -> None:
            raise Defect("bug")

        async with running(worker) as handle:
            await world.queue.dispatch("work")
            world.driver.keeper_hook = bug
            await world.advance(5.0)
            assert deaths(errors_of(handle), "keeper") == 2
            health = [handle.healthy]
            await world.advance(1.0)
            assert deaths(errors_of(handle), "keeper") == 1
            health.append(handle.healthy)
            world.driver.keeper_hook = None
            await world.advance(1.0)
            health.append(handle.healthy)
            assert health == [True, False, True]
            gate.set()
            await world.settle()
            assert errors_of(handle) == []


async def test_w26_a_defect_in_opening_the_store_stops_the_worker_and_is_reported() -> None:
    """W26: there is nothing that could go on, and nobody waits for ever."""
    async with open_world() as world:
        world.driver.fail("open", Defect("bug"))
        queue = tenure.Queue(world.driver, clock=world.clock)
        handle = tenure.Worker(queue).run()
        await asyncio.wait_for(handle.wait(), 5.0)
        [error] = errors_of(handle)
        assert isinstance(error, tenure.RuntimeUnavailable)
        assert isinstance(error.__cause__, Defect)
