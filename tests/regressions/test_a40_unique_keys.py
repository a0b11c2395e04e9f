"""A40: after a forced kill the lock of a unique job stayed, and new jobs were silently dropped.

The kind of fault: a unique key that outlives its job. Here the key is a part of the job's record:
whoever dies, the job has it until its end, however that comes, and nobody has it after.

https://github.com/zoolutions/sidekiq-unique-jobs/issues/861
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import tenure
from tests.process.stage import Stage
from tests.regressions.sites import LEASE, Opening, Site, live_site
from tests.regressions.standing import standing_checks

# How the jobs end whose worker was killed; each has its own unique key and its own queue.
ENDS = ["done", "dead", "cancelled", "deleted"]
TERMINAL = {"completed", "failed", "cancelled"}

Lose = Callable[[Site], Awaitable[None]]  # starts every job there is, and dies


def key_of(end: str) -> str:
    return f"key-{end}"


class Probes:
    """Dispatches with a key again and again, and what the answers have to be."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.ids: list[str] = []

    async def is_held_by(self, key: str, holder: str) -> bool:
        """Whether a dispatch was refused for this job. At no time is it refused for an ended one.

        Nor is one let through while the job has not ended: then there would be two.
        """
        before = await self._state(holder)
        probe = await self._site.queue.dispatch("probe", unique=key)
        after = await self._state(holder)
        if probe.created:
            self.ids.append(probe.id)
            assert after in TERMINAL | {"gone"}, "there are two holders"
            return False
        assert probe.id == holder, "it was refused for another job"
        assert before not in TERMINAL | {"gone"}, "the key is held without a job behind it"
        return True

    async def until_free(self, key: str, holder: str) -> None:
        async def free() -> bool:
            return not await self.is_held_by(key, holder)

        await self._site.until(free, lambda: f"{key} is still held")

    async def _state(self, job_id: str) -> str:
        try:
            return await self._site.state(job_id)
        except tenure.JobNotFound:
            return "gone"


async def recovered(site: Site, lose: Lose) -> None:
    """(a) to (d) of the recipe."""
    jobs = {
        end: await site.queue.dispatch("gate", end, queue=end, unique=key_of(end)) for end in ENDS
    }
    await lose(site)
    probes = Probes(site)
    for end, job in jobs.items():
        assert await site.state(job.id) == "processing"
        assert await probes.is_held_by(key_of(end), job.id)
    assert await site.queue.cancel(jobs["cancelled"].id) == "requested"

    watched = site.worker(queues=["default", "done", "dead", "cancelled"])
    starts: list[tuple[str, int]] = []
    go = asyncio.Event()

    async def gate(payload: str, job: tenure.RunningJob) -> None:
        starts.append((payload, job.attempt))
        await go.wait()
        if payload == "dead":
            raise ValueError("no")

    async def probe(payload: object) -> None:
        return None

    watched.register("gate", gate)
    watched.register("probe", probe)
    async with watched.running():
        # The recovered jobs run although their own keys are held.
        await site.until_true(lambda: len(starts) == 2, lambda: f"started: {starts}")
        assert sorted(starts) == [("dead", 2), ("done", 2)]
        for end in ("done", "dead"):
            assert await probes.is_held_by(key_of(end), jobs[end].id)
        # So does one that is recovered and waits, until an operator deletes it.
        await site.until_state("pending", jobs["deleted"].id)
        assert await probes.is_held_by(key_of("deleted"), jobs["deleted"].id)
        assert await site.queue.delete(jobs["deleted"].id) == "done"
        assert not await probes.is_held_by(key_of("deleted"), jobs["deleted"].id)
        go.set()
        for end in ("done", "dead", "cancelled"):
            await probes.until_free(key_of(end), jobs[end].id)
        states = [await site.state(jobs[end].id) for end in ("done", "dead", "cancelled")]
        assert states == ["completed", "failed", "cancelled"]
        assert len(probes.ids) == len(ENDS)
        assert len(starts) == 2
        await site.until_state("completed", *probes.ids)
        kept = [job.id for end, job in jobs.items() if end != "deleted"]
        await standing_checks(site, watched, ids=[*kept, *probes.ids], swallowed={"JobFailed": 1})


async def claim_and_vanish(site: Site) -> None:
    """What a store sees of a worker that was killed."""
    driver = await site.driver()
    request = tenure.ClaimRequest(
        token="lost",
        queues=tuple(tenure.QueueLimit(end, 1) for end in ENDS),
        limit=len(ENDS),
        worker="lost",
        lease=LEASE,
    )
    assert len(await driver.claim(request)) == len(ENDS)


async def test_a_key_is_free_with_the_end_of_its_job_and_never_before(open_site: Opening) -> None:
    """I8, on every store, where the worker is lost without a trace."""
    async with open_site() as site:
        await recovered(site, claim_and_vanish)


async def test_a_killed_process_leaves_no_key_behind(each_stage: Stage) -> None:
    """I8: the same, with SIGKILL."""

    async def kill(site: Site) -> None:
        doomed = await asyncio.to_thread(each_stage.start, lease=LEASE, queues=ENDS)
        await asyncio.to_thread(each_stage.wait_for, "start", len(ENDS))
        doomed.kill()

    async with live_site(each_stage.url) as site:
        await recovered(site, kill)
    assert len(each_stage.ledger.read("start")) == len(ENDS)
    assert each_stage.ledger.read("end") == []


async def test_a_job_that_is_given_up_as_stalled_frees_its_key(open_site: Opening) -> None:
    """Dead without another start: the same end as any."""
    async with open_site() as site:
        job = await site.queue.dispatch("gate", "done", queue="done", unique="k")
        driver = await site.driver()
        probes = Probes(site)
        queues = (tenure.QueueLimit("done", 1),)
        request = tenure.ClaimRequest(
            token="lost", queues=queues, limit=1, worker="lost", lease=0.2
        )
        assert len(await driver.claim(request)) == 1
        watched = site.worker(queues=["default", "done"], max_stalls=1)
        started: list[Any] = []
        watched.register("gate", started.append)
        watched.register("probe", started.append)
        async with watched.running():
            await probes.until_free("k", job.id)
            await site.until_state("completed", *probes.ids)
            record = await site.queue.get(job.id)
            assert (record.state, record.attempt, record.stalls) == ("failed", 1, 0)
            assert record.error is not None
            assert record.error.kind == "stalled"
            assert started == [None]
            ids = [job.id, *probes.ids]
            await standing_checks(site, watched, ids=ids, swallowed={"JobFailed": 1})


@pytest.mark.parametrize("verb", ["complete", "fail", "retry and fail", "cancel", "delete"])
async def test_a_refused_dispatch_names_the_holder_until_its_end(
    open_site: Opening, verb: str
) -> None:
    """(d), and the other ends: after failures with a retry between them, and by an operator."""
    async with open_site() as site:
        watched = site.worker()
        go = asyncio.Event()
        ends = 0

        async def gate(payload: str) -> None:
            nonlocal ends
            await go.wait()
            ends += 1
            if "fail" in payload:
                raise ValueError("no")

        async def probe(payload: object) -> None:
            return None

        watched.register("gate", gate)
        watched.register("probe", probe)
        attempts = 2 if verb == "retry and fail" else 1
        waits = verb in ("cancel", "delete")
        job = await site.queue.dispatch(
            "gate", verb, unique="k", max_attempts=attempts, delay=3600.0 if waits else None
        )
        probes = Probes(site)
        async with watched.running():
            assert await probes.is_held_by("k", job.id)
            if verb == "cancel":
                assert await site.queue.cancel(job.id) == "done"
            elif verb == "delete":
                assert await site.queue.delete(job.id) == "done"
            else:
                go.set()
            await probes.until_free("k", job.id)
            assert ends == (0 if waits else attempts)
            await site.until_state("completed", *probes.ids)
            ids = [*probes.ids, *([] if verb == "delete" else [job.id])]
            failures = attempts if "fail" in verb else 0
            await standing_checks(site, watched, ids=ids, swallowed={"JobFailed": failures})
