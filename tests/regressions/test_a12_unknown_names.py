"""A12: a worker without the handler received the job, logged that, and discarded it.

The kind of fault: an unknown name taken for garbage, as during a rolling deployment. Here such a
job is put back untouched, for a while that grows, until a worker comes that has its handler.

https://github.com/onyx-dot-app/onyx/issues/4740
"""

import pytest

import tenure
from tests.regressions.sites import Opening
from tests.regressions.standing import standing_checks

JOBS = 10  # of each name; 50 in the recipe


async def test_jobs_wait_for_a_worker_that_has_their_handler(
    open_site: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W9: no attempt spent, nothing failed, one error for the name, and few claims of it."""
    async with open_site() as site:
        if not site.still:  # shorter, where one has to wait for it
            monkeypatch.setattr("tenure._runtime.unhandled._FIRST", 0.5)
            monkeypatch.setattr("tenure._runtime.unhandled._LONGEST", 0.5)
        put_back: list[str] = []

        def observe(event: tenure.Event) -> None:
            if isinstance(event, tenure.JobSettled) and isinstance(event.outcome, tenure.Released):
                put_back.append(event.job.id)

        old = site.worker(observers=[observe])
        new = site.worker()
        done: list[tuple[str, str, int]] = []

        async def by_old(payload: object, job: tenure.RunningJob) -> None:
            done.append(("old", job.name, job.attempt))

        async def by_new(payload: object, job: tenure.RunningJob) -> None:
            done.append(("new", job.name, job.attempt))

        old.register("a", by_old)
        new.register("a", by_new)
        new.register("b", by_new)
        names = ["b"] * JOBS + ["a"] * JOBS
        jobs = await site.queue.dispatch_many([tenure.Call(name) for name in names])
        unknown = [job.id for job in jobs[:JOBS]]
        begun = site.clock.monotonic()
        async with old.running():
            await site.until_state("completed", *(job.id for job in jobs[JOBS:]))
            await site.until_true(lambda: set(put_back) == set(unknown), lambda: f"{put_back}")
            await site.skip(3.0)
            assert {await site.state(job_id) for job_id in unknown} == {"pending"}
            assert {who for who, _, _ in done} == {"old"}
            async with new.running():
                # Whoever comes first when they are due: the old one may put them back again.
                await site.until_state("completed", *unknown, seconds=600.0 if site.still else 30.0)
                assert {attempt for _, _, attempt in done} == {1}
                assert sorted(name for _, name, _ in done) == sorted(names)
                if site.still:  # in rounds of 5 s, 10, 20, 40 and 60, within ten minutes
                    assert max(put_back.count(job_id) for job_id in unknown) <= 13
                ids = [job.id for job in jobs]
                told = old.reported["HandlerNotFound"]
                assert 1 <= told <= 1 + (site.clock.monotonic() - begun) / 60.0
                await standing_checks(site, new, old, ids=ids, swallowed={"HandlerNotFound": told})
