"""Hints: what another process commits ends a wait, through the log or by asking."""

import asyncio
from pathlib import Path

import pytest

from tenure.drivers.sqlite import inotify
from tests.drivers.sqlite_extras.support import jobs, opened, start_script

ENQUEUE = """
import asyncio, sys
from tenure.clock import SystemClock
from tenure.drivers.sqlite import SqliteDriver
from tenure.types import NewJob

async def main():
    driver = SqliteDriver(sys.argv[1], clock=SystemClock())
    await driver.open()
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(40):  # a wait that begins late misses the first
        await driver.enqueue([NewJob(id=f"theirs-{n}", name="work")])
        await asyncio.sleep(0.05)
    await driver.close()

asyncio.run(main())
"""


def no_watch(path: str) -> int | None:
    return None


@pytest.mark.parametrize("how", ["inotify", "polling"])
async def test_a_commit_of_another_process_ends_a_wait(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "polling":
        monkeypatch.setattr(inotify, "watch", no_watch)  # as on a system that has none
    path = tmp_path / "jobs.db"
    async with opened(path) as driver:
        other = start_script(ENQUEUE, str(path))
        assert other.stdout is not None
        assert other.stdin is not None
        await asyncio.to_thread(other.stdout.readline)
        while await driver.wait(["default"], 0.05):
            pass  # what the other did to open the store
        waiting = asyncio.ensure_future(driver.wait(["default"], 30.0))
        await asyncio.sleep(0)
        other.stdin.write("go\n")
        other.stdin.flush()
        assert await waiting
        await asyncio.to_thread(other.communicate)
        assert await driver.get("theirs-0") is not None


@pytest.mark.parametrize("how", ["inotify", "polling", "memory"])
async def test_a_commit_of_this_process_ends_the_waits_of_all_loops(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "polling":
        monkeypatch.setattr(inotify, "watch", no_watch)
    path = ":memory:" if how == "memory" else tmp_path / "jobs.db"
    async with opened(path) as driver:
        elsewhere = asyncio.to_thread(lambda: asyncio.run(driver.wait(["default"], 30.0)))
        waits = [asyncio.ensure_future(driver.wait(["default"], 30.0)) for _ in range(3)]
        there = asyncio.ensure_future(elsewhere)
        await asyncio.sleep(0)
        turn = 0
        while not there.done():  # its loop may begin to wait after a commit
            await driver.enqueue(jobs(1, f"turn-{turn}"))
            turn += 1
        assert all(await asyncio.gather(*waits))


async def test_a_wait_runs_out_where_nothing_happens(tmp_path: Path) -> None:
    async with opened(tmp_path / "jobs.db") as driver:
        assert not await driver.wait(["default"], 0.01)


async def test_a_cancelled_wait_leaves_nothing_behind(tmp_path: Path) -> None:
    async with opened(tmp_path / "jobs.db") as driver:
        waiting = asyncio.ensure_future(driver.wait(["default"], 30.0))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not await driver.wait(["default"], 0.01)


async def test_closing_ends_a_wait(tmp_path: Path) -> None:
    async with opened(tmp_path / "jobs.db") as driver:
        waiting = asyncio.ensure_future(driver.wait(["default"], 30.0))
        await asyncio.sleep(0)
        await driver.close()
        assert await waiting
