"""Opening: what is made, upgraded, refused and said; closing and forking: what is left."""

import asyncio
import logging
import multiprocessing
import os
import threading
from pathlib import Path

import psycopg
import pytest

import tenure
from tenure.clock import SystemClock
from tenure.drivers.postgres import PostgresDriver
from tenure.drivers.postgres import schema as schemas
from tenure.drivers.postgres.statements import Statements
from tenure.errors import InvalidConfiguration, SchemaMismatch, StoreError, StoreUnavailable
from tests.drivers.postgres_extras.support import (
    claim,
    fresh,
    jobs,
    made,
    opened,
    run_script,
    sessions,
    until,
)
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import PostgresServer
from tests.servers.redis import free_port

ADDED = "ALTER TABLE {schema}.jobs ADD COLUMN note text"
INDEXED = "CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_note ON {schema}.jobs (note)"

OPEN = """
import asyncio, sys
import tenure

async def main():
    async with tenure.connect(sys.argv[1], schema=sys.argv[2]) as queue:
        await queue.dispatch("work")

asyncio.run(main())
"""


def newer(monkeypatch: pytest.MonkeyPatch, *steps: str) -> None:
    """Have the driver be of a later version, with more migrations."""
    original = Statements.migrations

    def migrations(self: Statements) -> list[str]:
        text = self.text("schema_version")
        schema = text.removeprefix("SELECT version FROM ").removesuffix(".version")
        return [*original(self), *(step.format(schema=schema) for step in steps)]

    monkeypatch.setattr(Statements, "migrations", migrations)


def indexes(server: PostgresServer, schema: str) -> dict[str, bool]:
    """Each index of a schema, and whether it is valid."""
    return dict(
        server.ask(
            "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s",
            schema,
        )
    )


# --- the schema ---------------------------------------------------------------------------------


async def test_opening_makes_the_schema_and_touches_nothing_outside(
    postgres_server: PostgresServer,
) -> None:
    before = postgres_server.ask("SELECT count(*) FROM pg_class WHERE relnamespace = 2200")
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        await driver.open()
        await driver.enqueue(jobs(1))
    assert postgres_server.ask(f"SELECT version FROM {schema}.version") == [(1,)]
    assert postgres_server.ask("SELECT count(*) FROM pg_class WHERE relnamespace = 2200") == before
    async with opened(postgres_server.url, schema) as driver:
        assert (await driver.counts()).pending == 1


async def test_a_schema_that_somebody_made_for_us_is_filled(
    postgres_server: PostgresServer,
) -> None:
    """Also by a user who may not create schemas."""
    schema = fresh()
    postgres_server.ask(f"CREATE ROLE {schema} LOGIN")
    postgres_server.ask(f"CREATE SCHEMA {schema} AUTHORIZATION {schema}")
    url = postgres_server.url.replace("postgres@", f"{schema}@")
    async with opened(url, schema) as driver:
        await driver.enqueue(jobs(1))
    async with opened(url, schema) as driver:
        assert len(await claim(driver)) == 1
    with pytest.raises(StoreError, match=r"permission denied.*grant"):
        await made(url, fresh()).open()


async def test_processes_that_open_an_empty_database_at_once_make_one_schema(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    drivers = [made(postgres_server.url, schema) for _ in range(8)]
    scripts = [run_script(OPEN, postgres_server.url, schema) for _ in range(3)]
    await asyncio.gather(*(driver.open() for driver in drivers), *scripts)
    assert (await drivers[0].counts()).pending == 3
    await asyncio.gather(*(driver.close() for driver in drivers))


async def test_a_newer_schema_is_refused_with_the_remedy(postgres_server: PostgresServer) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema):
        pass
    postgres_server.ask(f"UPDATE {schema}.version SET version = 99")
    for migrate in (False, True):
        with pytest.raises(SchemaMismatch) as caught:
            await made(postgres_server.url, schema, migrate=migrate).open()
        assert str(caught.value) == (
            "the store has schema version 99, this tenure works with 1: upgrade tenure in this "
            "environment"
        )
    with pytest.raises(SchemaMismatch):
        await tenure.migrate(postgres_server.url, schema=schema)


async def test_an_older_schema_is_refused_with_the_remedy_and_left_alone(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema):
        pass
    newer(monkeypatch, ADDED)
    monkeypatch.setattr(schemas, "OLDEST", 2)
    with pytest.raises(SchemaMismatch) as caught:
        await made(postgres_server.url, schema).open()
    assert str(caught.value) == (
        "the store has schema version 1, this tenure works with 2: run `await "
        "tenure.migrate(url)`, or open it once with migrate=True, when no older tenure uses it any "
        "more"
    )
    assert postgres_server.ask(f"SELECT version FROM {schema}.version") == [(1,)]


@pytest.mark.parametrize("how", ["migrate=True", "tenure.migrate"])
async def test_an_older_schema_is_upgraded_once_by_whoever_is_first(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The jobs stay; the second ADD COLUMN of two would fail."""
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        await driver.enqueue(jobs(3))
    newer(monkeypatch, ADDED, INDEXED)
    if how == "tenure.migrate":
        await asyncio.gather(
            *(tenure.migrate(postgres_server.url, schema=schema) for _ in range(6))
        )
    else:
        drivers = [made(postgres_server.url, schema, migrate=True) for _ in range(6)]
        await asyncio.gather(*(driver.open() for driver in drivers))
        await asyncio.gather(*(driver.close() for driver in drivers))
    assert postgres_server.ask(f"SELECT version FROM {schema}.version") == [(3,)]
    assert indexes(postgres_server, schema)["jobs_note"]
    async with opened(postgres_server.url, schema) as driver:
        assert len(await claim(driver)) == 3


async def test_migrate_makes_a_schema_and_finds_nothing_to_do_in_a_current_one(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer(monkeypatch, INDEXED.replace("(note)", "(name)"))
    schema = fresh()
    for _ in range(2):
        await tenure.migrate(f"{postgres_server.url}?schema={schema}")
    assert indexes(postgres_server, schema)["jobs_note"]


async def test_an_index_that_was_left_half_built_is_built_again(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CREATE INDEX CONCURRENTLY that fails leaves an invalid index under the name."""
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        await driver.enqueue(jobs(2))
    with pytest.raises(psycopg.errors.UniqueViolation):
        postgres_server.ask(f"CREATE UNIQUE INDEX CONCURRENTLY jobs_note ON {schema}.jobs (name)")
    assert not indexes(postgres_server, schema)["jobs_note"]
    newer(monkeypatch, ADDED, INDEXED)
    await tenure.migrate(postgres_server.url, schema=schema)
    assert indexes(postgres_server, schema)["jobs_note"]


async def test_workers_go_on_while_an_index_is_built(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for a transaction that is open; nobody waits for it."""
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        with postgres_server.client() as client:
            client.execute("BEGIN")
            client.execute(f"UPDATE {schema}.jobs SET name = name".encode())
            newer(monkeypatch, INDEXED.replace("(note)", "(name)"))
            migrating = asyncio.ensure_future(tenure.migrate(postgres_server.url, schema=schema))
            await until(lambda: bool(sessions(postgres_server, "%CONCURRENTLY%jobs_note%")))
            await driver.enqueue(jobs(1))
            assert len(await claim(driver)) == 1
            assert not migrating.done()
            client.execute("COMMIT")
        await migrating
    assert indexes(postgres_server, schema)["jobs_note"]


async def test_a_migration_that_fails_leaves_the_version_before_it(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema):
        pass
    with monkeypatch.context() as broken:
        newer(broken, ADDED, "ALTER TABLE {schema}.nobody ADD COLUMN x text")
        with pytest.raises(StoreError, match="nobody"):
            await tenure.migrate(postgres_server.url, schema=schema)
    assert postgres_server.ask(f"SELECT version FROM {schema}.version") == [(2,)]
    newer(monkeypatch, ADDED, INDEXED)
    await tenure.migrate(postgres_server.url, schema=schema)
    assert postgres_server.ask(f"SELECT version FROM {schema}.version") == [(3,)]


async def test_through_a_pooler_nothing_is_migrated(pgbouncer: PgBouncer) -> None:
    """Refused whether or not there is something to do: no surprise on the day there is."""
    schema = fresh()
    for _ in range(2):
        with pytest.raises(InvalidConfiguration, match="the server itself"):
            await tenure.migrate(pgbouncer.url, schema=schema)
        async with opened(pgbouncer.url, schema):
            pass


async def test_migrate_upgrades_a_file_and_leaves_other_stores_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    for _ in range(2):
        await tenure.migrate(url)
    await tenure.migrate("memory://")
    async with tenure.connect(url, migrate=False) as queue:
        assert (await queue.counts()).pending == 0


# --- connections --------------------------------------------------------------------------------


async def test_that_there_are_no_notifications_through_a_pooler_is_said(
    pgbouncer: PgBouncer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="tenure.postgres")
    async with opened(pgbouncer.url):
        pass
    (record,) = caplog.records
    assert "no notifications" in record.getMessage()


async def test_a_server_is_opened_in_silence(
    postgres_server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="tenure.postgres")
    async with opened(postgres_server.url):
        pass
    assert caplog.records == []


async def test_closing_leaves_no_connection(own_server: PostgresServer) -> None:
    async with opened(own_server.url) as driver:
        await asyncio.gather(*(driver.counts() for _ in range(20)))
        await driver.wait(["default"], 0.05)  # which begins to listen
        keeper = driver.keeper_handle()
        await asyncio.to_thread(keeper.extend, [], 30.0)
        await asyncio.to_thread(keeper.close)
        assert 1 <= len(sessions(own_server)) <= 6
        await driver.close()
        await driver.close()
        await until(lambda: not sessions(own_server))


async def test_nobody_is_there() -> None:
    driver = made(f"postgresql://postgres@127.0.0.1:{free_port()}/postgres")
    await driver.close()
    with pytest.raises(StoreUnavailable, match="cannot be reached") as caught:
        await driver.open()
    assert not caught.value.ambiguous
    await driver.close()


async def test_a_refused_connection_says_what_to_check(postgres_server: PostgresServer) -> None:
    with pytest.raises(StoreError, match="name of the database") as caught:
        await made(postgres_server.url.removesuffix("postgres") + "nowhere").open()
    assert not isinstance(caught.value, StoreUnavailable)


@pytest.mark.parametrize(
    "options",
    [
        {"url": "http://localhost"},
        {"schema": ""},
        {"schema": "public"},
        {"schema": "pg_mine"},
        {"schema": 'a"b'},
        {"schema": "x" * 49},
        {"pool_size": 0},
        {"timeout": 0.0},
    ],
)
def test_wrong_options_are_refused(options: dict[str, object]) -> None:
    given: dict[str, object] = {"url": "postgresql://h", "clock": SystemClock(), **options}
    with pytest.raises(InvalidConfiguration):
        PostgresDriver(**given)  # type: ignore[arg-type]  # that is the point


async def test_a_queue_serves_two_event_loops(postgres_server: PostgresServer) -> None:
    """A driver belongs to one; the queue opens another for the second, and closes both."""
    other = asyncio.new_event_loop()
    thread = threading.Thread(target=other.run_forever)
    thread.start()
    try:
        async with tenure.connect(postgres_server.url, schema=fresh()) as queue:
            await queue.dispatch("work")

            async def elsewhere() -> int:
                await queue.dispatch("work")
                return (await queue.counts()).pending

            there = asyncio.run_coroutine_threadsafe(elsewhere(), other)
            assert await asyncio.wrap_future(there) == 2
            assert (await queue.counts()).pending == 2
    finally:
        other.call_soon_threadsafe(other.stop)
        await asyncio.to_thread(thread.join)
        other.close()


def _in_child(driver: PostgresDriver, server: PostgresServer, schema: str) -> None:
    """What a forked child does with a driver that its parent has opened."""

    async def main() -> None:
        with pytest.raises(StoreError, match="fork"):
            await driver.counts()
        await driver.close()
        await driver.open()
        await driver.enqueue(jobs(1, "child"))
        await driver.close()

    asyncio.run(main())
    os._exit(0)


async def test_a_child_leaves_the_connections_of_its_parent_alone(
    own_server: PostgresServer,
) -> None:
    schema = fresh()
    async with opened(own_server.url, schema) as driver:
        await driver.enqueue(jobs(1))
        await driver.wait(["other"], 0.05)  # which begins to listen
        await until(lambda: bool(sessions(own_server, "LISTEN%")))
        before = set(sessions(own_server))
        fork = multiprocessing.get_context("fork")
        child = fork.Process(target=_in_child, args=(driver, own_server, schema))
        child.start()
        await asyncio.to_thread(child.join, 30)
        assert child.exitcode == 0
        await until(lambda: before >= set(sessions(own_server)))
        assert (await driver.counts()).pending == 2
        assert before >= set(sessions(own_server))  # none had to be made anew
