"""What a file tells of the wall clock: for how long it has not been set."""

import sqlite3
from contextlib import closing
from math import inf
from pathlib import Path

import pytest

from tenure.drivers.sqlite import SqliteDriver, steady
from tenure.testing import ManualClock

HOUR = 3600.0


async def told(path: Path, clock: ManualClock) -> float | None:
    """What a program learns that has just opened the file."""
    driver = SqliteDriver(str(path), synchronous="NORMAL", clock=clock)
    await driver.open()
    try:
        return (await driver.expired(1)).steady
    finally:
        await driver.close()


@pytest.mark.parametrize("step", [HOUR, -HOUR, 2.0])
async def test_who_comes_later_learns_that_the_clock_was_set_and_when_that_was_seen(
    tmp_path: Path, step: float
) -> None:
    path, clock = tmp_path / "jobs.db", ManualClock()
    assert await told(path, clock) == inf
    await clock.advance(HOUR)
    assert await told(path, clock) == inf
    clock.step_wall(step)
    assert await told(path, clock) == 0.0
    await clock.advance(20.0)
    assert await told(path, clock) == 20.0
    clock.step_wall(-step)
    assert await told(path, clock) == 0.0


async def test_a_step_of_less_than_a_second_is_none(tmp_path: Path) -> None:
    """Both clocks are read one after the other, on a machine that may be busy meanwhile."""
    path, clock = tmp_path / "jobs.db", ManualClock()
    await told(path, clock)
    clock.step_wall(0.9)
    assert await told(path, clock) == inf


async def test_after_another_boot_nothing_of_the_one_before_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever held a job then is gone, so that who starts takes it over at once."""
    path, clock = tmp_path / "jobs.db", ManualClock()
    await told(path, clock)
    clock.step_wall(HOUR)
    monkeypatch.setattr(steady, "boot_id", lambda: "another")
    assert await told(path, clock) == inf
    clock.step_wall(HOUR)
    assert await told(path, clock) == 0.0


async def test_where_no_boot_can_be_told_from_another_it_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steady, "boot_id", lambda: None)
    assert await told(tmp_path / "jobs.db", ManualClock()) is None


async def test_a_damaged_row_is_replaced_or_says_that_the_clock_was_just_set(
    tmp_path: Path,
) -> None:
    path, clock = tmp_path / "jobs.db", ManualClock()
    await told(path, clock)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE tenure_clock SET set_at = 9223372036854775807")
        assert await told(path, clock) == 0.0
        connection.execute("UPDATE tenure_clock SET ahead = -9223372036854775808")
        assert await told(path, clock) == 0.0
        await clock.advance(5.0)
        assert await told(path, clock) == 5.0
