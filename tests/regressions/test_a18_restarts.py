"""A18: after a restart of the broker the worker reconnected, but never took another job.

The kind of fault: a reconnect without resuming. Here every loop goes on by itself, and handlers
that run are not interrupted.

https://github.com/celery/celery/issues/9054
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.postgres_extras.conftest import lent_server, own_server
from tests.regressions.sites import live_site
from tests.regressions.standing import standing_checks
from tests.servers.redis import running

__all__ = ["lent_server", "own_server"]

KEPT = ("--appendonly", "yes", "--appendfsync", "always")
CAP = 6.0  # seconds within which a job starts after the return


@pytest.mark.parametrize("store", ["redis", "postgres"])
async def test_a_busy_and_an_idle_worker_resume_after_kills_of_the_server(
    store: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """W8, W19: two kills (in the recipe three restarts), each with a dispatch after it."""
    if store == "redis":
        with running(tmp_path, *KEPT) as server:
            await restarted(server, f"{server.url}?namespace=a18")
    else:
        server = request.getfixturevalue("own_server")
        await restarted(server, f"{server.url}?schema=a18")


async def restarted(server: Any, url: str) -> None:
    async with live_site(url) as site:
        busy, idle = site.worker(lease=30.0, queues=["busy"]), site.worker(lease=30.0)
        gate = asyncio.Event()
        starts: list[str] = []

        async def work(payload: str) -> None:
            starts.append(payload)
            if payload == "long":
                await gate.wait()

        busy.register("work", work)
        idle.register("work", work)
        async with busy.running() as one, idle.running() as two:
            long = await site.queue.dispatch("work", "long", queue="busy")
            await site.until_true(lambda: starts == ["long"], lambda: f"{starts}")
            ids = [long.id]
            for _ in range(2):
                server.kill()
                await asyncio.sleep(0.3)
                await asyncio.to_thread(server.start)
                job = await site.queue.dispatch("work", "short")
                ids.append(job.id)
                await site.until_state("completed", job.id, seconds=CAP)
            gate.set()
            await site.until_state("completed", *ids)
            assert starts == ["long", "short", "short"]
            assert one.healthy
            assert two.healthy
            await standing_checks(
                site, idle, busy, ids=ids, swallowed={"StoreUnavailable": range(2, 60)}
            )
