"""A23: cached script hashes were stale after a flush; every operation failed until a restart.

The kind of fault: a script cache that is taken for granted. Here a script that is not there is sent
again, and nobody hears of it.

https://github.com/Openpanel-dev/groupmq/issues/16
"""

import asyncio

import tenure
from tests.regressions.sites import live_site
from tests.regressions.standing import standing_checks
from tests.servers.redis import RedisServer

JOBS = 200  # 500 in the recipe


async def test_jobs_run_through_while_scripts_are_flushed(redis_server: RedisServer) -> None:
    """No error reaches a dispatch, a claim, an extension, a completion or a retry."""
    async with live_site(f"{redis_server.url}?namespace=a23") as site:
        watched = site.worker()
        starts: list[int] = []

        async def work(number: int, job: tenure.RunningJob) -> None:
            starts.append(number)
            await site.clock.sleep(0.02)
            if number % 10 == 0 and job.attempt == 1:
                raise ValueError("not yet")

        policy = tenure.RetryPolicy(max_attempts=2, base=0.05)
        watched.register("work", work, retry=policy)

        async def flush() -> None:
            with redis_server.client() as client:
                while True:
                    client.script_flush()
                    await asyncio.sleep(0.05)

        async with watched.running():
            flushing = asyncio.ensure_future(flush())
            jobs = [await site.queue.dispatch("work", number) for number in range(JOBS)]
            ids = [job.id for job in jobs]
            await site.until_state("completed", *ids)
            flushing.cancel()
            await asyncio.wait([flushing])
            assert len(starts) == JOBS + JOBS // 10
            failures = {"JobFailed": JOBS // 10}
            await standing_checks(site, watched, ids=ids, swallowed=failures)
