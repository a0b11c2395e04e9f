"""A42: a limit of one attempt gives two runs, and zero means for ever.

The kind of fault: a bound that is off by one. Here it counts starts, whatever ends them and whoever
gives the bound, and it is at least one.

https://github.com/Koed00/django-q/issues/495
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import tenure
from tests.regressions.lost import lose
from tests.regressions.sites import Opening
from tests.regressions.standing import standing_checks
from tests.runtime.arrange import running
from tests.runtime.scenes import crash, errors_of
from tests.runtime.world import open_world

POLICIES: dict[str, Callable[[int], tenure.RetryPolicy]] = {
    "exponential": lambda n: tenure.RetryPolicy(max_attempts=n, base=0.5, jitter=False),
    "linear": lambda n: tenure.RetryPolicy.linear(max_attempts=n, step=0.5),
    "delays": lambda n: tenure.RetryPolicy.delays([0.5, 1.0, 1.5], max_attempts=n),
    "function": lambda n: tenure.RetryPolicy.of(lambda attempt, error: 0, max_attempts=n),
}


@pytest.mark.parametrize("given", ["dispatch", *POLICIES])
@pytest.mark.parametrize("ending", ["exception", "timeout", "crash"])
@pytest.mark.parametrize("bound", [1, 2, 3])
async def test_there_are_exactly_as_many_starts_as_max_attempts_says(
    bound: int, ending: str, given: str
) -> None:
    """Whoever gives the bound and whatever ends the attempts; the failed record says n."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue, poll_interval=30.0)
        started: list[int] = []
        retry = POLICIES[given](bound) if given in POLICIES else None

        @worker.handler("work", retry=retry, timeout=1.0)
        async def work(payload: None, job: tenure.RunningJob) -> None:
            started.append(job.attempt)
            if ending == "exception":
                raise ValueError("no")
            await asyncio.Event().wait()

        job = await world.queue.dispatch("work", max_attempts=None if retry else bound)
        if ending == "crash":
            await crash(world, job, bound)
        async with running(world, worker) as handle:
            await world.advance(60.0)
            record = await world.job(job)
            assert (record.state, record.attempt) == ("failed", bound)
            # A crash leaves its start in the record alone: the worker that counted it is gone.
            assert started == ([] if ending == "crash" else list(range(1, bound + 1)))
            assert len(errors_of(handle)) == (1 if ending == "crash" else bound)


@pytest.mark.parametrize("bound", [0, -1])
async def test_zero_and_fewer_are_refused_wherever_a_bound_is_given(bound: int) -> None:
    async with open_world() as world:
        with pytest.raises(tenure.InvalidJob):
            await world.queue.dispatch("work", max_attempts=bound)
        assert (await world.queue.counts()).pending == 0

        class Own:
            max_attempts = bound

            def retries(self, error: BaseException) -> bool:
                return True

            def delay(self, attempt: int) -> float:
                return 0.0

        for build in POLICIES.values():
            with pytest.raises(tenure.InvalidConfiguration):
                build(bound)
        worker: Any = tenure.Worker(world.queue)
        with pytest.raises(tenure.InvalidConfiguration):
            worker.register("work", print, retry=Own())


BOUNDS = (1, 2, 3)
TOLD = {"exception": "JobFailed", "timeout": "JobTimedOut", "crash": "JobFailed"}


@pytest.mark.parametrize("ending", list(TOLD))
async def test_each_store_counts_the_starts_alike(open_site: Opening, ending: str) -> None:
    """I4: by the dispatch, whatever ends the attempts; the failed record says n."""
    async with open_site() as site:
        ids = [f"at-most-{bound}" for bound in BOUNDS]  # and a queue for each, to be crashed alone
        for bound, own in zip(BOUNDS, ids, strict=True):
            await site.queue.dispatch("work", bound, id=own, queue=own, max_attempts=bound)
            for _ in range(bound if ending == "crash" else 0):
                assert await lose(site, 1, own) == [own]
        watched = site.worker(queues=ids)
        starts = Counter[int]()

        async def work(bound: int) -> None:
            starts[bound] += 1
            if ending == "exception":
                raise ValueError("no")
            await asyncio.Event().wait()

        watched.register("work", work, timeout=0.2)
        async with watched.running():
            await site.until_state("failed", *ids)
            assert [(await site.queue.get(job_id)).attempt for job_id in ids] == list(BOUNDS)
            assert starts == ({} if ending == "crash" else {bound: bound for bound in BOUNDS})
            told = {TOLD[ending]: len(BOUNDS) if ending == "crash" else sum(BOUNDS)}
            await standing_checks(site, watched, ids=ids, swallowed=told)
