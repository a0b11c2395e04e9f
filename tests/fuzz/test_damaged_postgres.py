"""Any value that PostgreSQL can hold, in any column of a job: only that job is harmed (I12)."""

import asyncio
from collections.abc import Iterator, Mapping
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tenure.clock import SystemClock
from tenure.drivers.postgres import PostgresDriver
from tests.fuzz.damaged_store import check, check_beside, fill, fill_beside
from tests.fuzz.working import worked
from tests.servers.postgres import PostgresServer

Value = int | float | str | bytes | bool | UUID | list[str] | None

TIMES = ("run_at", "lease_until", "claimed_at", "created_at", "updated_at", "finished_at")
_TEXTS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20)
_INSTANTS = ["infinity", "-infinity", "4000-01-01 BC", "0001-01-01", "9999-12-31 23:59:59.9999999"]
VALUES: Mapping[str, st.SearchStrategy[Value]] = {
    "bigint": st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 8),
    "integer": st.integers(-(2**31), 2**31 - 1) | st.integers(-2, 8),
    "smallint": st.integers(-(2**15), 2**15 - 1) | st.integers(-2, 8),
    "double precision": st.floats(),
    "timestamp with time zone": st.sampled_from([*_INSTANTS, "294276-12-31", "now"]),
    "text": _TEXTS | st.sampled_from(["{broken", "null", "[]", "{}", "7", '{"a": 1}']),
    "bytea": st.binary(max_size=20),
    "boolean": st.booleans(),
    "uuid": st.uuids(),
    "ARRAY": st.lists(_TEXTS, max_size=3),
}


# What is stored of others, beside the jobs, and which rows of it are the bad one's.
BESIDE = {"history": "TRUE", "schedules": "id = 'bad'", "workers": "id = 'bad'"}


class Damaged:
    """A store in a schema of its own, emptied for each example."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._schema = f"fuzz_{uuid4().hex}"
        self.runner = asyncio.Runner()
        self.driver = PostgresDriver(server.url, schema=self._schema, clock=SystemClock())
        self.runner.run(self.driver.open())
        self.columns = self._columns("jobs")
        self.beside = {table: self._columns(table) for table in BESIDE}

    def _columns(self, table: str) -> dict[str, str]:
        rows = self._server.ask(
            "SELECT column_name, data_type FROM information_schema.columns "
            "WHERE table_schema = %s AND table_name = %s AND column_name <> 'seq'",
            *(self._schema, table),
        )
        assert rows, table
        return dict(sorted((str(name), str(kind)) for name, kind in rows))

    def empty(self) -> None:
        for table in (
            *("jobs", "totals", "differences", "gone", "keys", "history", "marks", "lanes"),
            *("schedules", "workers"),
        ):
            self._server.ask(f"DELETE FROM {self._schema}.{table}")

    def damage(self, column: str, value: Value, table: str = "jobs") -> None:
        """Write it, unless the table refuses that."""
        which = BESIDE.get(table, "id = 'bad'")
        try:
            self._server.ask(
                f"UPDATE {self._schema}.{table} SET {column} = %s WHERE {which}", value
            )
        except psycopg.IntegrityError:
            assume(False)

    def close(self) -> None:
        self.runner.run(self.driver.close())
        self.runner.close()


@pytest.fixture(scope="module")
def damaged(postgres_server: PostgresServer) -> Iterator[Damaged]:
    store = Damaged(postgres_server)
    yield store
    store.close()


@given(
    data=st.data(),
    state=st.sampled_from(["pending", "processing", "retried", "completed", "failed"]),
)
def test_a_damaged_row_harms_only_itself(damaged: Damaged, data: st.DataObject, state: str) -> None:
    assert set(damaged.columns.values()) <= set(VALUES)
    damaged.empty()
    damaged.runner.run(fill(damaged.driver, state))
    for _ in range(data.draw(st.integers(1, 3))):
        column = data.draw(st.sampled_from([*damaged.columns]))
        damaged.damage(column, data.draw(st.none() | VALUES[damaged.columns[column]]))
    damaged.runner.run(check(damaged.driver))


@pytest.mark.parametrize("value", [*_INSTANTS, "294276-12-31"])
@pytest.mark.parametrize("state", ["pending", "processing", "retried", "completed"])
@pytest.mark.parametrize("column", [*TIMES])
def test_times_that_are_none_harm_only_their_job(
    damaged: Damaged, column: str, state: str, value: str
) -> None:
    damaged.empty()
    damaged.runner.run(fill(damaged.driver, state))
    damaged.damage(column, value)
    damaged.runner.run(check(damaged.driver))


@given(data=st.data())
def test_a_damaged_row_beside_jobs_harms_only_itself(damaged: Damaged, data: st.DataObject) -> None:
    damaged.empty()
    damaged.runner.run(fill_beside(damaged.driver))
    table = data.draw(st.sampled_from(sorted(BESIDE)))
    columns = {
        name: kind
        for name, kind in damaged.beside[table].items()
        if name not in ("id", "job_id", "job", "seq")
    }
    column = data.draw(st.sampled_from([*columns]))
    damaged.damage(column, data.draw(st.none() | VALUES[columns[column]]), table)
    damaged.runner.run(check_beside(damaged.driver))


@settings(max_examples=max(5, settings().max_examples // 4))  # each is a run of a worker
@given(data=st.data(), state=st.sampled_from(["pending", "processing", "retried", "completed"]))
def test_a_worker_does_all_jobs_beside_a_damaged_row(
    damaged: Damaged, data: st.DataObject, state: str
) -> None:
    damaged.empty()
    damaged.runner.run(fill(damaged.driver, state))
    column = data.draw(st.sampled_from([*damaged.columns]))
    damaged.damage(column, data.draw(st.none() | VALUES[damaged.columns[column]]))
    damaged.runner.run(worked(damaged.driver))
