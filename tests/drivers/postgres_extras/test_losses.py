"""What a driver does when its server goes, comes back, refuses, hangs or rolls back (K14)."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tenure.drivers.postgres import PostgresDriver
from tenure.errors import StoreError, StoreUnavailable
from tenure.outcomes import Completed
from tenure.testing.faults import Relay
from tenure.types import JobFilter, Kept, NewJob, Recorded
from tests.drivers.losing import lost_and_repeated
from tests.drivers.postgres_extras.support import (
    claim,
    fresh,
    jobs,
    opened,
    request,
    sessions,
    until,
)
from tests.servers.pgbouncer import pooling
from tests.servers.postgres import PostgresServer


async def refused(call: Callable[[], Awaitable[Any]], *, ambiguous: bool | None = False) -> str:
    with pytest.raises(StoreUnavailable) as caught:
        await call()
    assert ambiguous is None or caught.value.ambiguous is ambiguous
    return str(caught.value)


async def resumed(driver: PostgresDriver) -> float:
    """How many seconds a driver that is called again and again needs until it works."""
    begun = time.monotonic()
    while time.monotonic() - begun < 30:
        try:
            await driver.counts()
        except StoreUnavailable:
            await asyncio.sleep(0.05)
        else:
            return time.monotonic() - begun
    raise AssertionError("it does not resume")


# --- the server goes and comes back -------------------------------------------------------------


async def test_a_killed_server_keeps_what_it_accepted(own_server: PostgresServer) -> None:
    async with opened(own_server.url) as driver:
        await driver.enqueue(jobs(20))
        claims = await claim(driver, 5)
        await driver.record([(c.hold, Completed()) for c in claims[:2]])
        keeper = driver.keeper_handle()
        held = [claimed.hold for claimed in claims[2:]]
        for _ in range(2):
            own_server.restart()
            assert await asyncio.to_thread(keeper.extend, held, 60.0) == [Kept.KEPT] * 3
        await asyncio.to_thread(keeper.close)
        assert await resumed(driver) < 5
        answers = await driver.record([(hold, Completed()) for hold in held])
        assert answers == [Recorded.APPLIED] * 3
        counts = await driver.counts()
        assert (counts.pending, counts.completed) == (15, 5)


async def test_a_server_that_is_away_is_unavailable_and_then_used_again(
    own_server: PostgresServer,
) -> None:
    async with opened(own_server.url) as driver:
        await driver.enqueue(jobs(1))
        own_server.kill()
        for _ in range(3):
            await refused(lambda: claim(driver), ambiguous=None)
        assert "cannot be reached" in await refused(lambda: claim(driver))
        own_server.start()
        assert await resumed(driver) < 5
        assert len(await claim(driver)) == 1


async def test_a_connection_cut_under_a_statement_is_ambiguous(
    postgres_server: PostgresServer,
) -> None:
    """It was waiting for a lock, so that it was not done; the driver cannot know."""
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        with postgres_server.client() as client:
            client.execute("BEGIN")
            client.execute(f"LOCK TABLE {schema}.jobs".encode())
            call = asyncio.ensure_future(driver.enqueue(jobs(1)))
            await until(lambda: bool(sessions(postgres_server, f'%"{schema}".enqueue%')))
            for pid in sessions(postgres_server, f'%"{schema}".enqueue%'):
                postgres_server.ask("SELECT pg_terminate_backend(%s)", pid)
            await refused(lambda: call, ambiguous=True)
        await driver.enqueue(jobs(1))  # the same again, as the front does
        assert (await driver.counts()).pending == 1


async def test_a_pooler_whose_server_is_away_is_unavailable_and_then_used_again(
    own_server: PostgresServer,
) -> None:
    with pooling(own_server) as pooler:
        async with opened(pooler.url, timeout=2.0) as driver:
            await driver.enqueue(jobs(1))
            own_server.kill()
            await refused(lambda: claim(driver), ambiguous=None)
            own_server.start()
            assert await resumed(driver) < 5
            assert len(await claim(driver)) == 1


# --- alive, but of no use -----------------------------------------------------------------------


async def test_a_read_only_server_is_unavailable_and_left(own_server: PostgresServer) -> None:
    """As after a failover that kept the connections: one call finds it out, for all of them."""
    async with opened(own_server.url) as driver:
        await driver.enqueue(jobs(3))
        await asyncio.gather(*(driver.counts() for _ in range(8)))
        (first,) = await claim(driver, 1)
        own_server.read_only(True)
        before = set(sessions(own_server))
        assert "read-only" in await refused(lambda: driver.enqueue(jobs(1, "more")))
        await until(lambda: not before & set(sessions(own_server)))
        await refused(lambda: claim(driver))
        await refused(lambda: driver.record([(first.hold, Completed())]))
        keeper = driver.keeper_handle()
        with pytest.raises(StoreUnavailable):
            await asyncio.to_thread(keeper.extend, [first.hold], 30.0)
        assert (await driver.counts()).pending == 2  # to look is possible
        own_server.read_only(False)
        assert await asyncio.to_thread(keeper.extend, [first.hold], 30.0) == [Kept.KEPT]
        await asyncio.to_thread(keeper.close)
        answer = await driver.exchange([(first.hold, Completed())], request())
        assert answer.recorded == (Recorded.APPLIED,)
        assert len(answer.claims) == 2


async def test_the_listener_leaves_a_read_only_server_too(own_server: PostgresServer) -> None:
    async with opened(own_server.url) as driver:
        await driver.wait(["default"], 0.2)
        (listening,) = sessions(own_server, "LISTEN%")
        own_server.read_only(True)
        await refused(lambda: driver.enqueue(jobs(1)))
        own_server.read_only(False)
        await until(lambda: sessions(own_server, "LISTEN%") not in ([], [listening]))


async def test_a_network_that_loses_answers_falls_silent_or_refuses_is_survived(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I14: the same again is stored once, whether it had been sent or not."""
    monkeypatch.setattr("tenure.drivers.postgres.client._CONNECT_TIMEOUT", 0.5)
    async with Relay("127.0.0.1", postgres_server.port) as relay:
        url = f"postgresql://postgres@{relay.host}:{relay.port}/postgres"
        async with opened(url, timeout=0.5) as driver:
            await lost_and_repeated(driver, relay)


async def test_a_call_that_is_not_answered_ends_in_time(postgres_server: PostgresServer) -> None:
    """The server process is frozen; others of the pool still serve."""
    schema = fresh()
    async with opened(postgres_server.url, schema, timeout=0.3) as driver:
        await driver.counts()
        (backend,) = sessions(postgres_server, f'%"{schema}".counts%')
        os.kill(backend, signal.SIGSTOP)
        try:
            begun = time.monotonic()
            await refused(lambda: driver.enqueue(jobs(1)), ambiguous=True)
            assert time.monotonic() - begun < 2
            await driver.enqueue(jobs(1))
        finally:
            os.kill(backend, signal.SIGCONT)
        assert (await driver.counts()).pending == 1


async def test_callers_that_wait_for_a_connection_wait_no_longer_than_the_time_limit(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema, timeout=0.5, pool_size=1) as driver:
        with postgres_server.client() as client:
            client.execute("BEGIN")
            client.execute(f"LOCK TABLE {schema}.jobs".encode())
            begun = time.monotonic()
            calls = [driver.get("a") for _ in range(20)]
            errors = await asyncio.gather(*calls, return_exceptions=True)
            assert time.monotonic() - begun < 3
            assert {type(error) for error in errors} == {StoreUnavailable}
            assert any("pool_size" in str(error) for error in errors)
        assert await driver.get("a") is None
        await asyncio.gather(*(driver.get("a") for _ in range(20)))


async def test_a_locked_table_stops_the_keeper_no_longer_than_the_time_limit(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema, timeout=0.5) as driver:
        await driver.enqueue(jobs(1))
        (claimed,) = await claim(driver)
        keeper = driver.keeper_handle()
        with postgres_server.client() as client:
            client.execute("BEGIN")
            client.execute(f"LOCK TABLE {schema}.jobs".encode())
            begun = time.monotonic()
            with pytest.raises(StoreUnavailable):
                await asyncio.to_thread(keeper.extend, [claimed.hold], 30.0)
            assert time.monotonic() - begun < 3
        assert await asyncio.to_thread(keeper.extend, [claimed.hold], 30.0) == [Kept.KEPT]
        await asyncio.to_thread(keeper.close)


# --- rolled back --------------------------------------------------------------------------------


async def test_a_deadlock_is_tried_again_inside(postgres_server: PostgresServer) -> None:
    """The driver locks in the order of ids; somebody else does not.

    The server process that has waited for its `deadlock_timeout` looks for a circle, once.
    """
    schema = fresh()
    async with opened(f"{postgres_server.url}?deadlock_timeout=2s", schema) as driver:
        await driver.enqueue(jobs(2))
        with postgres_server.client() as client:
            client.execute("BEGIN")
            client.execute("SET LOCAL deadlock_timeout = '60s'")  # the other is the one to go
            lock = f"SELECT FROM {schema}.jobs WHERE id = %s FOR UPDATE".encode()
            client.execute(lock, ["job-1"])
            call = asyncio.ensure_future(driver.cancel(["job-0", "job-1"]))
            await until(lambda: bool(sessions(postgres_server, f'%"{schema}".cancel%')))
            await until(lambda: waits(postgres_server, schema))
            await asyncio.to_thread(client.execute, lock, ["job-0"])
            assert not call.done()
            client.execute("COMMIT")
        assert [str(answer) for answer in await call] == ["done", "done"]


def waits(server: PostgresServer, schema: str) -> bool:
    return bool(
        server.ask(
            "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ILIKE %s",
            f'%"{schema}".%',
        )
    )


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
async def test_conflicts_at_a_stricter_isolation_are_tried_again_inside(
    own_server: PostgresServer, level: str
) -> None:
    """Where the administrator made it the default, nobody sees a serialization failure."""
    own_server.ask(f"ALTER SYSTEM SET default_transaction_isolation = '{level}'")
    own_server.ask("SELECT pg_reload_conf()")
    schema = fresh()
    async with opened(own_server.url, schema) as one, opened(own_server.url, schema) as other:
        await one.enqueue(jobs(60))
        taken: list[str] = []

        async def work(driver: PostgresDriver) -> None:
            while claims := await claim(driver, 3):
                taken.extend(claimed.job.id for claimed in claims)
                answers = await driver.record([(c.hold, Completed()) for c in claims])
                assert answers == [Recorded.APPLIED] * len(claims)

        await asyncio.gather(*(work(driver) for driver in (one, other, one, other)))
        assert sorted(taken) == sorted(job.id for job in jobs(60))


async def test_a_conflict_that_does_not_end_is_unavailable(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        postgres_server.ask(
            f"CREATE FUNCTION {schema}.never() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE serialization_failure; END $$"
        )
        postgres_server.ask(
            f"CREATE TRIGGER never BEFORE INSERT ON {schema}.jobs EXECUTE FUNCTION {schema}.never()"
        )
        await refused(lambda: driver.enqueue(jobs(1)))
        assert (await driver.counts()).pending == 0


async def test_a_refusal_of_the_server_is_definite(postgres_server: PostgresServer) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        postgres_server.ask(f"DROP SCHEMA {schema} CASCADE")
        with pytest.raises(StoreError, match="dropped while in use") as caught:
            await driver.claim(request())
        assert not isinstance(caught.value, StoreUnavailable)


async def test_text_that_the_server_cannot_store_is_refused_alone(
    postgres_server: PostgresServer,
) -> None:
    """A NUL in a name: who calls at the same moment does not notice."""
    async with opened(postgres_server.url) as driver:
        calls = [[job] for job in jobs(5)] + [[NewJob(id="bad", name="a\0b")]]
        answers = await asyncio.gather(
            *(driver.enqueue(call) for call in calls), return_exceptions=True
        )
        assert [isinstance(answer, StoreError) for answer in answers] == [False] * 5 + [True]
        assert not isinstance(answers[5], StoreUnavailable)
        assert (await driver.counts()).pending == 5


async def test_cancelled_calls_leave_the_driver_usable(postgres_server: PostgresServer) -> None:
    async with opened(postgres_server.url) as driver:
        for turn in range(20):
            call = asyncio.ensure_future(driver.enqueue([NewJob(id=f"{turn}", name="work")]))
            other = asyncio.ensure_future(claim(driver, 0))
            for _ in range(turn % 5):
                await asyncio.sleep(0)
            call.cancel()
            other.cancel()
            await asyncio.wait([call, other])
        await driver.enqueue(jobs(1))
        assert await driver.get("job-0") is not None
        assert (await driver.list(JobFilter(), None, 100)).cursor is None
