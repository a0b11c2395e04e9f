"""A25: behind a transaction pooler the worker died of "prepared statement already exists".

The kind of fault: state of a session that is somebody else's a moment later. Here a pooler is
noticed when the store is opened: then nothing is prepared, locked or listened to by session.

https://github.com/procrastinate-org/procrastinate/issues/1074
"""

import logging

import pytest

import tenure
from tests.regressions.sites import live_site
from tests.regressions.standing import standing_checks
from tests.servers.pgbouncer import PgBouncer, pgbouncer

__all__ = ["pgbouncer"]

JOBS = 200


async def test_two_workers_behind_a_pooler_with_two_connections(
    pgbouncer: PgBouncer, caplog: pytest.LogCaptureFixture
) -> None:
    """200 jobs, unique keys and a schedule: no error is told, and that it polls is."""
    caplog.set_level(logging.INFO, logger="tenure")
    async with live_site(f"{pgbouncer.url}?schema=a25") as site:
        ran: list[str] = []
        ticked: list[str] = []

        async def work(payload: int, job: tenure.RunningJob) -> None:
            ran.append(job.id)

        async def tick(payload: object, job: tenure.RunningJob) -> None:
            ticked.append(job.id)

        workers = [site.worker(), site.worker()]
        for watched in workers:
            watched.register("work", work)
            watched.register("tick", tick)
        await site.queue.schedule("s", "@every 1s", "tick")
        async with workers[0].running(), workers[1].running():
            jobs = [
                await site.queue.dispatch(
                    "work", number, unique=f"u{number}" if number % 4 == 0 else None
                )
                for number in range(JOBS)
            ]
            ids = [job.id for job in jobs]
            await site.until_state("completed", *ids)
            assert sorted(ran) == sorted(ids)
            await site.until_true(lambda: len(ticked) >= 2, lambda: f"{len(ticked)} ticks")
            assert len(set(ticked)) == len(ticked)
            await site.queue.unschedule("s")

            async def quiet() -> bool:
                counts = await site.queue.counts()
                return counts.pending + counts.processing == 0

            await site.until(quiet, lambda: "ticks are left")
            stored = [job.id for job in (await site.queue.list(limit=1000)).jobs]
            await standing_checks(site, *workers, ids=stored)
    assert any("pooler" in record.getMessage() for record in caplog.records)
    assert not [record for record in caplog.records if "prepared" in record.getMessage()]
