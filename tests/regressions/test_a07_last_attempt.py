"""A07: when the worker died in the last attempt that was allowed, the job ran for ever.

The kind of fault: an orphan at the limit of its attempts. Here whoever claims it next judges it
before the start, and ends it as any job ends.

https://github.com/karakeep-app/liteque/issues/4
"""

import asyncio

import pytest

import tenure
from tests.process.stage import Stage
from tests.regressions.lost import lose
from tests.regressions.sites import LEASE, Opening, Site, live_site
from tests.regressions.standing import standing_checks

BOUND = 2


async def given_up(site: Site, job: tenure.JobHandle) -> None:
    """A worker ends the job that two have died of, and starts it no more; its key is free."""
    watched = site.worker()
    starts: list[object] = []
    watched.register("gate", starts.append)
    async with watched.running():
        await site.until_state("failed", job.id)
        record = await site.queue.get(job.id)
        assert record.attempt == BOUND
        assert record.error is not None
        assert record.error.kind == "stalled"
        assert starts == []
        again = await site.queue.dispatch("gate", unique="key")
        assert again.created
        await site.until_state("completed", again.id)
        await standing_checks(site, watched, ids=[job.id, again.id], swallowed={"JobFailed": 1})


async def test_a_job_whose_last_attempt_was_lost_is_failed_and_not_started(
    open_site: Opening,
) -> None:
    """I4, I8, W20: on every store, where workers are lost without a trace. (Batches: later.)"""
    async with open_site() as site:
        job = await site.queue.dispatch("gate", unique="key", max_attempts=BOUND)
        for _ in range(BOUND):
            assert await lose(site, 1) == [job.id]
        await given_up(site, job)


@pytest.mark.slow
async def test_killed_processes_do_not_leave_a_job_running_for_ever(each_stage: Stage) -> None:
    """The same with SIGKILL, in each attempt."""
    async with live_site(each_stage.url) as site:
        job = await site.queue.dispatch("gate", unique="key", max_attempts=BOUND)
        for attempt in range(1, BOUND + 1):
            doomed = await asyncio.to_thread(each_stage.start, lease=LEASE)
            await asyncio.to_thread(each_stage.wait_for, "start", 1, attempt=attempt)
            doomed.kill()
        await given_up(site, job)
        assert len(each_stage.ledger.read("start")) == BOUND
