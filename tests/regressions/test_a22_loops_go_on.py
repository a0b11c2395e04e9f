"""A22: one "busy running a script" reply ended the timer that promoted delayed jobs, for good.

The kind of fault: one failed call stops a loop of the background. Here each loop tells of it and
goes on. (There is no promotion to stop: what is due is found by the claim.)

https://github.com/OptimalBits/bull/issues/2015
"""

import asyncio

import pytest
import redis

import tenure
from tests.regressions.beside import Beside, beside
from tests.regressions.lost import abandon
from tests.regressions.sites import LEASE, Opening, Site, live_site
from tests.regressions.standing import standing_checks
from tests.regressions.watched import Watched
from tests.servers.redis import RedisServer

# What the loops call: to claim, record, wait, extend, reclaim, fire, prune and report.
LOOPS = [
    ("claim",),
    ("exchange",),
    ("record",),
    ("next_due",),
    ("wait",),
    ("keeper.extend",),
    ("expired",),
    ("reclaim",),
    ("schedules",),
    ("fire",),
    ("prune",),
    ("report",),
]


async def hold_up(server: RedisServer, seconds: float) -> None:
    """Keep the server busy with a script for as long; after 50 ms it tells others that it is."""
    with server.client() as client, server.client() as other:
        client.config_set("lua-time-limit", 50)
        script = asyncio.create_task(asyncio.to_thread(client.eval, "while true do end", 0))
        await asyncio.sleep(seconds)
        with pytest.raises(redis.ResponseError, match="BUSY"):
            other.ping()
        other.script_kill()
        with pytest.raises(redis.ResponseError, match="killed"):
            await script


async def test_each_loop_goes_on_after_one_error(open_site: Opening) -> None:
    """W8, W16, W18, W26: each of the calls fails once; due, recovered and scheduled jobs run."""
    async with open_site() as site:
        queue, faults = await beside(site)
        ran: list[str] = []

        async def work(payload: str) -> None:
            ran.append(payload)

        async def lasting(payload: object) -> None:
            await site.clock.sleep(1.5 * LEASE)

        async with queue:
            watched = Watched(queue, {"lease": LEASE, "poll_interval": 0.2, "concurrency": 2})
            watched.register("work", work)
            watched.register("lasting", lasting)
            orphan = await site.queue.dispatch("work", "orphan")
            assert await abandon(site, 1) == [orphan.id]
            for loop in LOOPS:
                faults.fail(*loop)
            await site.queue.schedule("s", "@every 1s", "work", "scheduled")
            due = await site.queue.dispatch("work", "due", delay=0.5)
            long = await site.queue.dispatch("lasting")
            async with watched.running() as handle:
                await each_has_failed(site, faults)
                await site.until_state("completed", orphan.id, due.id, long.id)
                before = ran.count("scheduled")
                await site.until_true(
                    lambda: ran.count("scheduled") >= before + 2,
                    lambda: f"{ran}, {watched.reported}",
                )
                await site.queue.pause_schedule("s")
                assert handle.healthy
                assert ran.count("orphan") == ran.count("due") == 1
                assert (await site.queue.get(long.id)).attempt == 1

                async def all_done() -> bool:
                    counts = await site.queue.counts()
                    return counts.pending + counts.scheduled + counts.processing == 0

                await site.until(all_done, lambda: "the last tick's job")
                ids = [job.id for job in (await site.queue.list(limit=1000)).jobs]
                await standing_checks(
                    site, watched, ids=ids, swallowed={"StoreUnavailable": len(LOOPS)}
                )


async def each_has_failed(site: Site, faults: Beside) -> None:
    """More and more jobs, until the worker has made each of the calls and met its fault."""

    async def look() -> bool:
        if not (await site.queue.counts()).pending:
            await site.queue.dispatch_many([tenure.Call("work", "more")] * 5)
        return not faults.unfired

    await site.until(look, lambda: f"not called: {faults.unfired}", seconds=60.0)


async def test_what_falls_due_while_the_server_runs_a_script_starts_when_it_is_free(
    redis_server: RedisServer,
) -> None:
    """Without any other dispatch. Shorter than in the recipe, where it is three seconds."""
    async with live_site(f"{redis_server.url}?namespace=a22") as site:
        watched = site.worker(lease=10.0)
        started: list[float] = []

        async def work(payload: object) -> None:
            started.append(site.clock.monotonic())

        watched.register("work", work)
        async with watched.running():
            job = await site.queue.dispatch("work", delay=0.5)
            await hold_up(redis_server, 1.0)
            free = site.clock.monotonic()
            await site.until_state("completed", job.id, seconds=5.0)
            assert len(started) == 1
            assert started[0] >= free - 0.1
            await standing_checks(
                site, watched, ids=[job.id], swallowed={"StoreUnavailable": range(1, 30)}
            )
