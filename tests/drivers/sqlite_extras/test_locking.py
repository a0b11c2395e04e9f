"""Another process at the same file: its locks are waited out, up to the busy timeout."""

import asyncio
import os
import sqlite3
import threading
from pathlib import Path

import pytest

from tenure.clock import SystemClock
from tenure.drivers.sqlite.connection import Settings
from tenure.drivers.sqlite.engine import Engine
from tenure.drivers.sqlite.enqueue import enqueue
from tenure.drivers.sqlite.inspection import counts
from tenure.errors import StoreUnavailable
from tenure.types import Kept
from tests.drivers.sqlite_extras.support import claim, jobs, opened, start_script

HOLD = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
time.sleep(1)
connection.execute("COMMIT")
connection.close()
"""


async def test_callers_do_not_see_a_lock_that_is_held_for_a_second(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    async with opened(path) as driver:
        await driver.enqueue(jobs(1))
        held = await claim(driver)
        holder = start_script(HOLD, str(path))
        assert holder.stdout is not None
        await asyncio.to_thread(holder.stdout.readline)
        keeper = driver.keeper_handle()
        kept = asyncio.to_thread(keeper.extend, [claimed.hold for claimed in held], 60.0)
        stored, answers, job = await asyncio.gather(
            driver.enqueue(jobs(3, "more")), kept, driver.get("job-0")
        )
        assert (len(stored), answers) == (3, [Kept.KEPT])
        assert job is not None
        await asyncio.to_thread(holder.communicate)
        assert holder.returncode == 0


async def test_a_lock_held_beyond_the_busy_timeout_is_store_unavailable(tmp_path: Path) -> None:
    """Definite: nothing was done (I15). Reads go on meanwhile."""
    path = tmp_path / "jobs.db"
    async with opened(path, busy_timeout=0.05) as driver:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="busy_timeout") as caught:
            await driver.enqueue(jobs(1))
        assert not caught.value.ambiguous
        assert await driver.get("job-0") is None
        other.execute("ROLLBACK")
        other.close()
        await driver.enqueue(jobs(1))
        assert await driver.get("job-0") is not None


async def test_a_full_disk_is_store_unavailable_and_leaves_no_trace(tmp_path: Path) -> None:
    """A database that may not grow stands in for the disk: SQLite gives the same error."""
    settings = Settings(
        path=str(tmp_path / "jobs.db"), synchronous="NORMAL", busy_timeout=5.0, migrate=True
    )
    engine = Engine(settings, SystemClock())
    await engine.open()
    await engine.write(enqueue(jobs(1), None))
    await engine.write(lambda transaction: transaction.rows("PRAGMA max_page_count = 1"))
    with pytest.raises(StoreUnavailable, match="no room") as caught:
        await engine.write(enqueue(jobs(5000, "large"), None))
    assert not caught.value.ambiguous
    assert (await engine.read(counts(None))).pending == 1
    await engine.close()


def test_a_child_of_a_fork_has_connections_of_its_own(tmp_path: Path) -> None:
    """Four children store jobs while the parent goes on; nothing is lost or damaged."""
    path = str(tmp_path / "jobs.db")
    for turn in range(3):
        process = start_script(FORK, path, str(turn))
        output, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert output == f"{(turn + 1) * 500} ok\n", errors


FORK = """
import asyncio, os, sqlite3, sys, threading
from tenure.clock import SystemClock
from tenure.drivers.sqlite import SqliteDriver
from tenure.types import NewJob

path, turn = sys.argv[1:]
driver = SqliteDriver(path, synchronous="NORMAL", clock=SystemClock())

async def store(who):
    for n in range(100):
        await driver.enqueue([NewJob(id=f"{turn}-{who}-{n}", name="work")])
    assert await driver.get(f"{turn}-{who}-99") is not None

async def begin():
    await driver.open()
    await driver.counts()

asyncio.run(begin())
parent = threading.Thread(target=lambda: asyncio.run(store("parent")))
parent.start()
children = []
for number in range(4):
    pid = os.fork()
    if pid == 0:
        asyncio.run(store(f"child{number}"))
        asyncio.run(driver.close())
        os._exit(0)
    children.append(pid)
for pid in children:
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
parent.join()
asyncio.run(driver.close())
connection = sqlite3.connect(path)
stored = connection.execute("SELECT count(*) FROM tenure_jobs").fetchone()[0]
print(stored, connection.execute("PRAGMA integrity_check").fetchone()[0])
connection.close()
"""


def test_a_child_that_never_uses_the_store_harms_nothing(tmp_path: Path) -> None:
    """It ends as programs do, finalizers and all, in the middle of its parent's work."""
    script = """
import asyncio, gc, os, sys
from tenure.clock import SystemClock
from tenure.drivers.sqlite import SqliteDriver
from tenure.types import NewJob

driver = SqliteDriver(sys.argv[1], clock=SystemClock())

async def begin():
    await driver.open()
    await driver.wait(["default"], 0)
    await driver.counts()

async def go_on():
    await driver.enqueue([NewJob(id="a", name="work")])
    assert (await driver.counts()).pending == 1
    await driver.close()

asyncio.run(begin())
pid = os.fork()
if pid == 0:
    del driver
    gc.collect()
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
asyncio.run(go_on())
print("parent")
"""
    process = start_script(script, str(tmp_path / "jobs.db"))
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, "parent\n"), errors


def test_a_store_in_memory_stays_with_its_process() -> None:
    script = """
import asyncio, os
from tenure.clock import SystemClock
from tenure.drivers.sqlite import SqliteDriver
from tenure.errors import StoreError

driver = SqliteDriver(":memory:", clock=SystemClock())
asyncio.run(driver.open())
pid = os.fork()
if pid == 0:
    try:
        asyncio.run(driver.get("a"))
    except StoreError as error:
        print(error, flush=True)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
asyncio.run(driver.close())
"""
    process = start_script(script)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "belongs to the process that opened it" in output


async def test_two_event_loops_in_two_threads_share_a_driver(tmp_path: Path) -> None:
    async with opened(tmp_path / "jobs.db") as driver:

        async def work(who: str) -> list[str]:
            taken: list[str] = []
            for n in range(50):
                await driver.enqueue(jobs(2, f"{who}-{n}"))
                taken += [claimed.job.id for claimed in await claim(driver, 2, token=f"{who}{n}")]
            return taken

        def run(who: str) -> None:
            results.append(asyncio.run(work(who)))

        results: list[list[str]] = []
        threads = [threading.Thread(target=run, args=(who,)) for who in ("one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join, 30.0)
        taken = [job_id for result in results for job_id in result]
        assert len(taken) == len(set(taken)) == 200
        assert (await driver.counts()).processing == 200


async def test_a_bad_call_in_a_group_harms_only_itself(tmp_path: Path) -> None:
    """The bad id cannot be written at all; the calls queued with it are answered and stored."""
    async with opened(tmp_path / "jobs.db") as driver:
        calls = [driver.enqueue([job]) for job in jobs(20)]
        bad = jobs(1, "bad-\ud800")
        answers = await asyncio.gather(
            *calls[:10], driver.enqueue(bad), *calls[10:], return_exceptions=True
        )
        assert isinstance(answers[10], UnicodeEncodeError)
        assert [answer for n, answer in enumerate(answers) if n != 10] == [["created"]] * 20
        assert (await driver.counts()).pending == 20


async def test_a_cancelled_call_does_not_disturb_the_others(tmp_path: Path) -> None:
    async with opened(tmp_path / "jobs.db") as driver:
        calls = [asyncio.ensure_future(driver.enqueue([job])) for job in jobs(20)]
        await asyncio.sleep(0)
        calls[7].cancel()
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(answers[7], asyncio.CancelledError)
        assert (await driver.counts()).pending in (19, 20)


def test_descriptors_are_given_back(tmp_path: Path) -> None:
    """Opening, waiting and closing again and again keeps no descriptor."""

    async def once() -> None:
        async with opened(tmp_path / "jobs.db") as driver:
            await driver.wait(["default"], 0)
            await driver.counts()

    asyncio.run(once())
    before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    for _ in range(5):
        asyncio.run(once())
    after = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    assert after == before
