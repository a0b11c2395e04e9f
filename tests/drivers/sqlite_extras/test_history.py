"""Histories in a file: bounded, gone with their job, and never in the way of anything."""

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from tenure.outcomes import Completed, Failure, Retried
from tenure.types import JobFilter
from tests.drivers.sqlite_extras.support import claim, jobs, opened


def failure(message: str) -> Failure:
    return Failure(kind="error", message=message, at=datetime(2030, 1, 1, tzinfo=UTC), attempt=1)


def entries(path: Path) -> int:
    connection = sqlite3.connect(path)
    (count,) = connection.execute("SELECT count(*) FROM tenure_history").fetchone()
    connection.close()
    return int(count)


async def test_the_newest_hundred_attempts_are_kept(tmp_path: Path) -> None:
    """I16"""
    path = tmp_path / "jobs.db"
    async with opened(path) as driver:
        await driver.enqueue(jobs(1))
        for n in range(130):
            (claimed,) = await claim(driver, token=f"t{n}")
            await driver.record([(claimed.hold, Retried(0.0, failure(f"no {n}")))])
        history = await driver.history("job-0")
        assert [past.message for past in history] == [f"no {n}" for n in range(30, 130)]
        assert entries(path) == 100


async def test_a_purge_takes_the_histories_along_and_a_completion_writes_none(
    tmp_path: Path,
) -> None:
    path = tmp_path / "jobs.db"
    async with opened(path) as driver:
        await driver.enqueue(jobs(3))
        first, second, third = await claim(driver)
        await driver.record(
            [
                (first.hold, Retried(0.0, failure("no"))),
                (second.hold, Retried(0.0, failure("no"))),
                (third.hold, Completed()),
            ]
        )
        assert entries(path) == 2
        await driver.delete(["job-0"])
        assert entries(path) == 1
        assert await driver.purge(JobFilter(), 10) == 2
        assert entries(path) == 0


async def test_a_message_that_is_no_text_is_kept_with_an_escape(tmp_path: Path) -> None:
    async with opened(tmp_path / "jobs.db") as driver:
        await driver.enqueue(jobs(1))
        (claimed,) = await claim(driver)
        await driver.record([(claimed.hold, Retried(0.0, failure("no \udc80")))])
        (past,) = await driver.history("job-0")
        assert past.message == r"no \udc80"


async def test_a_damaged_entry_can_be_looked_at(tmp_path: Path) -> None:
    """I12"""
    path = tmp_path / "jobs.db"
    async with opened(path) as driver:
        await driver.enqueue(jobs(1))
        (claimed,) = await claim(driver)
        await driver.record([(claimed.hold, Retried(0.0, failure("no")))])
        other = sqlite3.connect(path, isolation_level=None)
        other.execute(
            "UPDATE tenure_history SET started_at = 9223372036854775807, "
            "message = CAST(x'ff00fe' AS TEXT)"
        )
        other.close()
        (past,) = await driver.history("job-0")
        assert past.started_at == datetime(1970, 1, 1, tzinfo=UTC)
        (again,) = await claim(driver, token="again")
        assert again.damage is None
