"""A42: a limit of one attempt gives two runs, and zero means for ever.

https://github.com/Koed00/django-q/issues/495
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import tenure
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
