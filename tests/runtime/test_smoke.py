"""One job from dispatch to its end, on each store, with a clock that stands still."""

from pathlib import Path

import tenure
from tests.runtime.world import each_store, open_world


@each_store
async def test_a_dispatched_job_runs_and_its_result_is_stored(store: str, tmp_path: Path) -> None:
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue)

        @worker.handler("double")
        async def double(payload: int) -> int:
            return 2 * payload

        async with worker.run() as handle:
            await world.settle()
            job = await world.queue.dispatch("double", 21)
            await world.advance(1.0)
            record = await world.job(job)
            assert record.state == "completed"
            assert record.result == 42
            assert handle.try_next_error() is None


async def test_a_failing_job_is_retried_after_its_backoff() -> None:
    async with open_world() as world:
        worker = tenure.Worker(world.queue)
        starts: list[int] = []

        @worker.handler("flaky", retry=tenure.RetryPolicy(max_attempts=3, base=10, jitter=False))
        async def flaky(payload: None, job: tenure.RunningJob) -> str:
            starts.append(job.attempt)
            if job.attempt < 3:
                raise ValueError("not yet")
            return "done"

        async with worker.run() as handle:
            job = await world.queue.dispatch("flaky")
            await world.advance(1.0)
            assert starts == [1]
            await world.advance(9.5)
            assert starts == [1, 2]
            await world.advance(20.5)
            assert starts == [1, 2, 3]
            assert isinstance(await handle.next_error(), tenure.JobFailed)
            await world.settle()
            assert await world.state(job) == "completed"
