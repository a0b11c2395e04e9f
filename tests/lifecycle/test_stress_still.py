"""Start, stop, abort, close, at any step of a worker, by a clock that is moved: all of it ends.

What hypothesis draws is a program of such steps; each run of it ends with the same tasks, threads
and open files as before, and with every job done (I5, W4, W23, W24, W26).
"""

import asyncio
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tenure
from tests.lifecycle.belongings import belongings, wait_for_nothing, wait_on_loop
from tests.runtime.world import World, open_world

LEASE = 5.0
DRAINS = (0.0, 0.3, 2.0)
HELD = ("claim", "record", "exchange", "next_due", "wait", "expired")
MOST_RUNS = 4  # of one worker at once
# What a worker may say of being ended like that. No job is lost by any of it.
SAID = (
    tenure.StateTransitionError,
    tenure.LeaseLost,
    tenure.StoreUnavailable,
    tenure.RuntimeUnavailable,
    tenure.JobOverdue,
    tenure.WorkerTaskError,
)

Step = Callable[["Stress", int], Awaitable[None]]


class Stress:
    """One worker on one queue, and all that was begun with it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.worker = tenure.Worker(
            world.queue, lease=LEASE, poll_interval=1.0, concurrency=2, max_stalls=1000
        )
        self.worker.register("slow", self._slow)
        self.worker.register("quick", self._quick)
        self.worker.register("thread", in_a_thread)
        self.ids: list[str] = []
        self.handles: list[tenure.WorkerHandle] = []
        self.begun: list[asyncio.Future[Any]] = []
        self.gates: list[asyncio.Event] = []

    async def _slow(self, payload: object) -> None:
        await self.world.clock.sleep(0.7)

    async def _quick(self, payload: object) -> None:
        return None

    # --- the steps ------------------------------------------------------------------------------

    async def run(self, number: int) -> None:
        if sum(handle.running for handle in self.handles) < MOST_RUNS:
            self.handles.append(self.worker.run())

    async def shut_down(self, number: int) -> None:
        """Also one that has not come to its first step, is being shut down, or has ended."""
        if self.handles:
            handle = self.handles[number % len(self.handles)]
            call = handle.shutdown(DRAINS[number % len(DRAINS)])
            self.begun.append(asyncio.ensure_future(call))

    async def abort(self, number: int) -> None:
        if self.handles:
            self.handles[number % len(self.handles)].abort()

    async def drop(self, number: int) -> None:
        """Nobody has the handle any more: it aborts."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            self.worker.run()
        await turn(number)

    async def give_up(self, number: int) -> None:
        """A host that is cancelled while it runs a worker."""

        async def host() -> None:
            async with self.worker.run() as handle:
                await handle.wait()

        task = asyncio.ensure_future(host())
        await turn(number)
        task.cancel()
        self.begun.append(task)

    async def dispatch(self, number: int) -> None:
        name = ("slow", "quick", "thread")[number % 3]
        self.ids.append((await self.world.queue.dispatch(name)).id)

    async def turn(self, number: int) -> None:
        await turn(number)

    async def pass_time(self, number: int) -> None:
        await self.world.advance(number / 10)

    async def hold_up(self, number: int) -> None:
        """Let one kind of call wait before the store, or its answers behind it."""
        held = HELD[number % len(HELD)]
        if held not in self.world.driver.hooks:
            self.gates.append(self.world.driver.hold_up(held, after=number % 2 == 0))

    async def let_go(self, number: int) -> None:
        self.world.driver.hooks.clear()
        for gate in self.gates:
            gate.set()

    async def close(self, number: int) -> None:
        """Close the queue under them, and open it again."""
        await self.let_go(number)
        await self.world.run(self.world.queue.close())
        await self.world.queue

    # --- the beginning and the end --------------------------------------------------------------

    async def warm_up(self) -> None:
        """Let the store make all the connections that it ever will."""
        await asyncio.gather(*(self.world.queue.counts() for _ in range(8)))

    async def end(self) -> None:
        """All that was begun ends; what is left to do is done by a worker that nobody stops."""
        await self.let_go(0)
        self.begun += [asyncio.ensure_future(handle.shutdown(0.0)) for handle in self.handles]
        ended = await self.world.run(asyncio.gather(*self.begun, return_exceptions=True))
        wrong = [
            each
            for each in ended
            if isinstance(each, BaseException)
            and not isinstance(each, (*SAID, asyncio.CancelledError))
        ]
        assert wrong == []
        for handle in self.handles:
            assert not handle.running
            while (error := handle.try_next_error()) is not None:
                assert isinstance(error, SAID), repr(error)

    async def finish(self) -> None:
        handle = self.worker.run()
        states = ["not looked at"]
        for _ in range(600):
            await self.world.settle()
            states = [str((await self.world.queue.get(each)).state) for each in self.ids]
            if set(states) <= {"completed"}:
                break
            await asyncio.sleep(0.0005)  # a thread answers at its own pace
            await self.world.advance(0.1)
        assert set(states) <= {"completed"}, states
        await self.world.run(handle.shutdown(0.0))


STEPS: dict[str, Step] = {
    name: getattr(Stress, name)
    for name in (
        *("run", "shut_down", "abort", "drop", "give_up", "dispatch"),
        *("turn", "pass_time", "hold_up", "let_go", "close"),
    )
}


def programs(*left_out: str) -> st.SearchStrategy[list[tuple[str, int]]]:
    names = ["run", "dispatch", *(name for name in STEPS if name not in left_out)]
    step = st.tuples(st.sampled_from(names), st.integers(0, 15))
    return st.lists(step, min_size=2, max_size=16)


async def turn(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def in_a_thread(payload: object) -> None:
    return None


def played(program: list[tuple[str, int]], store: str) -> None:
    """Run the steps, and see that nothing is left of them: on the loop, and after it."""

    async def main(folder: Path) -> None:
        async with open_world(store, folder) as world:
            stress = Stress(world)
            await stress.warm_up()
            before = belongings()
            for name, number in program:
                await STEPS[name](stress, number)
            await stress.end()
            await wait_on_loop(before)
            await stress.finish()
            await wait_on_loop(before)

    outside = belongings()
    with TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
    wait_for_nothing(outside)


FEW = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@settings(FEW, max_examples=200)
@given(programs())
def test_a_worker_may_be_started_and_ended_at_any_step(program: list[tuple[str, int]]) -> None:
    """W4, W23, W24, W26, on the memory store: some five hundred runs."""
    played(program, "memory")


@FEW
@given(programs("close"))  # at which the clock could not tell when a file's threads are at rest
def test_a_worker_on_a_file_may_be_started_and_ended_at_any_step(
    program: list[tuple[str, int]],
) -> None:
    """The same with the threads and files of a store."""
    played(program, "sqlite")
