"""Any value that SQLite can hold, in any column of a job: only that job is harmed (I12)."""

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tenure.clock import SystemClock
from tenure.driver import Driver
from tenure.drivers.sqlite import SqliteDriver
from tests.fuzz.damaged_store import BAD, check, check_beside, fill, fill_beside
from tests.fuzz.working import worked

Value = int | float | str | bytes | None

_TEXTS = st.text(max_size=20) | st.sampled_from(["{broken", "null", "[]", "{}", "7", '{"a": 1}'])
# Of a STRICT table: nothing else gets into a column of that type.
VALUES: Mapping[str, st.SearchStrategy[Value]] = {
    "INTEGER": st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 8),
    "REAL": st.floats(allow_nan=False),
    "TEXT": _TEXTS | st.binary(max_size=20),
    "BLOB": st.binary(max_size=20),
}
COLUMNS: Mapping[str, str] = {
    **dict.fromkeys(["id", "name", "queue", "token", "worker", "settled_token"], "TEXT"),
    **dict.fromkeys(["settled_outcome", "unique_key", "limits", "headers", "error"], "TEXT"),
    **dict.fromkeys(["state", "priority", "run_at", "attempt", "stalls", "serial"], "INTEGER"),
    **dict.fromkeys(["lease_until", "lease", "claimed_at", "max_attempts"], "INTEGER"),
    **dict.fromkeys(["cancel_requested", "settled_serial", "created_at"], "INTEGER"),
    **dict.fromkeys(["updated_at", "finished_at", "lane"], "INTEGER"),
    "timeout": "REAL",
    **dict.fromkeys(["content", "progress", "result", "payload"], "BLOB"),
}


STATES = ("pending", "processing", "retried", "completed", "failed")
TIMES = ("run_at", "lease_until", "claimed_at", "created_at", "updated_at", "finished_at")


@st.composite
def damages(draw: st.DrawFn) -> tuple[str, Value]:
    column = draw(st.sampled_from(sorted(COLUMNS)))
    return column, draw(st.none() | VALUES[COLUMNS[column]])


def _put_in(kind: str) -> str:
    """Also text that is none, which only a cast gets in."""
    return "CAST(? AS TEXT)" if kind == "TEXT" else "?"


def damage(path: Path, column: str, value: Value) -> None:
    """Write it, unless the table refuses that."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        try:
            what = _put_in(COLUMNS[column])
            other.execute(f"UPDATE tenure_jobs SET {column} = {what} WHERE id = ?", [value, BAD])
        except sqlite3.IntegrityError:
            assume(False)


def test_all_columns_are_damaged(tmp_path: Path) -> None:
    """None is left out, nor has another type."""

    async def main() -> None:
        driver = SqliteDriver(str(tmp_path / "jobs.db"), clock=SystemClock())
        await driver.open()
        await driver.close()

    asyncio.run(main())
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as other:
        rows = other.execute("SELECT name, type FROM pragma_table_info('tenure_jobs')").fetchall()
    assert {name: kind for name, kind in rows if name != "seq"} == dict(COLUMNS)


def damaged_and_checked(
    damaged: list[tuple[str, Value]],
    state: str,
    look: Callable[[Driver], Awaitable[None]] = check,
) -> None:
    async def main(path: Path) -> None:
        driver = SqliteDriver(str(path), synchronous="NORMAL", clock=SystemClock())
        await driver.open()
        try:
            await fill(driver, state)
            for column, value in sorted(damaged, key=lambda each: each[0] == "id"):
                damage(path, column, value)
            await look(driver)
        finally:
            await driver.close()

    with TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder) / "jobs.db"))


@given(st.lists(damages(), min_size=1, max_size=3), st.sampled_from(STATES))
def test_a_damaged_row_harms_only_itself(damaged: list[tuple[str, Value]], state: str) -> None:
    damaged_and_checked(damaged, state)


@pytest.mark.parametrize("value", [-(2**63), 2**63 - 1])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("column", [*TIMES])
def test_times_that_are_none_harm_only_their_job(column: str, state: str, value: int) -> None:
    damaged_and_checked([(column, value)], state)


# What else is stored of others, beside the jobs: which columns, by the table.
BESIDE: Mapping[str, Mapping[str, str]] = {
    "tenure_history": {
        **dict.fromkeys(["serial", "attempt", "started_at", "ended_at"], "INTEGER"),
        **dict.fromkeys(["outcome", "worker", "kind", "message"], "TEXT"),
    },
    "tenure_schedules": {
        **dict.fromkeys(["created_at", "last", "paused"], "INTEGER"),
        "revision": "TEXT",
        "definition": "BLOB",
    },
    "tenure_workers": {"info": "TEXT"},
}
_BAD = "id = 'bad'"
_SHOWN = {"tenure_history": "TRUE", "tenure_schedules": _BAD, "tenure_workers": _BAD}


@st.composite
def damages_beside(draw: st.DrawFn) -> tuple[str, str, Value]:
    table = draw(st.sampled_from(sorted(BESIDE)))
    column = draw(st.sampled_from(sorted(BESIDE[table])))
    return table, column, draw(VALUES[BESIDE[table][column]])


@given(damages_beside())
def test_a_damaged_row_beside_jobs_harms_only_itself(damaged: tuple[str, str, Value]) -> None:
    table, column, value = damaged

    async def main(path: Path) -> None:
        driver = SqliteDriver(str(path), synchronous="NORMAL", clock=SystemClock())
        await driver.open()
        try:
            await fill_beside(driver)
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                what = _put_in(BESIDE[table][column])
                changed = other.execute(
                    f"UPDATE {table} SET {column} = {what} WHERE {_SHOWN[table]}", [value]
                )
                assert changed.rowcount == 1
            await check_beside(driver)
        finally:
            await driver.close()

    with TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder) / "jobs.db"))


@settings(max_examples=max(5, settings().max_examples // 4))  # each is a run of a worker
@given(st.lists(damages(), min_size=1, max_size=3), st.sampled_from(STATES))
def test_a_worker_does_all_jobs_beside_a_damaged_row(
    damaged: list[tuple[str, Value]], state: str
) -> None:
    damaged_and_checked(damaged, state, worked)


@given(st.lists(st.tuples(st.text(max_size=20), st.binary(max_size=30)), max_size=4))
def test_lifelines_that_are_none_harm_nobody(left: list[tuple[str, bytes]]) -> None:
    """Files of any name and content in the folder of lifelines, a folder and a pipe among them."""

    async def main(path: Path) -> None:
        driver = SqliteDriver(str(path), synchronous="NORMAL", clock=SystemClock())
        await driver.open()
        try:
            await fill(driver, "processing")
            lifeline = await driver.lifeline("w-1")
            assert lifeline is not None
            folder = path.with_name("jobs.db-workers")
            [own] = folder.iterdir()
            boot = own.name.partition("@")[2]
            (folder / f"folder@{boot}").mkdir()
            os.mkfifo(folder / f"pipe@{boot}")
            for number, (name, content) in enumerate(left):
                plain = "".join(c for c in name if c.isprintable() and c != "/")
                (folder / f"{plain}@{boot if number % 2 else plain}").write_bytes(content)
            for _ in range(2):
                assert await driver.shorten() in (None, 0.0)
            await lifeline.close()
            await check(driver)
        finally:
            await driver.close()

    with TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder) / "jobs.db"))
