"""Dead rows are removed while a process makes them, and nothing waits for that."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from tenure.clock import SystemClock
from tenure.drivers.postgres import vacuum
from tenure.drivers.postgres.options import Options
from tenure.drivers.postgres.statements import Statements
from tenure.drivers.postgres.vacuum import Churn, Vacuum, are_stuck
from tests.drivers.postgres_extras.support import (
    Forward,
    claim,
    fresh,
    jobs,
    opened,
    sessions,
    until,
)
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import PostgresServer

MANY = 12_000
LOAD = 30_000  # row versions, after which it looks


async def store(server: PostgresServer) -> str:
    """A store that the server leaves alone."""
    schema = fresh()
    async with opened(server.url, schema):
        pass
    server.ask(f"ALTER TABLE {schema}.jobs SET (autovacuum_enabled = off)")
    return schema


async def churn(server: PostgresServer, schema: str) -> None:
    """Leave `MANY` dead rows behind, and see them counted: a session counts when it ends."""

    def updated() -> int:
        ((count,),) = server.ask(f"SELECT pg_stat_get_tuples_updated('{schema}.jobs'::regclass)")
        return int(count)

    before = updated()
    server.ask(
        f"INSERT INTO {schema}.jobs (id, name, queue, payload, run_at, priority, content, "
        "created_at, updated_at) SELECT gen_random_uuid()::text, 'work', 'other', '', now(), 0, "
        "'', now(), now() FROM generate_series(1, %s)",
        MANY,
    )
    server.ask(f"UPDATE {schema}.jobs SET attempt = attempt + 1 WHERE queue = 'other'")
    await until(lambda: updated() >= before + MANY)


async def alone(server: PostgresServer) -> None:
    """Wait until no transaction is open: what died under one is kept, though it is nobody's here.

    It may be of a program that an earlier test has killed, or the server's own look at a table.
    """

    def others() -> int:
        ((count,),) = server.ask(
            "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)"
        )
        return int(count)

    await until(lambda: others() == 0)


def vacuums(server: PostgresServer, schema: str) -> int:
    ((count,),) = server.ask(f"SELECT pg_stat_get_vacuum_count('{schema}.jobs'::regclass)")
    return int(count)


@asynccontextmanager
async def upkeep(
    url: str, schema: str, clock: SystemClock | None = None
) -> AsyncGenerator[tuple[Vacuum, list[bool]]]:
    """What one process does, and what it hears."""
    told: list[bool] = []
    options = Options(url=url, schema=schema, migrate=False, pool_size=1, timeout=10.0, pooled=None)
    vacuum = Vacuum(options, Statements(schema), clock or SystemClock(), told.append)
    try:
        yield vacuum, told
    finally:
        await vacuum.close()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.message
        for record in caplog.records
        if record.name == "tenure.postgres" and record.levelno >= logging.WARNING
    ]


async def turn(upkeep: tuple[Vacuum, list[bool]]) -> bool:
    """Write much, and see what comes of it."""
    vacuum, told = upkeep
    before = len(told)
    vacuum.wrote(LOAD)
    await until(lambda: len(told) > before)
    return told[-1]


async def test_a_driver_under_load_has_the_table_of_its_jobs_vacuumed(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And by one that writes little nothing is vacuumed, whatever others left."""
    server = postgres_server
    schema = await store(server)
    await churn(server, schema)
    async with opened(server.url, schema) as driver:
        await driver.enqueue(jobs(20))
        assert len(await claim(driver)) == 20
    assert vacuums(server, schema) == 0
    monkeypatch.setattr(vacuum, "_WRITTEN", 20)
    async with opened(server.url, schema) as driver:
        await driver.enqueue(jobs(20, "more"))
        assert len(await claim(driver)) == 20
        await until(lambda: vacuums(server, schema) == 1)


async def test_it_rests_after_a_vacuum_and_looks_no_more_than_once_at_a_time(
    postgres_server: PostgresServer,
) -> None:
    schema = await store(postgres_server)
    await churn(postgres_server, schema)
    await alone(postgres_server)
    async with upkeep(postgres_server.url, schema) as one:
        for _ in range(3):
            one[0].wrote(LOAD)
        assert await turn(one) is False
        await churn(postgres_server, schema)
        one[0].wrote(LOAD)
        assert one[1] == [False]
    assert vacuums(postgres_server, schema) == 1


async def test_who_comes_after_a_vacuum_leaves_it(postgres_server: PostgresServer) -> None:
    """Two that look at the same moment may both do it, one after the other, which does no harm."""
    schema = await store(postgres_server)
    await churn(postgres_server, schema)
    await alone(postgres_server)
    url = postgres_server.url
    async with upkeep(url, schema) as one, upkeep(url, schema) as two, upkeep(url, schema) as three:
        found = [await turn(one), *await asyncio.gather(turn(two), turn(three))]
    assert not any(found)
    assert vacuums(postgres_server, schema) == 1


async def test_dead_rows_that_an_open_transaction_needs_are_stuck_until_it_ends(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for apart in ("_APART", "_APART_STUCK", "_SHARE"):
        monkeypatch.setattr(vacuum, apart, 0.0)
    schema = await store(postgres_server)
    async with upkeep(postgres_server.url, schema) as one:
        with postgres_server.client() as client:
            client.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            client.execute("SELECT count(*) FROM pg_class")
            await churn(postgres_server, schema)
            assert await turn(one) is True
            one[0].wrote(1)  # however little is written, it looks whether that is over
            await until(lambda: one[1] == [True, True])
            client.execute("ROLLBACK")
        await alone(postgres_server)
        assert await turn(one) is False


async def test_vacuums_of_others_tell_that_rows_are_stuck(postgres_server: PostgresServer) -> None:
    clock = Forward()
    schema = await store(postgres_server)
    async with upkeep(postgres_server.url, schema, clock) as one:
        with postgres_server.client() as client:
            client.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            client.execute("SELECT count(*) FROM pg_class")
            await churn(postgres_server, schema)
            for found in (False, True):  # the first time it has nothing to compare with
                postgres_server.ask(f"VACUUM {schema}.jobs")
                postgres_server.ask(f"VACUUM {schema}.jobs")
                assert await turn(one) is found
                clock.forward(60.0)
    assert vacuums(postgres_server, schema) == 4


async def test_a_table_that_is_locked_is_left_for_now(
    postgres_server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Forward()
    schema = await store(postgres_server)
    await churn(postgres_server, schema)
    async with upkeep(postgres_server.url, schema, clock) as one:
        with postgres_server.client() as client:
            client.execute("BEGIN")
            client.execute(f"LOCK {schema}.jobs IN SHARE UPDATE EXCLUSIVE MODE".encode())
            assert await turn(one) is False
            assert vacuums(postgres_server, schema) == 0
            client.execute("ROLLBACK")
        clock.forward(60.0)
        await turn(one)
    assert vacuums(postgres_server, schema) == 1
    assert warnings(caplog) == []


async def test_a_user_who_may_not_vacuum_is_told_once(
    postgres_server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    server = postgres_server
    clock = Forward()
    schema = await store(server)
    await churn(server, schema)
    server.ask(f"CREATE ROLE {schema} LOGIN")
    server.ask(f"GRANT USAGE ON SCHEMA {schema} TO {schema}")
    url = server.url.replace("postgres@", f"{schema}@")
    async with upkeep(url, schema, clock) as one:
        assert await turn(one) is False
        clock.forward(60.0)
        one[0].wrote(LOAD)
        assert one[1] == [False]
    assert len(warnings(caplog)) == 1
    server.ask(f"DROP OWNED BY {schema}")
    server.ask(f"DROP ROLE {schema}")


async def test_a_server_that_fails_is_tried_again_later(
    own_server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Forward()
    schema = await store(own_server)
    async with upkeep(own_server.url, schema, clock) as one:
        own_server.stop()
        assert await turn(one) is False
        own_server.start()
        await churn(own_server, schema)  # what it had counted is gone
        clock.forward(60.0)
        await turn(one)
    assert vacuums(own_server, schema) == 1
    assert warnings(caplog) == []


async def test_a_server_that_is_read_only_is_left(
    own_server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    schema = await store(own_server)
    await churn(own_server, schema)
    own_server.read_only(True)
    async with upkeep(own_server.url, schema) as one:
        assert await turn(one) is False
    own_server.read_only(False)
    assert warnings(caplog) == []


async def test_through_a_pooler_it_is_the_same(pgbouncer: PgBouncer) -> None:
    schema = await store(pgbouncer.server)
    await churn(pgbouncer.server, schema)
    async with upkeep(pgbouncer.url, schema) as one:
        await turn(one)
    assert vacuums(pgbouncer.server, schema) == 1


async def test_claims_and_the_close_do_not_wait_for_a_vacuum(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that would take many minutes."""
    monkeypatch.setattr(vacuum, "_WRITTEN", 10)
    server = postgres_server
    schema = await store(server)
    await churn(server, schema)
    slow = f"{server.url}?vacuum_cost_delay=100&vacuum_cost_limit=1"
    async with asyncio.timeout(60.0):
        async with opened(slow, schema, pool_size=1) as driver:
            await driver.enqueue(jobs(20))
            assert len(await claim(driver, 10)) == 10
            await until(lambda: len(sessions(server, "VACUUM%")) == 1)
            assert len(await claim(driver, 10)) == 10
        (left,) = sessions(server, "VACUUM%")
    server.ask("SELECT pg_terminate_backend(%s)", left)
    assert vacuums(server, schema) == 0


def test_what_died_while_it_was_removed_is_not_stuck() -> None:
    before = Churn(dead=100_000, died=500_000, vacuums=1, age=5.0)
    after = Churn(dead=30_000, died=530_000, vacuums=2, age=0.0)
    assert not are_stuck(before, after)
    assert are_stuck(before, Churn(dead=130_000, died=530_000, vacuums=2, age=0.0))
    assert are_stuck(before, Churn(dead=100_000, died=500_000, vacuums=2, age=0.0))


def test_a_few_dead_rows_are_not_worth_a_word() -> None:
    few = Churn(dead=1000, died=1000, vacuums=1, age=5.0)
    assert not are_stuck(few, few)
