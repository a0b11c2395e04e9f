"""W6, W12: handlers that cannot be interrupted: what takes their place, and when it is too much."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import tenure
from tests.runtime.scenes import errors_of, quiet_worker, running, stubborn
from tests.runtime.world import World, each_store, open_world

OVERDUE = 6.0  # seconds: a time limit of 5, and one more in which a coroutine may clean up


class Crew:
    """A worker with a handler that swallows its cancellation, and one that does not.

    Payloads are the names of the attempts; each runs until the test lets it go.
    """

    def __init__(self, world: World, **options: Any) -> None:
        self.world = world
        self.worker = quiet_worker(world, job_timeout=5.0, lease=1000.0, **options)
        self.worker.register("stuck", self._stuck)
        self.worker.register("work", self._work, timeout=1000.0)
        self.gates: dict[str, asyncio.Event] = {}
        self.running: list[str] = []
        self.over = False

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[tenure.WorkerHandle]:
        """A run after which every handler is let go, also that of a failing test."""
        async with running(self.worker) as handle:
            try:
                yield handle
            finally:
                self.over = True
                for gate in self.gates.values():
                    gate.set()

    def _gate(self, payload: str) -> asyncio.Event:
        gate = self.gates.setdefault(payload, asyncio.Event())
        if self.over:
            gate.set()
        return gate

    async def _stuck(self, payload: str) -> None:
        self.running.append(payload)
        await stubborn(self._gate(payload))
        self.running.remove(payload)

    async def _work(self, payload: str) -> None:
        self.running.append(payload)
        try:
            await self._gate(payload).wait()
        finally:
            self.running.remove(payload)

    async def dispatch(self, name: str, *payloads: str, queue: str = "default") -> None:
        calls = [tenure.Call(name, payload, queue=queue) for payload in payloads]
        await self.world.queue.dispatch_many(calls)
        await self.world.advance(0.1)

    async def let(self, *payloads: str) -> None:
        for payload in payloads:
            self.gates[payload].set()
        await self.world.advance(0.1)

    async def let_all(self) -> None:
        while self.running:
            await self.let(*self.running)


def slots_left(handle: tenure.WorkerHandle) -> list[int | None]:
    """What the unread errors say, which must all be of overdue handlers."""
    errors = errors_of(handle)
    assert all(isinstance(error, tenure.JobOverdue) for error in errors)
    return [error.slots_left for error in errors if isinstance(error, tenure.JobOverdue)]


def healthy(handle: tenure.WorkerHandle) -> bool:
    return handle.healthy


# --- replacement slots ----------------------------------------------------------------------------


@each_store
async def test_a_stuck_thread_takes_no_capacity_where_a_slot_replaces_it(
    store: str, tmp_path: Path
) -> None:
    """W6: the extra slot opens at its deadline, and closes when it returns."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world, concurrency=1, job_timeout=5.0, replacement_slots=1)
        gate = threading.Event()
        started: list[str] = []
        others = {name: asyncio.Event() for name in ("a", "b")}

        @worker.handler("thread")
        def thread(payload: None) -> str:
            started.append("thread")
            assert gate.wait(20.0)
            return "late"

        @worker.handler("work", timeout=1000.0)
        async def work(payload: str) -> None:
            started.append(payload)
            await others[payload].wait()

        async with running(worker) as handle:
            stuck = await world.queue.dispatch("thread")
            await world.until(lambda: started == ["thread"])
            first, second = [await world.queue.dispatch("work", name) for name in ("a", "b")]
            await world.advance(4.9)
            assert started == ["thread"]
            await world.advance(0.2)
            await world.until(lambda: started == ["thread", "a"])
            assert slots_left(handle) == [1]
            assert healthy(handle)
            await world.advance(60.0)
            assert started == ["thread", "a"]  # one in its place, and no more
            gate.set()
            await world.ended(stuck)
            await world.advance(1.0)
            assert (await world.job(stuck)).result == "late"
            assert started == ["thread", "a"]
            others["a"].set()
            await world.ended(first)
            await world.until(lambda: started == ["thread", "a", "b"])
            others["b"].set()
            await world.ended(second)
            assert errors_of(handle) == []


async def test_a_coroutine_that_swallows_its_cancellation_is_replaced_too() -> None:
    """W12: once it is overdue, a second after its deadline."""
    async with open_world() as world:
        crew = Crew(world, concurrency=1, replacement_slots=1)
        async with crew.run() as handle:
            await crew.dispatch("stuck", "s")
            await crew.dispatch("work", "a")
            await world.advance(OVERDUE - 0.3)
            assert crew.running == ["s"]
            await world.advance(0.3)
            assert crew.running == ["s", "a"]
            assert slots_left(handle) == [1]
            await crew.let_all()


async def test_never_more_than_the_concurrency_run_beside_those_that_are_overdue() -> None:
    """W6: whoever ends first, and whatever is claimed when."""
    async with open_world() as world:
        crew = Crew(world, concurrency=3, replacement_slots=2)
        async with crew.run() as handle:
            await crew.dispatch("stuck", "s1", "s2")
            await crew.dispatch("work", *(f"w{n}" for n in range(8)))
            assert crew.running == ["s1", "s2", "w0"]
            await world.advance(OVERDUE)
            assert crew.running == ["s1", "s2", "w0", "w1", "w2"]
            await crew.let("w1")
            assert crew.running == ["s1", "s2", "w0", "w2", "w3"]
            await crew.let("s1")
            assert crew.running == ["s2", "w0", "w2", "w3"]
            await crew.let("s2")
            assert crew.running == ["w0", "w2", "w3"]
            await crew.let("w0", "w2")
            assert crew.running == ["w3", "w4", "w5"]
            await crew.let_all()
            assert slots_left(handle) == [3, 3]


async def test_past_the_replacements_each_stuck_handler_takes_a_slot() -> None:
    """And when one of those replaced returns, the next one is."""
    async with open_world() as world:
        crew = Crew(world, concurrency=3, replacement_slots=1)
        async with crew.run() as handle:
            await crew.dispatch("stuck", "s1", "s2")
            await crew.dispatch("work", *(f"w{n}" for n in range(8)))
            await world.advance(OVERDUE)
            assert crew.running == ["s1", "s2", "w0", "w1"]
            assert slots_left(handle) == [3, 2]
            assert healthy(handle)
            await crew.let("s1")
            assert crew.running == ["s2", "w0", "w1", "w2"]
            await crew.let_all()


async def test_a_claim_that_waits_takes_the_slot_that_opens_and_its_own_deadline_holds() -> None:
    """With `prefetch`; it is due before all that ran already."""
    async with open_world() as world:
        crew = Crew(world, concurrency=2, prefetch=1, replacement_slots=1)

        @crew.worker.handler("brief", timeout=1.0)
        async def brief(payload: str) -> None:
            crew.running.append(payload)
            await asyncio.Event().wait()

        async with crew.run() as handle:
            await crew.dispatch("stuck", "s")
            await crew.dispatch("work", "w")
            await crew.dispatch("brief", "b")
            await world.advance(OVERDUE - 0.3)
            assert crew.running == ["s", "w", "b"]
            await world.advance(0.9)
            assert [type(error) for error in errors_of(handle)] == [tenure.JobOverdue]
            await world.advance(0.2)
            assert [type(error) for error in errors_of(handle)] == [tenure.JobTimedOut]
            crew.running.remove("b")
            await crew.let_all()


# --- with bounds on queues ------------------------------------------------------------------------


async def test_the_replacement_is_one_of_the_stuck_handlers_own_queue_too() -> None:
    """`slots={"slow": 1}`: one of its jobs at once, beside the one that is stuck."""
    async with open_world() as world:
        crew = Crew(
            world,
            concurrency=3,
            queues=("slow", "default"),
            slots={"slow": 1},
            replacement_slots=1,
        )
        async with crew.run():
            await crew.dispatch("stuck", "s", queue="slow")
            await crew.dispatch("work", "a", "b", queue="slow")
            await crew.dispatch("work", "c", "d", "e")
            assert crew.running == ["s", "c", "d"]
            await world.advance(OVERDUE)
            assert crew.running == ["s", "c", "d", "a"]
            await crew.let("c", "d")
            assert crew.running == ["s", "a", "e"]  # "b" waits for the queue's one slot
            await crew.let("s")
            assert crew.running == ["a", "e"]
            await crew.let("a")
            assert crew.running == ["e", "b"]
            await crew.let_all()


async def test_a_queue_whose_stuck_handlers_are_not_replaced_waits_for_them() -> None:
    """The one replacement is taken by the first; the other queue has its slots."""
    async with open_world() as world:
        crew = Crew(
            world,
            concurrency=4,
            queues=("slow", "default"),
            slots={"slow": 2},
            replacement_slots=1,
        )
        async with crew.run() as handle:
            await crew.dispatch("stuck", "s1", "s2", queue="slow")
            await crew.dispatch("work", "a", "b", queue="slow")
            await world.advance(OVERDUE)
            assert crew.running == ["s1", "s2", "a"]
            assert slots_left(handle) == [4, 3]
            await crew.dispatch("work", "c", "d", "e")
            assert crew.running == ["s1", "s2", "a", "c", "d"]
            await crew.let_all()


# --- health ---------------------------------------------------------------------------------------


async def test_a_worker_that_has_no_slot_left_is_unhealthy_until_a_handler_returns() -> None:
    """Without replacements; the last `JobOverdue` says why, once."""
    async with open_world() as world:
        crew = Crew(world, concurrency=2)
        async with crew.run() as handle:
            await crew.dispatch("stuck", "s1")
            await crew.dispatch("work", "w")
            await world.advance(OVERDUE)
            assert healthy(handle)  # busy, but not for ever
            assert slots_left(handle) == [1]
            await crew.let("w")
            await crew.dispatch("stuck", "s2")
            await world.advance(OVERDUE - 0.3)
            assert healthy(handle)
            await world.advance(0.3)
            assert not healthy(handle)
            [error] = errors_of(handle)
            assert isinstance(error, tenure.JobOverdue)
            assert error.slots_left == 0
            assert "no slot of the worker is left for others" in str(error)
            await crew.dispatch("work", "x")
            await world.advance(600.0)
            assert not healthy(handle)
            assert crew.running == ["s1", "s2"]
            assert errors_of(handle) == []
            await crew.let("s1")
            assert healthy(handle)
            assert crew.running == ["s2", "x"]
            await crew.let_all()


async def test_replacements_that_are_stuck_themselves_make_a_worker_unhealthy() -> None:
    """More are stuck than are made up for, and no slot is left."""
    async with open_world() as world:
        crew = Crew(world, concurrency=1, replacement_slots=1)
        async with crew.run() as handle:
            await crew.dispatch("stuck", "s1", "s2", "s3")
            await world.advance(OVERDUE)
            assert crew.running == ["s1", "s2"]
            assert healthy(handle)
            await world.advance(OVERDUE)
            assert not healthy(handle)
            assert slots_left(handle) == [1, 0]
            await crew.let("s1")
            assert healthy(handle)
            assert crew.running == ["s2", "s3"]
            await world.advance(OVERDUE)
            assert not healthy(handle)
            assert slots_left(handle) == [0]
            await crew.let_all()


async def test_stuck_handlers_do_not_hold_up_a_shutdown_and_nothing_is_started_for_them() -> None:
    """W12, W23: one that becomes overdue during the drain opens no slot."""
    async with open_world() as world:
        crew = Crew(world, concurrency=1, replacement_slots=1, prefetch=1)
        handle = crew.worker.run()
        await crew.dispatch("stuck", "s")
        await crew.dispatch("work", "a", "b")
        stopping = asyncio.create_task(handle.shutdown(20.0))
        await world.advance(OVERDUE)
        assert crew.running == ["s"]
        await world.advance(15.1)
        await world.until(stopping.done)
        assert isinstance(stopping.result(), tenure.JobOverdue)
        assert not handle.running
        counts = await world.queue.counts()
        assert (counts.pending, counts.processing) == (2, 1)
        await crew.let("s")
