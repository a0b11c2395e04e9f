"""Events: what observers and the log are told, and that neither can harm a job."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

import tenure
from tests.runtime.scenes import (
    WatchedWrites,
    crash,
    errors_of,
    quiet_worker,
    running,
    shut_down,
    take_over,
)
from tests.runtime.world import World, each_store, open_world

SECRET = "s3cr3t-payload"


class Ears:
    """An observer that keeps what it hears."""

    def __init__(self) -> None:
        self.events: list[tenure.Event] = []

    def __call__(self, event: tenure.Event) -> None:
        self.events.append(event)

    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]

    def settled(self) -> tenure.JobSettled:
        [event] = [event for event in self.events if isinstance(event, tenure.JobSettled)]
        return event


@each_store
async def test_an_observer_hears_a_job_claimed_started_and_settled(
    store: str, tmp_path: Path
) -> None:
    """In this order, about the same hold, with the time that the handler took."""
    async with open_world(store, tmp_path) as world:
        ears = Ears()
        worker = quiet_worker(world, observers=[ears])
        gate = asyncio.Event()

        @worker.handler("work")
        async def work(payload: str) -> str:
            await gate.wait()
            return payload

        async with running(worker) as handle:
            job = await world.queue.dispatch("work", "x")
            await world.advance(3.0)
            gate.set()
            await world.settle()
            claimed, started, settled = ears.events
            assert isinstance(claimed, tenure.JobClaimed)
            assert isinstance(started, tenure.JobStarted)
            assert isinstance(settled, tenure.JobSettled)
            assert claimed.hold == started.hold == settled.hold
            assert {claimed.job.id, started.job.id, settled.job.id} == {job.id}
            assert (started.attempt, settled.attempt) == (1, 1)
            assert settled.outcome == tenure.Completed(b'"x"')
            assert 2.9 < settled.seconds <= 3.0
            assert errors_of(handle) == []


Ending = Callable[[World], None]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("complete", tenure.Completed),
        ("fail", tenure.Failed),
        ("retry", tenure.Retried),
        ("panic", tenure.Failed),
        ("time out", tenure.Failed),
        ("stranger", tenure.Released),
    ],
)
async def test_an_observer_hears_each_outcome_as_it_was_recorded(
    name: str, expected: type[tenure.Outcome]
) -> None:
    """One event for each attempt, with the very value that the store was given."""
    async with open_world() as world:
        ears = Ears()
        watched = WatchedWrites(world)
        worker = quiet_worker(world, observers=[ears], job_timeout=4.0)

        async def complete(payload: None) -> None:
            return None

        async def fail(payload: None) -> None:
            raise ValueError("no")

        async def panic(payload: None) -> None:
            raise SystemExit(3)

        async def time_out(payload: None) -> None:
            await asyncio.Event().wait()

        worker.register("complete", complete)
        worker.register("fail", fail)
        worker.register("retry", fail, retry=tenure.RetryPolicy(base=900.0, jitter=False))
        worker.register("panic", panic)
        worker.register("time out", time_out)
        async with running(worker) as handle:
            await world.queue.dispatch(name)
            await world.advance(4.5)
            settled = ears.settled()
            assert isinstance(settled.outcome, expected)
            assert [settled.outcome] == watched.outcomes[:1]
            reported = [e.error for e in ears.events if isinstance(e, tenure.ErrorReported)]
            assert reported == errors_of(handle)


@each_store
async def test_an_observer_hears_of_a_release_at_shutdown(store: str, tmp_path: Path) -> None:
    """Also of what is written at the very end."""
    async with open_world(store, tmp_path) as world:
        ears = Ears()
        worker = quiet_worker(world, observers=[ears])

        @worker.handler("work")
        async def work(payload: None) -> None:
            await asyncio.Event().wait()

        handle = worker.run()
        await world.queue.dispatch("work")
        await world.settle()
        assert await shut_down(world, handle) is None
        assert ears.settled().outcome == tenure.Released("worker shutdown")
        assert ears.kinds() == ["JobClaimed", "JobStarted", "JobSettled"]


@each_store
async def test_an_observer_hears_of_a_job_that_is_ended_without_a_start(
    store: str, tmp_path: Path
) -> None:
    """It took no time of a handler."""
    async with open_world(store, tmp_path) as world:
        ears = Ears()
        worker = quiet_worker(world, observers=[ears])
        worker.register("work", print)
        job = await world.queue.dispatch("work", max_attempts=1)
        await crash(world, job)
        async with running(worker) as handle:
            await world.settle()
            assert ears.kinds() == ["JobClaimed", "JobSettled", "ErrorReported"]
            settled = ears.settled()
            assert isinstance(settled.outcome, tenure.Failed)
            assert not settled.outcome.started
            assert settled.seconds == 0.0
            assert len(errors_of(handle)) == 1


@each_store
async def test_an_observer_hears_of_a_lost_lease_and_of_a_fenced_write(
    store: str, tmp_path: Path
) -> None:
    """And of no settlement, since there was none."""
    async with open_world(store, tmp_path) as world:
        ears = Ears()
        worker = quiet_worker(world, concurrency=1, observers=[ears])

        @worker.handler("work")
        async def work(payload: None) -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "all the same"
            return "never"

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.settle()
            await take_over(world, job.id)
            await world.advance(10.0)
            assert ears.kinds() == [
                "JobClaimed",
                "JobStarted",
                "LeaseEnded",
                "ErrorReported",
                "JobFenced",
                "ErrorReported",
            ]
            fenced = ears.events[4]
            assert isinstance(fenced, tenure.JobFenced)
            assert fenced.operation == "complete"
            assert len(errors_of(handle)) == 2


@each_store
async def test_an_observer_hears_of_reclaimed_jobs(store: str, tmp_path: Path) -> None:
    """One event for all that one look brought back."""
    async with open_world(store, tmp_path) as world:
        ears = Ears()
        worker = quiet_worker(world, queues=["other"], lease=5.0, observers=[ears])
        jobs = await world.queue.dispatch_many([tenure.Call("work") for _ in range(3)])
        await world.claim_elsewhere(3, lease=1.0)
        async with running(worker) as handle:
            await world.advance(6.0)
            [event] = ears.events
            assert isinstance(event, tenure.JobsReclaimed)
            assert set(event.job_ids) == {job.id for job in jobs}
            assert errors_of(handle) == []


async def test_all_observers_hear_everything() -> None:
    """In the order in which they were given."""
    async with open_world() as world:
        heard: list[tuple[str, str]] = []

        def ear(name: str) -> tenure.Observer:
            return lambda event: heard.append((name, type(event).__name__))

        worker = quiet_worker(world, observers=[ear("a"), ear("b")])
        worker.register("work", print)
        async with running(worker) as handle:
            await world.queue.dispatch("stranger")
            await world.settle()
            assert [name for name, _ in heard] == ["a", "b"] * (len(heard) // 2)
            assert [kind for name, kind in heard if name == "a"] == [
                kind for name, kind in heard if name == "b"
            ]
            assert len(errors_of(handle)) == 1


# --- an observer that raises ----------------------------------------------------------------------


@each_store
async def test_an_observer_that_raises_harms_nothing(
    store: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged; jobs, errors and the other observers go on as if it were not there."""
    async with open_world(store, tmp_path) as world:

        def broken(event: tenure.Event) -> None:
            raise RuntimeError("observer")

        ears = Ears()
        worker = quiet_worker(world, observers=[broken, ears])

        @worker.handler("work")
        async def work(payload: int) -> int:
            if payload == 1:
                raise ValueError("no")
            return payload

        async with running(worker) as handle:
            jobs = await world.queue.dispatch_many([tenure.Call("work", n) for n in range(3)])
            await world.advance(1.0)
            assert [await world.state(job) for job in jobs] == ["completed", "failed", "completed"]
            [error] = errors_of(handle)
            assert isinstance(error, tenure.JobFailed)
            assert handle.healthy
            assert len(ears.events) == 3 * 3 + 1
            logged = [r for r in caplog.records if r.getMessage() == "an observer raised"]
            assert len(logged) == len(ears.events)
            assert {record.levelno for record in logged} == {logging.ERROR}
            assert all(record.exc_info for record in logged)


# --- the log --------------------------------------------------------------------------------------


async def test_the_log_tells_outcomes_as_info_starts_as_debug_and_errors_as_warnings(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The built-in observer: always on, details in `extra`."""
    caplog.set_level(logging.DEBUG, logger="tenure")
    async with open_world() as world:
        worker = quiet_worker(world)

        @worker.handler("work", retry=tenure.RetryPolicy(max_attempts=2, base=5.0, jitter=False))
        async def work(payload: None, job: tenure.RunningJob) -> None:
            if job.attempt == 1:
                raise ValueError("no")

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.advance(10.0)
            assert len(errors_of(handle)) == 1
        lines = [r for r in caplog.records if r.name in ("tenure.job", "tenure.worker")]
        told = [(r.levelname, r.getMessage()) for r in lines if r.levelno >= logging.INFO]
        assert [level for level, _ in told] == ["INFO", "WARNING", "INFO"]
        assert told[0][1] == f"job {job.id} work: retried"
        assert "JobFailed" in told[1][1]
        assert told[2][1] == f"job {job.id} work: completed"
        debug = [r.getMessage() for r in lines if r.levelno == logging.DEBUG]
        assert debug == ["job claimed", "job started"] * 2
        retried = vars(next(r for r in lines if r.levelno == logging.INFO))
        about = {key: retried[key] for key in ("job_id", "job_name", "queue", "attempt")}
        assert about == {"job_id": job.id, "job_name": "work", "queue": "default", "attempt": 1}
        assert (retried["outcome"], retried["delay"]) == ("retried", pytest.approx(5.0))


async def test_the_log_tells_of_fencing_lost_leases_and_recovered_jobs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The rare events, too."""
    caplog.set_level(logging.DEBUG, logger="tenure")
    async with open_world() as world:
        worker = quiet_worker(world, concurrency=1, lease=6.0)

        @worker.handler("work")
        async def work(payload: None) -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "all the same"
            return "never"

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.settle()
            await take_over(world, job.id)
            await world.queue.dispatch("other")
            [claim] = await world.claim_elsewhere(lease=1.0)
            assert claim.job.name == "other"
            await world.advance(8.0)
            errors_of(handle)
        messages = [record.getMessage() for record in caplog.records]
        assert "lease lost" in messages
        assert "write fenced" in messages
        assert "reclaimed 1 jobs whose lease had run out" in messages


@each_store
async def test_no_log_record_carries_a_payload_or_a_result(
    store: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither its text nor what is in `extra`, whatever happens to the job."""
    caplog.set_level(logging.DEBUG)
    async with open_world(store, tmp_path) as world:

        def broken(event: tenure.Event) -> None:
            raise RuntimeError("observer")

        worker = quiet_worker(world, job_timeout=5.0, observers=[broken])

        @worker.handler("return")
        async def give_back(payload: object) -> object:
            return payload

        @worker.handler("raise", retry=tenure.RetryPolicy(max_attempts=2))
        async def throw(payload: object) -> None:
            raise ValueError("no")

        @worker.handler("unstorable")
        async def unstorable(payload: object) -> object:
            return {"value": payload, "set": {payload}}

        @worker.handler("hang")
        async def hang(payload: object) -> None:
            await asyncio.Event().wait()

        for name in ("return", "raise", "unstorable", "hang", "stranger"):
            await world.queue.dispatch(name, SECRET, headers={"h": SECRET})
        damaged = tenure.NewJob(id="damaged", name="return", payload=b'{"' + SECRET.encode())
        await world.inner.enqueue([damaged])
        async with running(worker) as handle:
            await world.advance(10.0)
            assert len(errors_of(handle)) >= 4
        assert len(caplog.records) > 20
        for record in caplog.records:
            assert SECRET not in record.getMessage(), record
            assert SECRET not in repr(vars(record)), record
            if record.exc_info:
                assert SECRET not in (logging.Formatter().formatException(record.exc_info))
