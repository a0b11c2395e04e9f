"""Hints: what another connection or process enqueues ends every wait."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tenure.types import ManualRetry, Move, NewJob
from tests.drivers.redis_extras.support import claim, jobs, opened, until
from tests.servers.redis import RedisServer, running

ENQUEUE = """
import asyncio, logging, sys
from tenure.clock import SystemClock
from tenure.drivers.redis import RedisDriver
from tenure.types import NewJob

async def main():
    logging.getLogger("tenure.redis").setLevel(logging.ERROR)
    driver = RedisDriver(sys.argv[1], namespace=sys.argv[2], clock=SystemClock())
    await driver.open()
    await driver.enqueue([NewJob(id="theirs", name="work")])
    await driver.close()

asyncio.run(main())
"""


async def reading(server: RedisServer, number: int) -> None:
    """Until so many connections block on the server."""
    with server.client() as client:
        await until(lambda: client.info("clients")["blocked_clients"] == number)


async def test_a_job_of_another_process_ends_a_wait(redis_server: RedisServer) -> None:
    async with opened(redis_server, "theirs") as driver:
        waiting = asyncio.ensure_future(driver.wait(["default"], 30.0))
        await reading(redis_server, 1)
        command = [sys.executable, "-W", "error", "-c", ENQUEUE, redis_server.url, "theirs"]
        done = await asyncio.to_thread(
            subprocess.run, command, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        assert await waiting
        assert len(await claim(driver)) == 1


async def test_all_that_wait_learn_of_a_job(redis_server: RedisServer) -> None:
    """No token that one of them takes away: two drivers, and two waits of one of them."""
    async with opened(redis_server, "all") as one, opened(redis_server, "all") as other:
        waits = [
            asyncio.ensure_future(driver.wait(queues, 30.0))
            for driver in (one, one, other)
            for queues in (["default"], ["other", "default"])
        ]
        await reading(redis_server, 4)
        await one.enqueue(jobs(1))
        assert await asyncio.gather(*waits) == [True] * 6


async def test_a_job_enqueued_between_two_waits_is_seen(redis_server: RedisServer) -> None:
    async with opened(redis_server) as driver, opened(redis_server, "elsewhere") as elsewhere:
        for turn in range(5):
            waiting = asyncio.ensure_future(driver.wait(["default"], 30.0))
            await driver.enqueue(jobs(1, f"turn-{turn}"))
            assert await waiting
        await elsewhere.enqueue(jobs(1))
        while await driver.wait(["default"], 0.05):
            pass  # what was told before
        assert not await driver.wait(["default"], 0.01)
        assert not await driver.wait([], 0.01)


async def test_a_cancelled_wait_leaves_nothing_behind(redis_server: RedisServer) -> None:
    async with opened(redis_server) as driver:
        for turn in range(10):
            waiting = asyncio.ensure_future(driver.wait(["default"], 30.0))
            for _ in range(turn % 4):
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
        await reading(redis_server, 1)
        with redis_server.client() as client:
            assert client.info("clients")["blocked_clients"] == 1
        waiting = asyncio.ensure_future(driver.wait(["default"], 30.0))
        await driver.enqueue(jobs(1))
        assert await waiting


async def test_closing_ends_a_wait_and_its_connection(redis_server: RedisServer) -> None:
    async with opened(redis_server) as driver:
        waiting = asyncio.ensure_future(driver.wait(["default"], 30.0))
        await reading(redis_server, 1)
        await driver.close()
        assert await waiting
        with redis_server.client() as client:
            await until(lambda: len(client.client_list()) == 1)


async def test_a_lost_connection_is_set_up_again(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        async with opened(server) as driver:
            waiting = asyncio.ensure_future(driver.wait(["default"], 30.0))
            await reading(server, 1)
            server.kill()
            assert not await driver.wait(["default"], 0.1)  # by its timeout
            server.start()
            await reading(server, 1)
            await driver.enqueue(jobs(1))
            assert await waiting


@pytest.mark.parametrize("how", ["retry", "resume", "move"])
async def test_other_ways_to_become_claimable_end_a_wait(
    redis_server: RedisServer, how: str
) -> None:
    async with opened(redis_server) as driver:
        await driver.enqueue([NewJob(id="a", name="work", queue="q"), *jobs(1, "b", "q")])
        await driver.pause("q", True)
        await driver.cancel(["a"])
        while await driver.wait(["q", "r"], 0.05):
            pass
        waiting = asyncio.ensure_future(driver.wait(["q", "r"], 30.0))
        await asyncio.sleep(0)
        match how:
            case "retry":
                await driver.retry([ManualRetry("a")])
            case "resume":
                await driver.pause("q", False)
            case _:
                await driver.move([Move(job_id="b-0", queue="r")])
        assert await waiting
