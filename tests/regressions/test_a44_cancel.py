"""A44: cancelling an id that did not exist left a mark that killed a later job with that id.

The kind of fault: a request to cancel that outlives what it was made for. Here it is a part of the
job's own record, so that there is none without a job, and none on a job once it has ended.

https://github.com/python-arq/arq/issues/485
"""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import tenure
from tests.regressions.sites import Opening, Site
from tests.regressions.standing import standing_checks
from tests.regressions.watched import Watched

ID = "id-1"


def working(site: Site, **options: Any) -> tuple[Watched, list[str], asyncio.Event]:
    """A worker that notes the ids of what it starts; "wait" is at work until the gate is open."""
    watched = site.worker(**options)
    started: list[str] = []
    gate = asyncio.Event()

    async def work(payload: str, job: tenure.RunningJob) -> str:
        started.append(job.id)
        match payload:
            case "wait":
                await gate.wait()
            case "finish":  # what is asked comes too late for it
                try:
                    await gate.wait()
                except asyncio.CancelledError:
                    return "finished"
            case "fail once" if len(started) == 1:
                try:
                    await gate.wait()
                except asyncio.CancelledError:
                    raise ValueError("no") from None
            case _:
                pass
        return "done"

    watched.register("work", work)
    return watched, started, gate


async def started_all(site: Site, started: list[str], *ids: str) -> None:
    await site.until_true(lambda: set(started) >= set(ids), lambda: f"started: {started}")


async def test_a_job_runs_whose_id_was_cancelled_before_it_existed(open_site: Opening) -> None:
    """As often as one asks, alone or among others, and by the other verbs as well."""
    async with open_site() as site:
        for _ in range(2):
            assert await site.queue.cancel(ID) == "unknown"
        other = await site.queue.dispatch("work", "quick")
        assert list(await site.queue.cancel([ID, other.id, ID])) == ["unknown", "done", "unknown"]
        for verb in (site.queue.retry, site.queue.delete):
            assert await verb(ID) == "unknown"
        assert await site.queue.move(ID, priority=1) == "unknown"
        with pytest.raises(tenure.JobNotFound):
            await site.queue.get(ID)
        watched, started, _ = working(site)
        async with watched.running():
            job = await site.queue.dispatch("work", "quick", id=ID)
            assert job.created
            await site.until_state("completed", ID)
            assert started == [ID]
            record = await site.queue.get(ID)
            assert (record.attempt, record.result, record.cancel_requested) == (1, "done", False)
            await standing_checks(site, watched, ids=[ID, other.id])


async def test_a_finished_job_is_left_as_it_is_and_its_id_is_as_new_when_it_is_gone(
    open_site: Opening,
) -> None:
    """Cancelled twice after its end; deleted, cancelled again; and a minute later dispatched."""
    async with open_site() as site:
        watched, started, _ = working(site)
        async with watched.running():
            await site.queue.dispatch("work", "quick", id=ID)
            await site.until_state("completed", ID)
            ended = await site.queue.get(ID)
            for _ in range(2):
                assert await site.queue.cancel(ID) == "finished"
            assert await site.queue.get(ID) == ended
            assert await site.queue.delete(ID) == "done"
            for _ in range(2):
                assert await site.queue.cancel(ID) == "unknown"
            # The id is known for a minute, to which the store is told that it has passed.
            again = tenure.NewJob(
                id=ID, name="work", payload=b'"again"', at=datetime(2020, 1, 1, tzinfo=UTC)
            )
            driver = await site.driver()
            later = site.clock.now() + timedelta(seconds=61)
            assert list(await driver.enqueue([again], now=later)) == ["created"]
            await site.until_state("completed", ID)
            assert started == [ID, ID]
            await standing_checks(site, watched, ids=[ID])


async def test_what_is_cancelled_has_one_end_wherever_it_was(open_site: Opening) -> None:
    """Waiting, scheduled, running, between two attempts; asked twice, each is cancelled once."""
    async with open_site() as site:
        watched, started, _ = working(site)
        dispatch = site.queue.dispatch
        waiting = [await dispatch("work", "wait", queue="nobody's") for _ in range(2)]
        later = [await dispatch("work", "wait", delay=3600.0) for _ in range(2)]
        running = [await dispatch("work", "wait") for _ in range(2)]
        async with watched.running():
            await started_all(site, started, *(job.id for job in running))
            still = [job.id for job in (*waiting, *later)]
            assert list(await site.queue.cancel(still)) == ["done"] * 4
            assert list(await site.queue.cancel(still)) == ["finished"] * 4
            for job in running:
                # The second may come after the handler has gone.
                assert await site.queue.cancel(job.id) == "requested"
                assert await site.queue.cancel(job.id) in ("requested", "finished")
            ids = [*still, *(job.id for job in running)]
            await site.until_state("cancelled", *ids)
            for job_id in ids:
                record = await site.queue.get(job_id)
                assert not record.cancel_requested
                assert record.finished_at is not None
            assert list(await site.queue.cancel(ids)) == ["finished"] * 6
            assert len(started) == 2
            await standing_checks(site, watched, ids=ids)


async def test_a_request_is_gone_with_the_end_that_came_first(open_site: Opening) -> None:
    """Completed or failed in spite of it; retried by hand, the failed one runs as any other."""
    async with open_site() as site:
        watched, started, _ = working(site)
        failing = await site.queue.dispatch("work", "fail once")
        async with watched.running():
            await started_all(site, started, failing.id)
            finishing = await site.queue.dispatch("work", "finish")
            await started_all(site, started, finishing.id)
            ids = [failing.id, finishing.id]
            assert list(await site.queue.cancel(ids)) == ["requested"] * 2
            await site.until_state("failed", failing.id)
            await site.until_state("completed", finishing.id)
            for job_id in ids:
                assert not (await site.queue.get(job_id)).cancel_requested
            assert await site.queue.retry(failing.id) == "done"
            await site.until_state("completed", failing.id)
            assert started == [failing.id, finishing.id, failing.id]
            await standing_checks(site, watched, ids=ids, swallowed={"JobFailed": 1})


async def test_a_cancelled_job_that_is_retried_by_hand_runs(open_site: Opening) -> None:
    """Cancelled as it waited, as it ran, and as the orphan of a worker that was lost."""
    async with open_site() as site:
        watched, started, gate = working(site)
        orphan = await site.queue.dispatch("work", "wait")
        driver = await site.driver()
        request = tenure.ClaimRequest(
            token="lost",
            queues=(tenure.QueueLimit("default", 1),),
            limit=1,
            worker="lost",
            lease=0.2,
        )
        assert [claim.job.id for claim in await driver.claim(request)] == [orphan.id]
        assert await site.queue.cancel(orphan.id) == "requested"
        waiting = await site.queue.dispatch("work", "wait")
        assert await site.queue.cancel(waiting.id) == "done"
        running = await site.queue.dispatch("work", "wait")
        ids = [orphan.id, waiting.id, running.id]
        async with watched.running():
            await started_all(site, started, running.id)
            assert await site.queue.cancel(running.id) == "requested"
            await site.until_state("cancelled", *ids)
            assert started == [running.id]
            gate.set()
            assert list(await site.queue.retry(ids)) == ["done"] * 3
            await site.until_state("completed", *ids)
            assert sorted(started[1:]) == sorted(ids)
            await standing_checks(site, watched, ids=ids)
