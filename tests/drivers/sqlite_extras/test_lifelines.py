"""Lifelines in a folder beside the database: who is seen to be gone, and what is left of it."""

import asyncio
import fcntl
import gc
import os
import signal
import sqlite3
from pathlib import Path

import pytest

from tenure.clock import SystemClock
from tenure.drivers.sqlite import SqliteDriver
from tenure.drivers.sqlite.engine import Engine
from tenure.errors import StoreUnavailable
from tests.drivers.sqlite_extras.support import claim, jobs, opened, start_script

TIED = """
import asyncio, os, sys, time
from tenure.clock import SystemClock
from tenure.drivers.sqlite import SqliteDriver
from tenure.drivers.sqlite.engine import Engine
from tests.drivers.sqlite_extras.support import claim, jobs

async def main():
    driver = SqliteDriver(sys.argv[1], synchronous="NORMAL", clock=SystemClock())
    await driver.open()
    lifeline = await driver.lifeline("w")
    await driver.enqueue(jobs(3))
    await claim(driver)
    child = os.fork() if sys.argv[2:] else None
    if child == 0:
        time.sleep(60)
        os._exit(0)
    print(child, flush=True)
    time.sleep(60)

asyncio.run(main())
"""


def folder_of(path: Path) -> Path:
    return Path(f"{path}-workers")


def files(path: Path) -> list[str] | None:
    """The names in the folder; None where there is none."""
    folder = folder_of(path)
    return sorted(os.listdir(folder)) if folder.exists() else None


def rights(folder: Path) -> list[int]:
    """Of a folder and of what is in it."""
    return [file.stat().st_mode & 0o777 for file in (folder, *folder.iterdir())]


async def killed(path: Path, *arguments: str) -> int:
    """Let a process hold three jobs and a lifeline, and kill it; the pid of its child, or 0."""
    process = start_script(TIED, str(path), *arguments)
    assert process.stdout is not None
    line = await asyncio.to_thread(process.stdout.readline)
    process.kill()
    await asyncio.to_thread(process.wait)
    for pipe in (process.stdin, process.stdout, process.stderr):
        assert pipe is not None
        pipe.close()
    return int(line) if arguments else 0


async def test_a_process_that_was_killed_is_seen_to_be_gone_until_nothing_of_it_is_left(
    tmp_path: Path,
) -> None:
    """Whoever reclaims for it may be killed too: only then is its file removed."""
    path = tmp_path / "jobs.db"
    await killed(path)
    async with opened(path) as driver:
        for _ in range(2):
            assert await driver.shorten() == 0.0
            assert len(files(path) or []) == 1
        found = await driver.expired(10)
        assert [entry.lease for entry in found.holds] == [0.0] * 3
        assert len(await driver.reclaim(10, [0.0])) == 3
        assert await driver.shorten() is None
        assert files(path) is None


async def test_a_child_that_lives_on_does_not_keep_its_parent_alive(tmp_path: Path) -> None:
    """Section 3, fork: the child has closed its copy."""
    path = tmp_path / "jobs.db"
    child = await killed(path, "fork")
    try:
        async with opened(path) as driver:
            assert await driver.shorten() == 0.0
    finally:
        os.kill(child, signal.SIGKILL)


async def test_a_living_worker_is_seen_to_live_by_every_driver(tmp_path: Path) -> None:
    """I6: the lock keeps out whoever opens the file, also in the same process."""
    path = tmp_path / "jobs.db"
    async with opened(path) as one, opened(path) as two:
        lifeline = await one.lifeline("w")
        assert lifeline is not None
        await one.enqueue(jobs(1))
        await claim(one)
        assert await one.shorten() is None
        assert await two.shorten() is None
        await lifeline.cut()
        assert await two.shorten() == 0.0


async def test_a_lifeline_that_is_given_up_or_dropped_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    async with opened(path) as driver:
        first, second = await driver.lifeline("a"), await driver.lifeline("b")
        assert first is not None
        assert second is not None
        assert len(files(path) or []) == 2
        await first.close()
        await first.close()
        assert [name.partition("@")[0] for name in files(path) or []] == ["b"]
        del second
        gc.collect()
        assert files(path) is None


async def test_the_look_opens_no_transaction_while_nobody_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path / "jobs.db") as driver:
        lifeline = await driver.lifeline("w")
        assert lifeline is not None
        monkeypatch.delattr(Engine, "write")
        assert await driver.shorten() is None
        monkeypatch.undo()
        await lifeline.close()


async def test_a_look_that_fails_is_made_up_for_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    await killed(path)
    async with opened(path, busy_timeout=0.05) as driver:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable):
            await driver.shorten()
        other.execute("ROLLBACK")
        other.close()
        assert await driver.shorten() == 0.0


async def test_nothing_is_concluded_from_a_file_of_another_boot_or_host(tmp_path: Path) -> None:
    """I6: its lock means nothing here. After a day it is removed."""
    path = tmp_path / "jobs.db"
    async with opened(path) as driver:
        await driver.enqueue(jobs(1))
        await claim(driver)
        stranger = folder_of(path) / "w@another"
        stranger.parent.mkdir()
        stranger.touch()
        assert await driver.shorten() is None
        assert files(path) == ["w@another"]
        os.utime(stranger, (0, 0))
        assert await driver.shorten() is None
        assert files(path) is None
        assert (await driver.counts()).processing == 1


async def test_both_names_of_a_linked_file_have_one_folder(tmp_path: Path) -> None:
    path, link = tmp_path / "jobs.db", tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    async with opened(path) as one:
        link.symlink_to(path)
        async with opened(link) as two:
            lifeline = await two.lifeline("w")
            assert lifeline is not None
            await two.enqueue(jobs(1))
            await claim(two)
            await lifeline.cut()
            assert await one.shorten() == 0.0
    assert os.listdir(link.parent) == [link.name]


@pytest.mark.parametrize(("mode", "folder"), [(0o600, 0o700), (0o660, 0o770), (0o644, 0o755)])
async def test_who_may_use_the_database_may_use_the_folder(
    tmp_path: Path, mode: int, folder: int
) -> None:
    path = tmp_path / "jobs.db"
    async with opened(path) as driver:
        path.chmod(mode)
        lifeline = await driver.lifeline("w")
        assert lifeline is not None
        assert rights(folder_of(path)) == [folder, mode]
        await lifeline.close()


async def test_where_no_file_can_be_made_there_is_no_lifeline_and_it_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "jobs.db"
    folder_of(path).touch()
    async with opened(path) as driver:
        assert await driver.lifeline("a") is None
        assert await driver.lifeline("b") is None
        assert await driver.shorten() is None
    assert [record.name for record in caplog.records] == ["tenure.sqlite"]


async def test_where_locks_keep_nobody_out_there_is_no_lifeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I6: else every living worker would be taken for gone."""
    path = tmp_path / "jobs.db"
    async with opened(path) as driver:

        def flock(descriptor: int, operation: int) -> None:
            """Refuses nothing."""

        monkeypatch.setattr(fcntl, "flock", flock)
        assert await driver.lifeline("w") is None
        assert files(path) is None


async def test_a_store_in_memory_has_none() -> None:
    driver = SqliteDriver(":memory:", clock=SystemClock())
    await driver.open()
    assert await driver.lifeline("w") is None
    assert await driver.shorten() is None
    await driver.close()
