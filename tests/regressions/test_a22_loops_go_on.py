"""A22: one "busy running a script" reply ended the timer that promoted delayed jobs, for good.

The kind of fault: one failed call stops a loop of the background. Here each loop tells of it and
goes on. (There is no promotion to stop: what is due is found by the claim.)

https://github.com/OptimalBits/bull/issues/2015
"""

import asyncio

from tests.regressions.beside import beside
from tests.regressions.lost import lose
from tests.regressions.sites import LEASE, Opening, live_site
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


def holding_up(server: RedisServer, seconds: float) -> None:
    """Keep the server busy with a script that is as long."""
    script = (
        "local t = redis.call('TIME'); local till = t[1] * 1000000 + t[2] + ARGV[1] * 1000000;"
        "repeat t = redis.call('TIME') until t[1] * 1000000 + t[2] >= till"
    )
    with server.client() as client:
        client.eval(script, 0, seconds)


async def test_each_loop_goes_on_after_one_error(open_site: Opening) -> None:
    """W8, W16, W18, W26: whatever call fails once, due, recovered and scheduled jobs run."""
    async with open_site() as site:
        queue, faults = await beside(site)
        ran: list[str] = []

        async def work(payload: str) -> None:
            ran.append(payload)

        async def lasting(payload: object) -> None:
            await site.clock.sleep(1.5 * LEASE)

        async with queue:
            watched = Watched(queue, {"lease": LEASE, "poll_interval": 0.2})
            watched.register("work", work)
            watched.register("lasting", lasting)
            orphan = await site.queue.dispatch("work", "orphan")
            assert await lose(site, 1) == [orphan.id]
            for loop in LOOPS:
                faults.fail(*loop)
            await site.queue.schedule("s", "@every 1s", "work", "scheduled")
            due = await site.queue.dispatch("work", "due", delay=0.5)
            long = await site.queue.dispatch("lasting")
            async with watched.running() as handle:
                await site.until_state("completed", orphan.id, due.id, long.id)
                await site.until_true(
                    lambda: ran.count("scheduled") >= 2, lambda: f"{ran}, {watched.reported}"
                )
                await site.queue.pause_schedule("s")
                assert handle.healthy
                assert ran.count("orphan") == ran.count("due") == 1
                assert (await site.queue.get(long.id)).attempt == 1
                unfired = {name for plan in faults.unfired for name in plan.operations}
                assert unfired <= {"fire", "prune", "report", "exchange", "reclaim"}, unfired

                async def all_done() -> bool:
                    counts = await site.queue.counts()
                    return counts.pending + counts.scheduled + counts.processing == 0

                await site.until(all_done, lambda: "the last tick's job")
                ids = [job.id for job in (await site.queue.list(limit=100)).jobs]
                await standing_checks(site, watched, ids=ids, swallowed=None)


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
            await asyncio.to_thread(holding_up, redis_server, 1.0)
            free = site.clock.monotonic()
            await site.until_state("completed", job.id, seconds=5.0)
            assert len(started) == 1
            assert started[0] >= free - 0.1
            await standing_checks(site, watched, ids=[job.id], swallowed=None)
