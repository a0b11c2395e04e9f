"""A26: a job with a larger payload was refused, since the whole row was sent as a notification.

The kind of fault: a limit of the server that our own traffic hits. Here a notification names a
queue, and many jobs are not as many parameters.

https://github.com/saurabhnanda/odd-jobs/issues/42
"""

import pytest

import tenure
from tests.regressions.sites import Opening
from tests.regressions.standing import standing_checks

SIZES = [9_000, 1_000_000]
MANY = 20_000


async def test_large_payloads_wake_a_worker_and_come_through(open_site: Opening) -> None:
    """I10: it polls once in ten seconds, so that a hint is what wakes it."""
    async with open_site() as site:
        watched = site.worker(poll_interval=10.0)
        seen: list[int] = []

        async def work(payload: dict[str, str]) -> None:
            seen.append(len(payload["blob"]))

        watched.register("work", work)
        async with watched.running():
            ids: list[str] = []
            for size in SIZES:
                job = await site.queue.dispatch("work", {"blob": "x" * size})
                ids.append(job.id)
                await site.until_state("completed", job.id, seconds=5.0)
            assert seen == SIZES
            await standing_checks(site, watched, ids=ids)


@pytest.mark.slow
async def test_twenty_thousand_jobs_in_one_call_are_all_there(open_site: Opening) -> None:
    """I5, I15: no limit on parameters is hit. (No standing checks: they would run for a while.)"""
    async with open_site() as site:
        await site.queue.dispatch_many([tenure.Call("work", number) for number in range(MANY)])
        assert (await site.queue.counts()).pending == MANY
