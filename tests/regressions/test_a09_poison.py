"""A09: a job that killed its process was recovered and killed the next one, endlessly.

The kind of fault: a poison job. Here its starts are bounded, those after the first recovery come
ever later, and whoever would start it too often ends it instead.

https://github.com/sidekiq/sidekiq/issues/4633
"""

import asyncio

import pytest

import tenure
from tests.process.stage import Stage
from tests.regressions.sites import LEASE, Opening, Site, live_site
from tests.regressions.standing import standing_checks

BOUND = 3


async def given_up(site: Site, job: tenure.JobHandle) -> None:
    """It is failed with an entry for each death, not started, and others run."""
    watched = site.worker()
    starts: list[object] = []
    watched.register("die", starts.append)
    async with watched.running():
        await site.until_state("failed", job.id, seconds=60.0)
        record = await site.queue.get(job.id)
        assert record.attempt == BOUND
        assert record.error is not None
        assert record.error.kind == "stalled"
        past = await site.queue.history(job.id)
        assert [entry.outcome for entry in past].count("stalled") == BOUND
        assert starts == []
        await standing_checks(site, watched, ids=[job.id], swallowed={"JobFailed": 1})


async def test_a_job_that_loses_every_worker_is_failed_after_its_last_start(
    open_site: Opening,
) -> None:
    """I4, W20: recovered as workers do it, with their delays: 0, 2 and 10 s (here: a tenth)."""
    async with open_site() as site:
        driver = await site.driver()
        job = await site.queue.dispatch("die", max_attempts=BOUND)
        delays = (0.0, 0.2, 1.0)
        waits: list[float] = []
        for attempt in range(1, BOUND + 1):
            claims: list[tenure.Claim] = []

            async def claimed(attempt: int = attempt, claims: list[tenure.Claim] = claims) -> bool:
                request = tenure.ClaimRequest(
                    token=f"doomed-{attempt}",
                    queues=(tenure.QueueLimit("default", 1),),
                    limit=1,
                    worker="doomed",
                    lease=0.2,
                )
                claims += await driver.claim(request)
                return bool(claims)

            began = site.clock.monotonic()
            await site.until(claimed, lambda: "it is not due")
            waits.append(site.clock.monotonic() - began)
            assert claims[0].attempt == attempt

            async def reclaimed() -> bool:
                return bool(await driver.reclaim(1, delays))

            await site.until(reclaimed, lambda: "its lease goes on")
        assert waits[2] >= 0.1
        await given_up(site, job)


@pytest.mark.slow
async def test_a_handler_that_ends_its_process_ends_as_many_as_it_may(each_stage: Stage) -> None:
    """The same with `os._exit`, and somebody who starts the worker again each time."""
    stage = each_stage
    async with live_site(stage.url) as site:
        job = await site.queue.dispatch("die", max_attempts=BOUND)
        for attempt in range(1, BOUND + 1):
            doomed = await asyncio.to_thread(stage.start, lease=LEASE)
            assert await asyncio.to_thread(doomed.wait) == 137
            assert len(stage.ledger.read("start")) == attempt
        await given_up(site, job)
        assert len(stage.ledger.read("start")) == BOUND
