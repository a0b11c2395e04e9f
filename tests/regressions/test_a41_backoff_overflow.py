"""A41: exponential waiting exceeds the largest date; computing it fails and the job disappears.

The kind of fault: a delay that is computed and not bounded. Here each is finite and at most the
cap, whatever the policy, and the job is in the store until its last attempt.

https://github.com/procrastinate-org/procrastinate/issues/1462
"""

import math
from collections import Counter
from datetime import datetime
from itertools import pairwise

import pytest

import tenure
from tests.regressions.sites import Opening
from tests.regressions.standing import standing_checks
from tests.runtime.arrange import running
from tests.runtime.scenes import errors_of
from tests.runtime.world import open_world

CAP = 60.0
POLICIES = {
    "factor 5, 60 attempts": tenure.RetryPolicy(max_attempts=60, factor=5.0, cap=CAP, jitter=False),
    "factor 2, 2,000 attempts": tenure.RetryPolicy(
        max_attempts=2000, factor=2.0, cap=CAP, jitter=False
    ),
    "factor 1e300": tenure.RetryPolicy(max_attempts=60, factor=1e300, cap=CAP, jitter=False),
    "jitter": tenure.RetryPolicy(max_attempts=60, factor=5.0, cap=CAP),
    "steps": tenure.RetryPolicy.linear(step=1e308, max_attempts=60, cap=CAP),
    "a function": tenure.RetryPolicy.of(lambda attempt, _: 5**attempt, max_attempts=60, cap=CAP),
}


@pytest.mark.parametrize("kind", list(POLICIES))
def test_each_delay_is_finite_not_negative_and_at_most_the_cap(kind: str) -> None:
    policy = POLICIES[kind]
    for attempt in range(1, policy.max_attempts + 1):
        delay = policy.delay_after(attempt, ValueError())
        assert delay is not None
        assert math.isfinite(delay)
        assert 0.0 <= delay <= CAP


@pytest.mark.parametrize(
    "kind", [kind for kind, policy in POLICIES.items() if policy.max_attempts == 60]
)
async def test_the_job_stays_in_the_store_until_its_last_attempt_and_has_failed_then(
    kind: str,
) -> None:
    policy = POLICIES[kind]
    async with open_world() as world:
        worker = tenure.Worker(world.queue, poll_interval=600.0, lease=864_000.0)
        starts: list[float] = []

        @worker.handler("work", retry=policy)
        async def work(payload: None) -> None:
            starts.append(world.clock.monotonic())
            raise ValueError("no")

        job = await world.queue.dispatch("work")
        async with running(world, worker) as handle:
            while len(starts) < policy.max_attempts:
                before = len(starts)
                await world.advance(CAP + 0.01)
                record = await world.job(job)
                assert isinstance(record.run_at, datetime)
                assert len(starts) > before, "it disappeared"
                assert record.state == (
                    "pending" if len(starts) < policy.max_attempts else "failed"
                )
            errors_of(handle)
            await world.advance(10 * CAP)
            assert len(starts) == policy.max_attempts == (await world.job(job)).attempt
            assert max(later - earlier for earlier, later in pairwise(starts)) < CAP + 0.01


async def test_on_each_store_it_runs_as_often_as_it_may_and_is_there_all_the_time(
    open_site: Opening,
) -> None:
    """Sixty attempts of each policy that overflows, with a cap that lets them pass quickly."""
    attempts = 60
    policies = {
        "factor": tenure.RetryPolicy(max_attempts=attempts, factor=5.0, cap=0.01),
        "huge": tenure.RetryPolicy(max_attempts=attempts, factor=1e300, cap=0.01),
        "steps": tenure.RetryPolicy.linear(step=1e308, max_attempts=attempts, cap=0.01),
    }
    async with open_site() as site:
        watched = site.worker()
        starts = Counter[str]()

        async def work(policy: str) -> None:
            starts[policy] += 1
            raise ValueError("no")

        for name, policy in policies.items():
            watched.register(name, work, retry=policy)
        async with watched.running():
            jobs = [await site.queue.dispatch(name, name) for name in policies]
            await site.until_state("failed", *(job.id for job in jobs), seconds=60.0)
            assert starts == dict.fromkeys(policies, attempts)
            ids = [job.id for job in jobs]
            told = {"JobFailed": attempts * len(policies)}
            await standing_checks(site, watched, ids=ids, swallowed=told)
