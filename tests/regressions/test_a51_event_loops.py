"""A51: a queue made in one event loop and used in another failed at random.

The kind of fault: what belongs to one loop, met on another. Here a queue opens once for each loop
that uses it. What it has open there is closed with the queue, or by `asyncio.run` with the loop.

https://github.com/tobymao/saq/issues/187
"""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

import tenure
from tests.lifecycle.belongings import belongings, wait_for_nothing
from tests.regressions.sites import LEASE
from tests.regressions.watched import Watched


@pytest.fixture(params=["memory", "sqlite", "redis", "postgres"])
def queue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tenure.Queue]:
    """A queue of a module: made outside of any loop, opened by whoever uses it."""
    own = f"a51_{uuid4().hex}"
    if request.param == "redis":
        url = f"{request.getfixturevalue('redis_server').url}?namespace={own}"
    elif request.param == "postgres":
        url = f"{request.getfixturevalue('postgres_server').url}?schema={own}"
    elif request.param == "memory":
        url = "memory://"
    else:
        url = f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=NORMAL"
    queue = tenure.connect(url)
    yield queue
    asyncio.run(queue.close())


async def dispatch(queue: tenure.Queue, number: int) -> str:
    return (await queue.dispatch("work", number)).id


def test_one_loop_after_the_other(queue: tenure.Queue) -> None:
    """Two runs, each with a loop of its own, which is closed in between; nothing hangs or stays."""
    asyncio.run(warmed_up(queue))
    before = belongings()
    ids = [asyncio.run(dispatch(queue, number)) for number in range(2)]

    async def look() -> list[int]:
        return [(await queue.get(job_id)).payload for job_id in ids]

    assert asyncio.run(look()) == [0, 1]
    wait_for_nothing(before)
    asyncio.run(queue.close())
    asyncio.run(reopened(queue))
    asyncio.run(queue.close())


async def warmed_up(queue: tenure.Queue) -> None:
    """What one store has for all loops is there."""
    await dispatch(queue, -1)
    await queue.counts()


async def reopened(queue: tenure.Queue) -> None:
    """After a close that had no open connection of the loops of before to close."""
    await queue
    await dispatch(queue, 2)


def test_a_worker_on_one_loop_and_who_dispatches_on_another(queue: tenure.Queue) -> None:
    """At the same time, in two threads; each job is run once, on the worker's loop."""
    ran: list[int] = []
    threads: set[int] = set()
    ready, enough = threading.Event(), threading.Event()
    watched = Watched(queue, {"lease": LEASE, "poll_interval": 0.5})

    async def work(number: int) -> None:
        threads.add(threading.get_ident())
        ran.append(number)
        if len(ran) == 20:
            enough.set()

    watched.register("work", work)

    async def serve() -> tenure.QueueError | None:
        async with watched.running() as handle:
            ready.set()
            while not enough.is_set():  # noqa: ASYNC110  # set in this thread; a look is enough
                await asyncio.sleep(0.01)
            return await handle.shutdown(drain=5.0)

    async def bounded() -> None:
        async with asyncio.timeout(30.0):
            assert await serve() is None

    failures: list[BaseException] = []

    def host() -> None:
        try:
            asyncio.run(bounded())
        except BaseException as error:  # told by the test's own thread
            failures.append(error)
            ready.set()
            raise

    thread = threading.Thread(target=host)
    thread.start()
    ready.wait(30.0)

    async def produce() -> list[str]:
        return [await dispatch(queue, number) for number in range(20)]

    ids = asyncio.run(produce())
    thread.join(40.0)
    assert not thread.is_alive()
    assert failures == []
    assert sorted(ran) == list(range(20))
    assert threads == {thread.ident}

    async def states() -> set[str]:
        return {(await queue.get(job_id)).state for job_id in ids}

    assert asyncio.run(states()) == {"completed"}
    assert watched.reported == {}
