"""Lifelines in sessions: who is seen to be gone, who comes back in time, and what is left."""

import asyncio

from tenure.drivers.postgres import PostgresDriver
from tenure.errors import StoreUnavailable
from tenure.types import Claim
from tests.drivers.postgres_extras.support import (
    claim,
    fresh,
    jobs,
    opened,
    sessions,
    until,
)
from tests.servers.postgres import PostgresServer

LEFT = "SELECT extract(epoch FROM min(lease_until) - clock_timestamp())::float8 FROM {}.jobs"


def left(server: PostgresServer, schema: str) -> float:
    """In how many seconds the first lease runs out."""
    return float(server.ask(LEFT.format(schema))[0][0])


def rows(server: PostgresServer, schema: str) -> list[tuple[str, bool]]:
    """The workers, each with whether it is tied to this run of the server."""
    text = f"SELECT worker, server = pg_postmaster_start_time() FROM {schema}.lifelines ORDER BY 1"
    return [(worker, current) for worker, current in server.ask(text)]


def lost(server: PostgresServer, schema: str) -> None:
    """What a worker leaves behind that is gone, without one."""
    server.ask(
        f"INSERT INTO {schema}.lifelines (worker, lock, server) SELECT 'w', "
        f"hashtextextended('tenure.lifeline.\"{schema}\".w', 0), pg_postmaster_start_time()"
    )


async def held(driver: PostgresDriver, lease: float = 60.0) -> list[Claim]:
    await driver.enqueue(jobs(2))
    return await claim(driver, lease=lease)


async def shortens(driver: PostgresDriver) -> float | None:
    """With the connections that the driver has after a restart."""
    for _ in range(10):
        try:
            return await driver.shorten()
        except StoreUnavailable:
            await asyncio.sleep(0.05)
    raise AssertionError("it does not answer")


async def test_a_session_that_was_ended_is_back_at_once_and_no_lease_is_lost(
    postgres_server: PostgresServer,
) -> None:
    """I6: the worker lives; others may have looked in between."""
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        lifeline = await driver.lifeline("w")
        assert lifeline is not None
        await held(driver)
        like = f'SELECT "{schema}".tie(%'
        [before] = sessions(postgres_server, like)
        postgres_server.ask("SELECT pg_terminate_backend(%s)", before)
        await shortens(driver)
        await until(lambda: sessions(postgres_server, like) not in ([], [before]))
        async with asyncio.timeout(10.0):
            # The session is seen before it has the lock.
            while await driver.shorten() is not None:  # noqa: ASYNC110  # a server has no event
                await asyncio.sleep(0.01)
        await until(lambda: left(postgres_server, schema) > 30)
        assert await driver.shorten() is None
        await lifeline.close()


async def test_a_worker_that_comes_back_has_its_leases_as_they_were(
    postgres_server: PostgresServer,
) -> None:
    """I6: also when they were shortened; those that are short anyway stay so."""
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        await held(driver)
        await driver.enqueue(jobs(1, "short"))
        await claim(driver, lease=2.0)
        lost(postgres_server, schema)
        shortened = await driver.shorten()
        assert shortened is not None
        assert shortened <= 2.0
        ends = f"SELECT lease_until > clock_timestamp() + interval '30 s' FROM {schema}.jobs"
        assert set(postgres_server.ask(ends)) == {(False,)}
        lifeline = await driver.lifeline("w")
        assert lifeline is not None
        assert sorted(postgres_server.ask(ends)) == [(False,), (True,), (True,)]
        await lifeline.close()


async def test_what_a_worker_that_is_gone_leaves_goes_with_its_last_hold(
    postgres_server: PostgresServer,
) -> None:
    """Whoever reclaims for it may be gone too before it has."""
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        await held(driver)
        lost(postgres_server, schema)
        for _ in range(2):
            seconds = await driver.shorten()
            assert seconds is not None
            assert 0 < seconds <= 5
        assert rows(postgres_server, schema) == [("w", True)]
        postgres_server.ask(f"UPDATE {schema}.jobs SET lease_until = clock_timestamp()")
        assert await driver.shorten() == 0.0
        assert len(await driver.reclaim(10, [0.0])) == 2
        assert await driver.shorten() is None
        assert rows(postgres_server, schema) == []


async def test_nothing_is_concluded_from_a_session_that_ended_with_its_server(
    own_server: PostgresServer,
) -> None:
    """I6: whoever lives ties itself anew; of whoever does not, the lease decides."""
    schema = fresh()
    async with opened(own_server.url, schema) as driver:
        lifeline = await driver.lifeline("living")
        assert lifeline is not None
        await held(driver)
        lost(own_server, schema)
        own_server.restart()
        await until(lambda: ("living", True) in rows(own_server, schema))
        assert await shortens(driver) is None
        assert left(own_server, schema) > 30
        assert rows(own_server, schema) == [("living", True)]
        await lifeline.close()


async def test_a_lifeline_that_is_given_up_leaves_neither_row_nor_session(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        lifeline = await driver.lifeline("w")
        assert lifeline is not None
        assert rows(postgres_server, schema) == [("w", True)]
        await lifeline.close()
        await lifeline.close()
        assert rows(postgres_server, schema) == []
        await until(lambda: not sessions(postgres_server, f'%"{schema}".tie%'))


async def test_a_lifeline_that_is_dropped_is_given_up(postgres_server: PostgresServer) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        lifeline = await driver.lifeline("w")
        assert rows(postgres_server, schema) == [("w", True)]
        del lifeline
        await until(lambda: rows(postgres_server, schema) == [])


async def test_through_a_pooler_there_is_none_and_others_are_still_seen_to_be_gone(
    postgres_server: PostgresServer,
) -> None:
    """A session of the pooler says nothing of a worker."""
    schema = fresh()
    async with opened(postgres_server.url, schema, pooled=True) as driver:
        assert await driver.lifeline("stranger") is None
        assert rows(postgres_server, schema) == []
        await held(driver)
        assert await driver.shorten() is None
        lost(postgres_server, schema)
        assert await driver.shorten() is not None
