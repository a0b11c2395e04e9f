"""Hints: what another connection or process enqueues ends every wait, within milliseconds."""

import asyncio
import logging
import time

import pytest

from tenure.drivers.postgres import PostgresDriver
from tenure.types import ManualRetry, Move, NewJob
from tests.drivers.postgres_extras.support import (
    claim,
    fresh,
    jobs,
    opened,
    run_script,
    sessions,
    until,
)
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import PostgresServer

ENQUEUE = """
import asyncio, sys
from tenure.clock import SystemClock
from tenure.drivers.postgres import PostgresDriver
from tenure.types import NewJob

async def main():
    driver = PostgresDriver(sys.argv[1], schema=sys.argv[2], clock=SystemClock())
    await driver.open()
    await driver.enqueue([NewJob(id="theirs", name="work")])
    await driver.close()

asyncio.run(main())
"""


async def listening(driver: PostgresDriver) -> None:
    """Until it listens: that it begins to is a hint of its own."""
    assert await driver.wait(["nothing"], 10.0)
    while await driver.wait(["nothing"], 0.02):
        pass


async def listening_anew(server: PostgresServer, listen: str, gone: int) -> None:
    await until(lambda: sessions(server, listen) not in ([], [gone]))


async def seconds(waiting: "asyncio.Future[bool]", since: float) -> float:
    assert await waiting
    return time.monotonic() - since


async def test_a_job_of_another_process_ends_a_wait(postgres_server: PostgresServer) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        await listening(driver)
        waiting = asyncio.ensure_future(driver.wait(["default"], 30.0))
        await run_script(ENQUEUE, postgres_server.url, schema)
        assert await waiting
        assert len(await claim(driver)) == 1


async def test_a_job_of_another_driver_ends_a_wait_in_milliseconds(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    url = postgres_server.url
    async with opened(url, schema) as driver, opened(url, schema) as other:
        await listening(driver)
        taken: list[float] = []
        for turn in range(9):
            waiting = asyncio.ensure_future(driver.wait(["default"], 30.0))
            await asyncio.sleep(0.01)  # it waits, and the pause between notices is over
            begun = time.monotonic()
            await other.enqueue(jobs(1, f"turn-{turn}"))
            taken.append(await seconds(waiting, begun))
        assert sorted(taken)[4] < 0.1  # polling would take a second or more


async def test_all_that_wait_learn_of_a_job(postgres_server: PostgresServer) -> None:
    """No token that one of them takes away: two drivers, and two waits of one of them."""
    schema = fresh()
    url = postgres_server.url
    async with opened(url, schema) as one, opened(url, schema) as other:
        await listening(one)
        await listening(other)
        waits = [
            asyncio.ensure_future(driver.wait(queues, 30.0))
            for driver in (one, one, other)
            for queues in (["default"], ["other", "default"])
        ]
        await asyncio.sleep(0)
        await one.enqueue(jobs(1))
        assert await asyncio.gather(*waits) == [True] * 6


async def test_a_lost_listener_is_set_up_again_and_polled_for_meanwhile(
    postgres_server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="tenure.postgres")
    schema = fresh()
    url = postgres_server.url
    async with opened(url, schema) as driver, opened(url, schema) as other:
        await listening(driver)
        for turn in range(2):
            listen = f'LISTEN%"tenure.{schema}"%'
            (listener,) = sessions(postgres_server, listen)
            postgres_server.ask("SELECT pg_terminate_backend(%s)", listener)
            waiting = asyncio.ensure_future(driver.wait(["default"], 30.0))
            begun = time.monotonic()
            await other.enqueue(jobs(1, f"turn-{turn}"))
            assert await seconds(waiting, begun) < 5
            await listening_anew(postgres_server, listen, listener)
            while await driver.wait(["nothing"], 0.05):
                pass
    said = [r.getMessage() for r in caplog.records if r.name == "tenure.postgres"]
    assert ["lost the connection" in text for text in said] == [True, True]


async def test_a_restarted_server_is_listened_to_again(own_server: PostgresServer) -> None:
    async with opened(own_server.url) as driver:
        await listening(driver)
        waiting = asyncio.ensure_future(driver.wait(["default"], 30.0))
        own_server.restart()
        await until(lambda: bool(sessions(own_server, "LISTEN%")))
        await waiting
        await driver.enqueue(jobs(1))
        assert len(await claim(driver)) == 1


async def test_through_a_pooler_waiting_is_looking_now_and_then(pgbouncer: PgBouncer) -> None:
    schema = fresh()
    async with opened(pgbouncer.url, schema) as driver, opened(pgbouncer.url, schema) as other:
        assert not await driver.wait(["default"], 0.05)
        waiting = asyncio.ensure_future(driver.wait(["default"], 30.0))
        begun = time.monotonic()
        await other.enqueue(jobs(1))
        assert await seconds(waiting, begun) < 5
        assert sessions(pgbouncer.server, f'LISTEN%"tenure.{schema}"%') == []


async def test_what_falls_due_while_nobody_tells_is_seen_by_looking(pgbouncer: PgBouncer) -> None:
    """Of a better priority too, and not where its queue is paused."""
    async with opened(pgbouncer.url) as driver:
        await driver.enqueue([NewJob(id="a", name="work", delay=0.3, priority=5)])
        await driver.enqueue([NewJob(id="b", name="work", delay=300.0, priority=9)])
        await driver.pause("default", True)
        while await driver.wait(["default"], 0.2):
            pass
        assert not await driver.wait(["default"], 0.7)
        await driver.pause("default", False)
        assert await driver.wait(["default"], 5.0)


async def test_a_cancelled_wait_leaves_nothing_behind(postgres_server: PostgresServer) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        await listening(driver)
        for turn in range(10):
            waiting = asyncio.ensure_future(driver.wait(["default"], 30.0))
            for _ in range(turn % 4):
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
        assert len(sessions(postgres_server, f'LISTEN%"tenure.{schema}"%')) == 1


async def test_closing_ends_a_wait_and_its_connection(postgres_server: PostgresServer) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        await listening(driver)
        waiting = asyncio.ensure_future(driver.wait(["default"], 30.0))
        await asyncio.sleep(0)
        await driver.close()
        assert await waiting
        await until(lambda: not sessions(postgres_server, f'LISTEN%"tenure.{schema}"%'))


async def test_a_burst_is_told_in_few_notices(postgres_server: PostgresServer) -> None:
    """Each is a statement with a commit: one per job would cost as much as the jobs."""
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        with postgres_server.client() as client:
            client.execute(f'LISTEN "tenure.{schema}"'.encode())
            for turn in range(50):
                await driver.enqueue(jobs(1, f"turn-{turn}"))
            heard = await asyncio.to_thread(
                lambda: list(client.notifies(timeout=0.3, stop_after=None))
            )
    assert 1 <= len(heard) < 50
    assert {notice.payload for notice in heard} == {""}


@pytest.mark.parametrize("how", ["retry", "resume", "move"])
async def test_other_ways_to_become_claimable_end_a_wait_elsewhere(
    postgres_server: PostgresServer, how: str
) -> None:
    schema = fresh()
    url = postgres_server.url
    async with opened(url, schema) as driver, opened(url, schema) as other:
        await driver.enqueue([NewJob(id="a", name="work", queue="q"), *jobs(1, "b", "q")])
        await driver.pause("q", True)
        await driver.cancel(["a"])
        await listening(driver)
        waiting = asyncio.ensure_future(driver.wait(["q", "r"], 30.0))
        await asyncio.sleep(0)
        begun = time.monotonic()
        match how:
            case "retry":
                await other.retry([ManualRetry("a")])
            case "resume":
                await other.pause("q", False)
            case _:
                await other.move([Move(job_id="b-0", queue="r")])
        assert await seconds(waiting, begun) < 1
