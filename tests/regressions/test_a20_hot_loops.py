"""A20: with the broker offline the receiver tried again at full speed, at 100 % CPU.

The kind of fault: a loop without a wait where something fails. Here every loop of a worker waits
between its tries, ever longer and with jitter, up to a cap within which it resumes.

https://github.com/taskiq-python/taskiq/issues/480
"""

import asyncio
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Generator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import pytest

import tenure
from tenure.driver import Driver
from tenure.testing.faults import Relay
from tests.regressions.beside import Beside, beside
from tests.regressions.sites import Opening, live_site, still_site
from tests.regressions.standing import standing_checks
from tests.regressions.watched import Watched

T = TypeVar("T")

OUTAGE = 10.0  # seconds; where the clock is not ours, a part of it
CAP = 6.0  # seconds within which it resumes
SHARE = 0.15  # of a core, in which the relay has its part; 5 % in the recipe
TRIES = 25  # calls of one loop that failed; the recipe has 20 of a whole connection


def quick(payload: object) -> None:
    return None


@pytest.mark.parametrize("poll", [0.5, 60.0])
async def test_every_loop_waits_between_calls_that_fail(open_site: Opening, poll: float) -> None:
    """W8, W16: nothing answers; each operation is tried a few times, and all is well afterwards."""
    async with open_site() as site:
        queue, faults = await beside(site)
        async with queue:
            gate = asyncio.Event()

            async def wait(payload: object) -> None:
                await gate.wait()

            # However long its polls are, it resumes within the cap.
            watched = Watched(queue, {"lease": 60.0, "poll_interval": poll})
            watched.register("wait", wait)
            jobs = await site.queue.dispatch_many([tenure.Call("wait") for _ in range(3)])

            async def started() -> bool:
                return (await site.queue.counts()).processing == len(jobs)

            async with watched.running() as handle:
                await site.until(started, lambda: "they are not started")
                operations = ["claim", "exchange", "record", "extend", "expired", "reclaim"]
                operations += ["next_due", "wait", "prune", "report", "fire", "schedules"]
                plan = faults.fail(*operations, times=None)
                before = len(faults.calls)
                gate.set()  # so that there is something to record
                begun = site.clock.monotonic()
                outage = OUTAGE if site.still else OUTAGE / 4
                await site.until_true(
                    lambda: site.clock.monotonic() - begun >= outage, lambda: "time stands still"
                )
                tries = Counter(faults.calls[before:])
                assert max(tries.values()) <= TRIES, tries
                assert handle.running
                plan.lift()
                after = await site.queue.dispatch("wait")
                ids = [*(job.id for job in jobs), after.id]
                await site.until_state("completed", *ids, seconds=CAP)
                await standing_checks(
                    site, watched, ids=ids, swallowed={"StoreUnavailable": range(3, 8 * TRIES)}
                )


class Timed(Beside):
    """Keeps when each call began."""

    def __init__(self, inner: Driver, clock: tenure.Clock) -> None:
        super().__init__(inner, clock=clock)
        self._now = clock.monotonic
        self.begun: defaultdict[str, list[float]] = defaultdict(list)

    async def around(self, operation: str, call: Callable[[], Awaitable[T]]) -> T:
        self.begun[operation].append(self._now())
        return await super().around(operation, call)


@pytest.mark.store("memory")
async def test_pauses_grow_up_to_a_cap_and_no_two_workers_keep_step(tmp_path: Path) -> None:
    """W8: by a clock that stands still, to the instant; of two workers that began together."""
    async with still_site("memory", tmp_path) as site:
        driver = await site.driver()
        both = [Timed(driver, site.clock) for _ in range(2)]
        queues = [tenure.Queue(each, clock=site.clock) for each in both]
        workers = [Watched(queue, {"lease": 60.0, "poll_interval": 0.5}) for queue in queues]
        async with workers[0].running(), workers[1].running():
            await site.skip(1.0)
            for each in both:
                each.fail("claim", "exchange", times=None)
                each.begun.clear()
            await site.skip(60.0)
            times = [each.begun["claim"] for each in both]
            for tries in times:
                pauses = [after - before for before, after in pairwise(tries)]
                assert 5 <= len(pauses) <= 40
                assert max(pauses) <= CAP
                assert min(pauses) >= 0.05
                assert sum(pauses[-3:]) > 2 * sum(pauses[:3]), pauses
                assert len(set(pauses)) > len(pauses) / 2, f"no jitter: {pauses}"
            assert len(set(times[0]) & set(times[1])) <= 2
            for each in both:
                each.calm()
            told = {"StoreUnavailable": range(2, 81)}
            await standing_checks(site, *workers, ids=[], swallowed=told)
        for queue in queues:
            await queue.close()


@pytest.mark.store("sqlite")
async def test_a_file_that_is_locked_is_tried_ever_less_often(tmp_path: Path) -> None:
    """Another program keeps the lock of SQLite, and a call gives up after a twentieth second."""
    path = tmp_path / "jobs.db"
    async with live_site(f"sqlite:///{path}?synchronous=NORMAL&busy_timeout=0.05") as site:
        queue, faults = await beside(site)
        watched = Watched(queue, {"lease": 30.0, "poll_interval": 0.5})
        watched.register("quick", quick)
        async with queue, watched.running():
            first = await site.queue.dispatch("quick")
            await site.until_state("completed", first.id)
            before = len(faults.calls)
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                with little_work():
                    await site.clock.sleep(OUTAGE / 4)
                tries = Counter(faults.calls[before:])
                assert max(tries.values()) <= TRIES, tries
                other.execute("ROLLBACK")
            last = await site.queue.dispatch("quick")
            await site.until_state("completed", last.id, seconds=CAP)
            told = {"StoreUnavailable": range(1, 51)}
            await standing_checks(site, watched, ids=[first.id, last.id], swallowed=told)


@contextmanager
def little_work() -> Generator[None]:
    """The processor of this process has hardly anything to do meanwhile."""
    used, begun = time.process_time(), time.monotonic()
    yield
    share = (time.process_time() - used) / (time.monotonic() - begun)
    assert share < SHARE, f"{share:.0%} of a core"


@pytest.mark.parametrize("how", ["refuse", "turn away"])
@pytest.mark.parametrize("store", ["redis", "postgres"])
async def test_a_port_that_is_closed_or_hangs_up_is_asked_ever_less_often(
    store: str, how: str, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    """The drivers neither connect in a loop of their own."""
    server: Any = request.getfixturevalue(f"{store}_server")
    name = f"a20_{how.replace(' ', '_')}"
    option = f"?namespace={name}" if store == "redis" else f"?schema={name}"
    async with Relay("127.0.0.1", server.port) as relay:
        through = server.url.replace(f":{server.port}", f":{relay.port}")
        async with live_site(through + option) as site:
            watched = site.worker(lease=30.0)
            watched.register("quick", quick)
            async with watched.running():
                first = await site.queue.dispatch("quick")
                await site.until_state("completed", first.id)
                before = relay.accepted
                relay.refuse() if how == "refuse" else relay.turn_away()
                relay.cut()
                caplog.clear()
                with little_work():
                    await site.clock.sleep(OUTAGE / 4)
                assert len(caplog.records) <= 50
                tries = relay.accepted - before
                assert tries <= 25, "connections were tried all the time"
                relay.restore()
                last = await site.queue.dispatch("quick")
                await site.until_state("completed", last.id, seconds=CAP)
                await standing_checks(
                    *(site, watched),
                    ids=[first.id, last.id],
                    swallowed={"StoreUnavailable": range(1, 51)},
                )


@pytest.mark.store("sqlite")
async def test_a_file_that_cannot_be_read_is_tried_ever_less_often(tmp_path: Path) -> None:
    """There is a folder in its place, as good as a file without permissions, also for root."""
    path, aside = tmp_path / "jobs.db", tmp_path / "aside"
    url = f"sqlite:///{path}"
    async with live_site(url) as site:
        first = await site.queue.dispatch("quick")
    for name in ("", "-wal", "-shm"):
        beside_it = path.with_name(path.name + name)
        if beside_it.exists():
            beside_it.rename(aside.with_name(aside.name + name))
    path.mkdir()
    clock = tenure.SystemClock()
    queue = tenure.connect(url, clock=clock)
    watched = Watched(queue, {"lease": 30.0, "poll_interval": 0.5})
    watched.register("quick", quick)
    async with watched.running() as handle:
        with little_work():
            await clock.sleep(OUTAGE / 4)
        assert handle.running
        path.rmdir()
        for name in ("", "-wal", "-shm"):
            kept = aside.with_name(aside.name + name)
            if kept.exists():
                kept.rename(path.with_name(path.name + name))
        async with live_site(url) as site:
            await site.until_state("completed", first.id, seconds=2 * CAP)
            told = {"StoreUnavailable": range(1, 2 * TRIES)}
            await standing_checks(site, watched, ids=[first.id], swallowed=told)
    await queue.close()
