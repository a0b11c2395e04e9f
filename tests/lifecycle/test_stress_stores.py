"""Start, stop, abort, close on real stores, many times over: nothing of it stays behind.

Tasks, threads, open files and sockets are counted before and after (W4, W23, W24, W26).
"""

import asyncio
import threading
import warnings
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from itertools import cycle
from random import Random

import pytest

import tenure
from tenure.driver import Capability, Driver, KeeperHandle
from tenure.testing.faults import Relay
from tests.lifecycle.belongings import belongings, wait_for_nothing, wait_on_loop
from tests.servers.redis import RedisServer

ROUNDS = 60
CONNECTIONS = {"socket": 8}  # that a pool makes when more are needed at once
LIVES = 20  # of a queue, in each thread
THREADS = 3
DRAIN = 1.0


# --- how a run of a worker may end ----------------------------------------------------------------

End = Callable[[tenure.Queue, tenure.WorkerHandle], Awaitable[object]]


async def at_once(queue: tenure.Queue, handle: tenure.WorkerHandle) -> None:
    await handle.shutdown(0.0)


async def drained(queue: tenure.Queue, handle: tenure.WorkerHandle) -> None:
    await handle.shutdown(DRAIN)


async def twice(queue: tenure.Queue, handle: tenure.WorkerHandle) -> None:
    await asyncio.gather(handle.shutdown(DRAIN), handle.shutdown(0.0))
    await handle.shutdown(0.0)


async def aborted(queue: tenure.Queue, handle: tenure.WorkerHandle) -> None:
    handle.abort()
    handle.abort()


async def aborted_while_it_ends(queue: tenure.Queue, handle: tenure.WorkerHandle) -> None:
    ending = asyncio.ensure_future(handle.shutdown(DRAIN))
    await asyncio.sleep(0)
    handle.abort()
    await ending


async def closed(queue: tenure.Queue, handle: tenure.WorkerHandle) -> None:
    """The queue is closed under it, and opened again by whoever needs it."""
    await queue.close()
    await handle.wait()
    await queue


async def given_up(queue: tenure.Queue, handle: tenure.WorkerHandle) -> None:
    """Its host is cancelled in the context manager."""

    async def host() -> None:
        async with handle:
            await handle.wait()

    task = asyncio.ensure_future(host())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])


ENDS: list[End] = [at_once, drained, twice, aborted, aborted_while_it_ends, closed, given_up]


async def quick(payload: object) -> None:
    return None


async def lasting(payload: object) -> None:
    await asyncio.sleep(0.02)


def in_a_thread(payload: object) -> None:
    return None


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of a worker that is given up
def test_many_runs_of_a_worker_leave_nothing(url: str) -> None:
    """Each is ended at some other instant, in every way that there is, with jobs under way."""
    outside = belongings()

    async def main() -> None:
        draw = Random(url.partition(":")[0])
        async with tenure.connect(url) as queue:
            worker = tenure.Worker(queue, lease=5.0, poll_interval=0.2, max_stalls=1000)
            for name, handler in [("quick", quick), ("lasting", lasting), ("thread", in_a_thread)]:
                worker.register(name, handler)
            driver = await queue.driver()
            await one_run(queue, worker, draw, drained)
            before = await listening(driver)
            for _, end in zip(range(ROUNDS), cycle(ENDS), strict=False):
                await one_run(queue, worker, draw, end)
            await wait_on_loop(before, CONNECTIONS)

    asyncio.run(main())
    wait_for_nothing(outside)


async def listening(driver: Driver) -> Counter[str]:
    """What there is once the driver has all that it needs to hear of jobs: nothing is added."""
    before = belongings()
    calm = 0
    async with asyncio.timeout(5.0):
        while calm < 5:
            await driver.wait(["default"], 0.05)
            found = belongings()
            calm = calm + 1 if found == before else 0
            before = found
    return before


async def one_run(queue: tenure.Queue, worker: tenure.Worker, draw: Random, end: End) -> None:
    names = ("quick", "lasting", "thread")
    await queue.dispatch_many([tenure.Call(draw.choice(names)) for _ in range(5)])
    handle = worker.run()
    if draw.random() < 0.5:
        for _ in range(draw.randrange(30)):
            await asyncio.sleep(0)
    else:
        await asyncio.sleep(draw.uniform(0.0, 0.05))
    async with asyncio.timeout(DRAIN + 5.0):
        await end(queue, handle)
        await handle.wait()
    assert not handle.running


# --- queues ---------------------------------------------------------------------------------------


def in_threads(life: Callable[[], Coroutine[object, object, None]], times: int) -> None:
    """Run it in several threads at once, so many times in each; what one raises is raised here."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            for _ in range(times):
                asyncio.run(life())
        except BaseException as error:  # told by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert not any(thread.is_alive() for thread in threads), "it hangs"
    if failures:
        raise failures[0]


def test_queues_of_one_store_are_opened_and_closed_in_many_loops(url: str) -> None:
    """Each with a loop of its own, one after the other in each thread; twice in one loop."""
    ids: list[str] = []

    async def life() -> None:
        queue = tenure.connect(url)
        await queue.close()  # before it was ever opened
        async with queue:
            ids.append((await queue.dispatch("work")).id)
        await queue.close()
        async with queue:
            ids.append((await queue.dispatch("work")).id)

    asyncio.run(life())  # what the first opening of a store makes
    outside = belongings()
    in_threads(life, LIVES // 2)
    wait_for_nothing(outside)

    async def stored() -> int:
        async with tenure.connect(url) as queue:
            return (await queue.counts()).pending

    assert asyncio.run(stored()) == len(ids) == len(set(ids))


def test_one_queue_is_opened_and_closed_by_many_loops_at_once(url: str) -> None:
    """Whoever closes it closes it for all: they are told so, and nothing hangs or stays open."""
    queue = tenure.connect(url)
    asyncio.run(queue.close())
    outside = belongings()

    async def life() -> None:
        try:
            async with queue:
                await queue.dispatch("work")
        except (tenure.RuntimeUnavailable, tenure.StoreUnavailable):
            return  # it was closed meanwhile

    in_threads(life, LIVES)
    asyncio.run(queue.close())
    wait_for_nothing(outside)


# --- parts ----------------------------------------------------------------------------------------


def test_lifelines_are_tied_given_up_and_cut_without_end(url: str) -> None:
    """One that is cut, then closed; one that is closed twice; many at once."""
    outside = belongings()

    async def main() -> None:
        async with tenure.connect(url) as queue:
            driver = await queue.driver()
            if Capability.LIFELINE not in driver.capabilities:
                return

            async def one(number: int) -> None:
                lifeline = await driver.lifeline(f"worker-{number}")
                assert lifeline is not None
                if number % 3 == 0:
                    await lifeline.cut()
                await lifeline.close()
                await lifeline.close()

            await one(1)
            before = belongings()
            for turn in range(10):
                await asyncio.gather(*(one(turn * 4 + each) for each in range(4)))
            await wait_on_loop(before)

    asyncio.run(main())
    wait_for_nothing(outside)


def test_keepers_of_threads_that_end_leave_nothing(url: str) -> None:
    """Each asks from its thread; some are closed at once, some twice."""
    outside = belongings()

    async def main() -> None:
        async with tenure.connect(url) as queue:
            driver = await queue.driver()

            def keep() -> None:
                handle: KeeperHandle = driver.keeper_handle()
                hold = tenure.Hold(job_id="none", serial=1, token="t")
                assert list(handle.extend([hold], 5.0)) == [tenure.Kept.LOST]
                handle.close()
                handle.close()
                driver.keeper_handle().close()

            await asyncio.to_thread(keep)
            before = belongings()
            for _ in range(20):
                await asyncio.to_thread(keep)
            await wait_on_loop(before)

    asyncio.run(main())
    wait_for_nothing(outside)


def test_waits_for_jobs_end_with_whoever_waits(url: str) -> None:
    """Cancelled before the first step, in the middle, and run out."""
    outside = belongings()

    async def main() -> None:
        async with tenure.connect(url) as queue:
            driver = await queue.driver()
            before = await listening(driver)
            for turns in range(30):
                waiting = asyncio.ensure_future(driver.wait(["default"], 0.05))
                for _ in range(turns):
                    await asyncio.sleep(0)
                waiting.cancel()
                await asyncio.wait([waiting])
            await asyncio.gather(*(driver.wait(["default"], 0.05) for _ in range(10)))
            await wait_on_loop(before, CONNECTIONS)

    asyncio.run(main())
    wait_for_nothing(outside)


def test_a_close_that_is_cancelled_leaves_nothing(url: str) -> None:
    """At whichever of its steps: who has no time to wait for a store gives it up all the same."""
    outside = belongings()

    async def main() -> None:
        before = belongings()
        for turns in range(1, 30):
            queue = await tenure.connect(url)
            driver = await queue.driver()
            waits = [
                asyncio.ensure_future(driver.wait([name], 30.0)) for name in ("default", "other")
            ]
            await asyncio.gather(*(queue.counts() for _ in range(3)), asyncio.sleep(0.01))
            closing = asyncio.ensure_future(queue.close())
            for _ in range(turns):
                await asyncio.sleep(0)
            closing.cancel()
            await asyncio.wait([closing])
            for wait in waits:
                wait.cancel()
            await asyncio.wait(waits)
            await wait_on_loop(before)

    asyncio.run(main())
    wait_for_nothing(outside)


async def test_relays_are_opened_and_closed_with_connections_through_them(
    redis_server: RedisServer,
) -> None:
    """Idle, in the middle of a call, cut, and refusing."""
    before = belongings()
    for number in range(20):
        async with Relay("127.0.0.1", redis_server.port) as relay:
            reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
            if number % 2:
                writer.write(b"PING\r\n")
                assert await reader.readline() == b"+PONG\r\n"
            if number % 3 == 1:
                relay.cut()
            if number % 3 == 2:
                relay.freeze()
                relay.refuse()
        writer.close()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            await asyncio.wait([asyncio.ensure_future(writer.wait_closed())])
    await wait_on_loop(before)
