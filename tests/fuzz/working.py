"""A whole worker on a store whose records somebody else has changed (I12, W17, W26)."""

from collections import Counter

import tenure
from tenure.clock import SystemClock
from tenure.driver import Driver
from tests.fuzz.damaged_store import GOOD
from tests.regressions.beside import Beside

__all__ = ["worked"]

_SECONDS = 15.0  # far more than two jobs need
# What may be told of the job that was damaged; anything else is a fault of the worker's.
_TOLD = (
    tenure.StoreError,
    tenure.SerializationError,
    tenure.StateTransitionError,
    tenure.HandlerNotFound,
    tenure.JobFailed,
    tenure.JobTimedOut,
    tenure.LeaseLost,
    tenure.LoopBlocked,  # that the machine is slow is no fault
)


async def worked(driver: Driver) -> None:
    """The good jobs are done, each at its first attempt, and the worker is well all the time."""
    clock = SystemClock()
    starts = Counter[str]()
    async with tenure.Queue(Beside(driver, clock=clock), clock=clock) as queue:
        worker = tenure.Worker(
            queue, lease=5.0, poll_interval=0.05, concurrency=2, job_timeout=5.0, retention=None
        )

        async def work(payload: object, job: tenure.RunningJob) -> None:
            starts[job.id] += 1

        worker.register("work", work)
        handle = worker.run()
        try:
            for each in GOOD:
                job = await queue.waits.end(each, _SECONDS)
                assert job is not None
                assert job.state == "completed"
            assert handle.healthy
            first = await handle.shutdown(0.0)
        finally:
            handle.abort()
            await handle.wait()
        assert [starts[each] for each in GOOD] == [1, 1]
        error = first
        while error is not None:
            assert isinstance(error, _TOLD), repr(error)
            job_id = getattr(error, "job_id", None)
            # What is told of a job names it, by whatever its id has become; the good ones are well.
            assert job_id is None or (job_id not in GOOD and job_id in str(error)), repr(error)
            error = handle.try_next_error()
