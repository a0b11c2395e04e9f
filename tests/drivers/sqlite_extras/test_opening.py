"""Opening and closing: schemas, races, reopening, and being dropped without a close."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from tenure.clock import SystemClock
from tenure.drivers.sqlite import SqliteDriver
from tenure.errors import InvalidConfiguration, RuntimeUnavailable, SchemaMismatch, StoreError
from tests.drivers.sqlite_extras.support import (
    LIMIT,
    claim,
    jobs,
    opened,
    run_script,
    start_script,
)


def query(path: Path, sql: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(sql)
    connection.close()


async def test_a_newer_schema_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    async with opened(path):
        pass
    query(path, "UPDATE tenure_schema SET version = 99")
    with pytest.raises(SchemaMismatch, match="upgrade tenure") as caught:
        async with opened(path):
            pass
    assert caught.value.found == 99


async def test_an_older_schema_is_refused_without_migrate(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    query(path, "CREATE TABLE tenure_schema (version INTEGER NOT NULL) STRICT")
    query(path, "INSERT INTO tenure_schema VALUES (0)")
    driver = SqliteDriver(str(path), clock=SystemClock(), migrate=False)
    with pytest.raises(SchemaMismatch, match="migrate=True"):
        await driver.open()


async def test_the_tables_of_an_application_in_the_same_file_stay(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    query(path, "CREATE TABLE users (name TEXT)")
    query(path, "PRAGMA user_version = 7")
    async with opened(path) as driver:
        await driver.enqueue(jobs(1))
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (7,)
    assert connection.execute("SELECT count(*) FROM users").fetchone() == (0,)
    connection.close()


async def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("this is not a database, and long enough to be sure of it\n" * 20)
    with pytest.raises(StoreError, match=r"notes\.txt.*no SQLite database"):
        async with opened(path):
            pass


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="its folder exists"):
        async with opened(tmp_path / "missing" / "jobs.db"):
            pass


def test_options_are_judged_by_the_constructor() -> None:
    with pytest.raises(InvalidConfiguration, match="synchronous"):
        SqliteDriver("jobs.db", synchronous="OFF", clock=SystemClock())
    with pytest.raises(InvalidConfiguration, match="busy_timeout"):
        SqliteDriver("jobs.db", busy_timeout=-1.0, clock=SystemClock())
    with pytest.raises(InvalidConfiguration, match="path"):
        SqliteDriver("", clock=SystemClock())


OPEN = """
import asyncio, sys
from tenure.clock import SystemClock
from tenure.drivers.sqlite import SqliteDriver

async def main():
    print("ready", flush=True)
    for path in sys.stdin.read().split():
        driver = SqliteDriver(path, clock=SystemClock())
        await driver.open()
        await driver.counts()
        await driver.close()

asyncio.run(main())
"""


async def test_processes_that_open_new_files_at_once_never_fail(tmp_path: Path) -> None:
    """Each process goes through the same twenty new files, so both arrive at each at once."""
    paths = "\n".join(str(tmp_path / f"{n}.db") for n in range(20))
    processes = [start_script(OPEN) for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        await asyncio.to_thread(process.stdout.readline)
    talks = [asyncio.to_thread(process.communicate, paths, LIMIT) for process in processes]
    for process, (_, errors) in zip(processes, await asyncio.gather(*talks), strict=True):
        assert process.returncode == 0, errors


async def test_a_closed_driver_opens_again(tmp_path: Path) -> None:
    driver = SqliteDriver(str(tmp_path / "jobs.db"), clock=SystemClock())
    await driver.open()
    await driver.enqueue(jobs(2))
    await driver.close()
    await driver.close()
    with pytest.raises(RuntimeUnavailable, match="not open"):
        await driver.get("job-0")
    await driver.open()
    assert len(await claim(driver)) == 2
    await driver.close()


async def test_close_finishes_what_is_queued(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    async with opened(path) as driver:
        storing = [asyncio.ensure_future(driver.enqueue([job])) for job in jobs(50)]
        await asyncio.sleep(0)
        await driver.close()
        await asyncio.gather(*storing)
    async with opened(path) as driver:
        assert (await driver.counts()).pending == 50


async def test_a_driver_dropped_without_close_warns_and_ends_its_threads(tmp_path: Path) -> None:
    """The fixture of tests/conftest.py looks for the threads."""
    stores = [SqliteDriver(str(tmp_path / "jobs.db"), clock=SystemClock())]
    await stores[0].open()
    await stores[0].get("nothing")
    with pytest.warns(ResourceWarning, match="was not closed"):
        stores.clear()


async def test_an_interpreter_that_ends_without_close_ends_quietly(tmp_path: Path) -> None:
    script = """
import asyncio, sys
from tenure.clock import SystemClock
from tenure.drivers.sqlite import SqliteDriver

driver = SqliteDriver(sys.argv[1], clock=SystemClock())
asyncio.run(driver.open())
asyncio.run(driver.get("nothing"))
print("done")
"""
    assert await run_script(script, str(tmp_path / "jobs.db")) == "done\n"
