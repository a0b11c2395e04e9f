"""W20: crashes and failures are counted apart, and neither goes on for ever."""

import asyncio
from pathlib import Path

import pytest

import tenure
from tests.runtime.scenes import crash, errors_of, quiet_worker, running
from tests.runtime.world import World, each_store, open_world

RETRY = tenure.RetryPolicy(max_attempts=3, base=1.0, jitter=False)


class Starts:
    """A handler that notes its attempts, and ends each as `endings` says; the last one goes on."""

    def __init__(self, *endings: str) -> None:
        self._endings = endings
        self.attempts: list[int] = []

    async def __call__(self, payload: None, job: tenure.RunningJob) -> str:
        ending = self._endings[min(len(self.attempts), len(self._endings) - 1)]
        self.attempts.append(job.attempt)
        if ending == "fail":
            raise ValueError("no")
        if ending == "time out":
            await asyncio.Event().wait()
        return ending


def failed(errors: list[tenure.QueueError]) -> tenure.JobFailed:
    [error] = errors
    assert isinstance(error, tenure.JobFailed)
    return error


# --- max_attempts given ---------------------------------------------------------------------------


@each_store
@pytest.mark.parametrize("given", ["at dispatch", "by the policy", "both"])
async def test_w20_max_attempts_is_a_hard_bound_on_starts_crashes_included(
    store: str, tmp_path: Path, given: str
) -> None:
    """W20, I4: lost on attempt 2 of 2 is failed instead of started; no start is spent on that."""
    async with open_world(store, tmp_path) as world:
        starts = Starts("done")
        worker = quiet_worker(world)
        policy = tenure.RetryPolicy(max_attempts={"both": 9}.get(given, 2))
        worker.register("work", starts, retry=None if given == "at dispatch" else policy)
        at_dispatch = None if given == "by the policy" else 2
        job = await world.queue.dispatch("work", max_attempts=at_dispatch)
        await crash(world, job, times=2)
        async with running(worker) as handle:
            await world.advance(1.0)
            record = await world.job(job)
            assert (record.state, record.attempt) == ("failed", 2)
            assert starts.attempts == []
            assert record.error is not None
            assert (record.error.kind, record.error.attempt) == ("stalled", 2)
            assert record.error.message == "worker lost on attempt 2 of 2"
            error = failed(errors_of(handle))
            assert error.job_id == job.id
            assert error.failure == record.error


@each_store
@pytest.mark.parametrize("crashes", [0, 1, 2])
async def test_w20_crashes_and_failures_together_make_exactly_max_attempts_starts(
    store: str, tmp_path: Path, crashes: int
) -> None:
    """W20, I4: three starts in all, however they end."""
    async with open_world(store, tmp_path) as world:
        starts = Starts("fail")
        worker = quiet_worker(world)
        worker.register("work", starts, retry=RETRY)
        job = await world.queue.dispatch("work")
        await crash(world, job, times=crashes)
        async with running(worker) as handle:
            await world.advance(30.0)
            assert starts.attempts == list(range(crashes + 1, 4))
            record = await world.job(job)
            assert (record.state, record.attempt) == ("failed", 3)
            assert record.error is not None
            assert record.error.kind == "error"
            errors = errors_of(handle)
            assert [type(error) for error in errors] == [tenure.JobFailed] * (3 - crashes)


@each_store
async def test_w20_the_bound_given_at_dispatch_beats_the_policy(store: str, tmp_path: Path) -> None:
    """W14, W20: also where it allows more."""
    async with open_world(store, tmp_path) as world:
        starts = Starts("done")
        worker = quiet_worker(world)
        worker.register("work", starts, retry=tenure.RetryPolicy(max_attempts=2))
        job = await world.queue.dispatch("work", max_attempts=4)
        await crash(world, job, times=3)
        async with running(worker) as handle:
            await world.advance(1.0)
            assert starts.attempts == [4]
            assert await world.state(job) == "completed"
            assert errors_of(handle) == []


@each_store
async def test_w20_one_attempt_given_is_one_start_even_if_its_worker_was_lost(
    store: str, tmp_path: Path
) -> None:
    """W20: who asks for one start gets one."""
    async with open_world(store, tmp_path) as world:
        starts = Starts("done")
        worker = quiet_worker(world)
        worker.register("work", starts)
        job = await world.queue.dispatch("work", max_attempts=1)
        await crash(world, job)
        async with running(worker) as handle:
            await world.advance(1.0)
            assert starts.attempts == []
            record = await world.job(job)
            assert (record.state, record.attempt) == ("failed", 1)
            assert failed(errors_of(handle)).failure.message == "worker lost on attempt 1 of 1"


# --- max_attempts not given -----------------------------------------------------------------------


@each_store
async def test_w20_a_lost_worker_does_not_use_up_the_one_attempt_of_the_default(
    store: str, tmp_path: Path
) -> None:
    """W20: nothing was given: the job runs again after a crash."""
    async with open_world(store, tmp_path) as world:
        starts = Starts("done")
        worker = quiet_worker(world)
        worker.register("work", starts)
        job = await world.queue.dispatch("work")
        await crash(world, job, times=2)
        async with running(worker) as handle:
            await world.advance(1.0)
            assert starts.attempts == [3]
            record = await world.job(job)
            assert (record.state, record.result) == ("completed", "done")
            assert errors_of(handle) == []


@each_store
@pytest.mark.parametrize("ending", ["fail", "time out"])
@pytest.mark.parametrize("crashes", [0, 2])
async def test_w20_a_failure_or_timeout_is_final_by_default(
    store: str, tmp_path: Path, ending: str, crashes: int
) -> None:
    """W20: one attempt for failures and timeouts, whether or not workers were lost before."""
    async with open_world(store, tmp_path) as world:
        starts = Starts(ending)
        worker = quiet_worker(world, job_timeout=5.0)
        worker.register("work", starts)
        job = await world.queue.dispatch("work")
        await crash(world, job, times=crashes)
        async with running(worker) as handle:
            await world.advance(60.0)
            assert starts.attempts == [crashes + 1]
            assert await world.state(job) == "failed"
            [error] = errors_of(handle)
            kind = tenure.JobFailed if ending == "fail" else tenure.JobTimedOut
            assert isinstance(error, kind)


# --- max_stalls -----------------------------------------------------------------------------------


@each_store
@pytest.mark.parametrize("max_attempts", [None, 100])
async def test_w20_a_job_that_stalled_too_often_in_a_row_is_failed_instead_of_started(
    store: str, tmp_path: Path, max_attempts: int | None
) -> None:
    """W20, I4: whatever attempts are left, a job cannot kill its workers for ever."""
    async with open_world(store, tmp_path) as world:
        starts = Starts("done")
        worker = quiet_worker(world, max_stalls=3)
        worker.register("work", starts)
        job = await world.queue.dispatch("work", max_attempts=max_attempts)
        await crash(world, job, times=3)
        async with running(worker) as handle:
            await world.advance(1.0)
            assert starts.attempts == []
            record = await world.job(job)
            assert (record.state, record.attempt) == ("failed", 3)
            assert record.error is not None
            assert record.error.kind == "stalled"
            assert record.error.message.startswith("stalled 3 times")
            assert failed(errors_of(handle)).failure == record.error


@each_store
async def test_w20_one_stall_fewer_and_it_is_started(store: str, tmp_path: Path) -> None:
    """W20: the bound is the claimer's, and exact."""
    async with open_world(store, tmp_path) as world:
        starts = Starts("done")
        worker = quiet_worker(world, max_stalls=3)
        worker.register("work", starts)
        job = await world.queue.dispatch("work")
        await crash(world, job, times=2)
        async with running(worker) as handle:
            await world.advance(1.0)
            assert starts.attempts == [3]
            assert await world.state(job) == "completed"
            assert errors_of(handle) == []


@each_store
async def test_w20_the_bounds_are_judged_by_a_worker_that_has_the_handler(
    store: str, tmp_path: Path
) -> None:
    """W20, W9: another one puts the job back, and knows nothing of its bounds."""
    async with open_world(store, tmp_path) as world:
        job = await world.queue.dispatch("work", max_attempts=1)
        await crash(world, job)
        stranger = quiet_worker(world, max_stalls=1)
        async with running(stranger) as handle:
            await world.settle()
            record = await world.job(job)
            assert (record.state, record.attempt, record.stalls) == ("pending", 1, 1)
            [error] = errors_of(handle)
            assert isinstance(error, tenure.HandlerNotFound)


@each_store
async def test_w20_a_recorded_outcome_ends_the_row_of_stalls(store: str, tmp_path: Path) -> None:
    """Section 2: a failure in between shows that the job does not kill its workers."""
    async with open_world(store, tmp_path) as world:
        starts = Starts("fail", "done")
        worker = quiet_worker(world, max_stalls=2)
        worker.register("work", starts, retry=tenure.RetryPolicy(max_attempts=9, base=1.0))
        job = await world.queue.dispatch("work")
        await crash(world, job)
        async with running(worker) as handle:
            await world.settle()
            assert (await world.job(job)).stalls == 0
            assert [type(error) for error in errors_of(handle)] == [tenure.JobFailed]
        await world.advance(2.0)
        await crash(world, job)
        async with running(worker) as handle:
            await world.advance(1.0)
            assert starts.attempts == [2, 4]
            assert await world.state(job) == "completed"
            assert errors_of(handle) == []


@each_store
async def test_w20_a_release_does_not_end_the_row_of_stalls(store: str, tmp_path: Path) -> None:
    """Section 2: a job that is put back has shown nothing."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world)
        job = await world.queue.dispatch("work")
        await crash(world, job, times=2)
        [claim] = await world.claim_elsewhere()
        await world.inner.record([(claim.hold, tenure.Released("shutdown"))])
        record = await world.job(job)
        assert (record.stalls, record.attempt) == (2, 2)
        assert worker.queue is world.queue


@each_store
@pytest.mark.parametrize("max_attempts", [None, 3])
async def test_w20_a_manual_retry_starts_both_counts_anew(
    store: str, tmp_path: Path, max_attempts: int | None
) -> None:
    """Section 2: attempt and stalls are 0 again, the serial goes on."""
    async with open_world(store, tmp_path) as world:
        starts = Starts("done")
        worker = quiet_worker(world, max_stalls=3)
        worker.register("work", starts)
        job = await world.queue.dispatch("work", max_attempts=max_attempts)
        await crash(world, job, times=3)
        async with running(worker) as handle:
            await world.advance(1.0)
            assert await world.state(job) == "failed"
            serial = (await world.job(job)).serial
            failed(errors_of(handle))
            assert await world.queue.retry(job.id) == tenure.Answer.DONE
            await world.advance(1.0)
            record = await world.job(job)
            assert (record.state, record.attempt, record.stalls) == ("completed", 1, 0)
            assert record.serial > serial
            assert starts.attempts == [1]
            assert errors_of(handle) == []


# --- recovery -------------------------------------------------------------------------------------


async def _recovery_delay(world: World, job: tenure.JobHandle) -> float:
    """Lose the job's worker once more; how long after its recovery is it due?"""
    record = await world.job(job)
    wait = (record.run_at - world.clock.now()).total_seconds()
    await world.advance(max(0.0, wait) + 0.001)
    [claim] = await world.claim_elsewhere(lease=1.0, token=f"lost-{record.stalls}")
    assert claim.job.id == job.id
    for _ in range(20):
        await world.advance(0.1)
        record = await world.job(job)
        if record.state == "pending":
            return (record.run_at - record.updated_at).total_seconds()
    raise AssertionError("it was not reclaimed within a lease and a reclaim interval")


@each_store
async def test_w20_the_first_recovery_is_immediate_and_later_ones_back_off(
    store: str, tmp_path: Path
) -> None:
    """W20, I7: recovered within a lease and an interval each time, due ever later."""
    async with open_world(store, tmp_path) as world:
        bystander = tenure.Worker(world.queue, queues=["other"], lease=1.0, poll_interval=1000.0)
        job = await world.queue.dispatch("work")
        async with running(bystander) as handle:
            delays = [await _recovery_delay(world, job) for _ in range(3)]
            assert delays == [0.0, 2.0, 10.0]
            assert errors_of(handle) == []


def test_w20_the_pauses_after_recoveries_only_grow() -> None:
    """W20: and stay below a few minutes, so that a job is not lost for a day."""
    from tenure._runtime.upkeep.reclaim import RECLAIM_DELAYS

    assert RECLAIM_DELAYS[0] == 0.0
    assert list(RECLAIM_DELAYS) == sorted(set(RECLAIM_DELAYS))
    assert RECLAIM_DELAYS[-1] <= 600.0


@each_store
async def test_w20_a_job_whose_worker_was_lost_is_run_by_another(
    store: str, tmp_path: Path
) -> None:
    """W20, I7: the whole way: lost, reclaimed by the worker that is there, run, completed."""
    async with open_world(store, tmp_path) as world:
        events: list[tenure.Event] = []
        starts = Starts("done")
        worker = quiet_worker(world, lease=5.0, observers=[events.append])
        worker.register("work", starts)
        job = await world.queue.dispatch("work")
        await world.claim_elsewhere(lease=3.0)
        async with running(worker) as handle:
            await world.advance(2.9)
            assert starts.attempts == []
            await world.advance(3.0 + 5.0)
            assert starts.attempts == [2]
            assert await world.state(job) == "completed"
            [reclaimed] = [e for e in events if isinstance(e, tenure.JobsReclaimed)]
            assert reclaimed.job_ids == (job.id,)
            assert errors_of(handle) == []
