"""`handle.vitals()`: how a worker is, from any thread, whatever it does."""

import asyncio
import threading
from datetime import datetime

import tenure
from tests.runtime.scenes import Gates, errors_of, quiet_worker, running, unreachable
from tests.runtime.world import open_world


async def test_a_worker_tells_how_it_is_from_its_start_to_its_end() -> None:
    async with open_world() as world:
        gates = Gates()
        worker = quiet_worker(world, concurrency=2)
        worker.register("work", gates)
        handle = worker.run()
        begun = handle.vitals()
        assert (begun.running, begun.claiming, begun.claimed_at) == (True, False, None)
        await world.settle()
        idle = handle.vitals()
        assert (idle.claiming, idle.healthy, idle.problem) == (True, True, "")
        assert (idle.slots, idle.used, idle.overdue) == (2, 0, 0)
        assert isinstance(idle.claimed_at, datetime)
        await world.queue.dispatch_many([tenure.Call("work", str(n)) for n in range(3)])
        await world.advance(0.1)
        assert handle.vitals().used == 2
        gates.let("0", "1")
        await world.until(lambda: len(gates.starts) == 3)
        assert handle.vitals().used == 1
        gates.let("2")
        await world.settle()
        handle.stop_claiming()
        told = handle.vitals()
        assert (told.running, told.claiming) == (True, False)
        await world.run(handle.shutdown())
        assert not handle.vitals().running


async def test_why_the_last_claim_failed_is_told_until_one_succeeds() -> None:
    async with open_world() as world, running(tenure.Worker(world.queue)) as handle:
        await world.settle()
        world.driver.fail("claim", unreachable(), times=3)
        await world.advance(2)
        told = handle.vitals()
        assert "the store is away" in told.problem
        assert told.healthy
        await world.advance(10)
        assert handle.vitals().problem == ""
        assert [type(error) for error in errors_of(handle)] == [tenure.StoreUnavailable] * 3


async def test_a_claim_that_is_never_answered_is_stillness_and_full_slots_are_not() -> None:
    async with open_world() as world:
        gates = Gates()
        worker = tenure.Worker(world.queue, concurrency=1)
        worker.register("work", gates)
        async with running(worker) as handle:
            await world.queue.dispatch("work", "a")
            await world.until(lambda: handle.vitals().used == 1)
            for _ in range(3):
                assert handle.vitals().still == 0, "its only slot is in use"
                await world.advance(100)
            gates.let("a")
            await world.until(lambda: handle.vitals().used == 0)
            await world.settle()
            answered = world.driver.hold_up("claim")
            await world.advance(5)
            assert handle.vitals().still < 5
            await world.advance(100)
            assert handle.vitals().still >= 100
            del world.driver.hooks["claim"]
            answered.set()
            await world.advance(5)
            assert handle.vitals().still < 5


async def test_it_is_told_to_another_thread() -> None:
    async with open_world() as world, running(quiet_worker(world)) as handle:
        await world.settle()
        told: list[tenure.Vitals] = []
        thread = threading.Thread(target=lambda: told.append(handle.vitals()))
        thread.start()
        await asyncio.to_thread(thread.join)
        assert told[0].claiming
