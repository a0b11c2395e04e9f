"""A41: exponential waiting exceeds the largest date; computing it fails and the job disappears.

https://github.com/procrastinate-org/procrastinate/issues/1462
"""

import math
from datetime import datetime
from itertools import pairwise

import pytest

import tenure
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
