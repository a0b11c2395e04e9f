"""A53: context variables were copied into threads of a pool, and jobs ended up sharing them.

The kind of fault: context that leaks. Here each attempt has a fresh copy of the worker's, on the
loop and in threads, and whatever it sets goes with it.

https://github.com/hatchet-dev/hatchet/issues/1711
"""

import logging
from contextvars import ContextVar

import pytest

import tenure
from tests.regressions.sites import Opening
from tests.regressions.standing import standing_checks

JOBS = 100
mark: ContextVar[str] = ContextVar("mark", default="nobody's")


async def test_each_job_starts_with_what_the_worker_started_with(
    open_site: Opening, caplog: pytest.LogCaptureFixture
) -> None:
    """W10: async and sync, half of them raise; what a job logs carries its own id."""
    caplog.set_level(logging.INFO, logger="a53")
    logger = logging.getLogger("a53")
    seen: list[str] = []
    kept: list[bool] = []

    def use(job: tenure.RunningJob) -> None:
        seen.append(mark.get())
        mark.set(job.id)
        logger.info("marked", extra={"mark": mark.get(), "job": job.id})

    async def work(number: int, job: tenure.RunningJob) -> None:
        use(job)
        await site.clock.sleep(0.01)
        kept.append(mark.get() == job.id)
        if number % 2:
            raise ValueError("on purpose")

    def work_in_thread(number: int, job: tenure.RunningJob) -> None:
        use(job)
        kept.append(mark.get() == job.id)
        if number % 2:
            raise ValueError("on purpose")

    async with open_site() as site:
        watched = site.worker(concurrency=10)
        watched.register("async", work)
        watched.register("sync", work_in_thread)
        mark.set("the host's")
        async with watched.running():
            calls = [tenure.Call(("async", "sync")[n % 4 // 2], n) for n in range(JOBS)]
            ids = [job.id for job in await site.queue.dispatch_many(calls)]
            await site.until_state("completed", *ids[::2])
            await site.until_state("failed", *ids[1::2])
            assert seen == ["the host's"] * JOBS
            assert kept == [True] * JOBS
            logged = [record for record in caplog.records if record.name == "a53"]
            assert len(logged) == JOBS
            assert all(vars(record)["mark"] == vars(record)["job"] for record in logged)
            assert mark.get() == "the host's"
            await standing_checks(site, watched, ids=ids, swallowed={"JobFailed": JOBS // 2})
