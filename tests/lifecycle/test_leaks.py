"""What a worker has of the jobs that it has run: nothing, however many they were.

Memory, tasks, threads, files and sockets are looked at after a tenth of the jobs and after all.
(With a clock that is moved, and errors that nobody reads: tests/regressions/test_a47_growth.py.)
"""

import asyncio
import gc
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import tenure
from tests.lifecycle.belongings import belongings, wait_for_nothing, wait_on_loop

CHUNK = 1_000
CONCURRENCY = 16
# What is made when more is needed at once, and kept: connections, threads of handlers, who listens.
POOLED = {
    "socket": 8,
    "thread tenure-handler": CONCURRENCY,
    "task _Listener._read_on": 1,
    "task Listener._run": 1,
    "task Claimer._wait": 1,  # for hints, which a worker that is not idle asks for now and then
    "anon_inode": 1,  # of the keeper's loop, from its first extension on: after ten seconds
}
GROWTH = 1_000_000  # bytes of Python's, from a tenth of the jobs to all of them
RESIDENT = 16_000_000  # bytes of the process, of which the allocator may keep some for later


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def of_python() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def of_process() -> int:
    gc.collect()
    resident = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").split("Rss:")[1]
    return int(resident.split()[0]) * 1024


class Mill:
    """A worker that is fed by the chunk, through the queue that it runs on."""

    def __init__(self, queue: tenure.Queue) -> None:
        self.queue = queue
        self.worker = tenure.Worker(
            queue, concurrency=CONCURRENCY, poll_interval=30.0, retention=None
        )
        self.worker.register("quick", self._quick)
        self.worker.register("thread", self._in_a_thread)
        self.begun = 0
        self._left = 0
        self._done = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def _quick(self, payload: object) -> None:
        self._end_one()

    def _in_a_thread(self, payload: object) -> None:
        self._loop.call_soon_threadsafe(self._end_one)

    def _end_one(self) -> None:
        self._left -= 1
        if not self._left:
            self._done.set()

    async def feed(self, until: int) -> None:
        """Chunk by chunk; one job in fifty runs in a thread."""
        while self.begun < until:
            self._left = CHUNK
            self._done.clear()
            await self.queue.dispatch_many(
                [tenure.Call("quick" if n % 50 else "thread", n) for n in range(CHUNK)]
            )
            await self._done.wait()
            self.begun += CHUNK


def milled(url: str, jobs: int, look: "Counter[str]") -> tuple[int, int]:
    """Run so many jobs; what was in use after a tenth of them and after all."""

    async def main() -> tuple[int, int]:
        async with tenure.connect(url) as queue:
            mill = Mill(queue)
            async with mill.worker.run() as handle:
                await mill.feed(jobs // 10)
                before, used = belongings(), measure()
                await mill.feed(jobs)
                after = measure()
                await wait_on_loop(before, POOLED)
                assert handle.try_next_error() is None
            assert mill.begun == jobs == (await queue.counts()).completed
            return used, after

    measure = of_python if tracemalloc.is_tracing() else of_process
    results = asyncio.run(main())
    wait_for_nothing(look)
    return results


@pytest.mark.usefixtures("traced")
def test_ten_thousand_jobs_leave_nothing_in_the_process(url: str) -> None:
    before, after = milled(url, 10_000, belongings())
    assert after - before < GROWTH, f"grew by {after - before} bytes"


@pytest.mark.slow
def test_a_hundred_thousand_jobs_leave_nothing_in_the_process(tmp_path: Path) -> None:
    """On a file, by the memory of the whole process, that of the database's cache with it."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=NORMAL"
    before, after = milled(url, 100_000, belongings())
    assert after - before < RESIDENT, f"grew by {after - before} bytes"
