"""`executor="process"`, with real processes: what runs, what is killed, what dies by itself."""

import asyncio
import locale
import multiprocessing
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import tenure
from tests.process import pool_handlers as handlers
from tests.process.waiting import alive, wait_until
from tests.runtime.scenes import errors_of, take_over
from tests.runtime.world import World, open_world

# Else each of its processes would import all of this again, and the tests take minutes.
multiprocessing.set_forkserver_preload(["tenure._runtime.pool.child", handlers.__name__])

each_method = pytest.mark.parametrize("method", ["spawn", "forkserver"])

STUCK = [handlers.spin, handlers.spin_in_regex, handlers.sleep_in_c, handlers.wait_for_ever]
each_stuck = pytest.mark.parametrize("stuck", STUCK, ids=lambda handler: handler.__name__)


@pytest.fixture(autouse=True)
def no_processes_left() -> Iterator[None]:
    """When a worker has stopped, so have its processes.

    It waits a moment for its threads to bury them; on a busy machine they may need longer.
    """
    yield
    try:
        wait_until(lambda: multiprocessing.active_children() == [], lambda: "processes are left")
    finally:
        for process in multiprocessing.active_children():
            process.kill()


def written(path: Path) -> int | None:
    """The process id in a file, once it is there."""
    text = path.read_text() if path.exists() else ""
    return int(text) if text else None  # a file is there before what is written in it


async def gone(*pids: int) -> None:
    """Wait in real time until none of these is there."""
    for _ in range(2000):
        if not any(map(alive, pids)):
            return
        await asyncio.sleep(0.005)
    raise AssertionError(f"{[pid for pid in pids if alive(pid)]} are still there")


class Scene:
    """A worker with a pool on a world; its clock goes with real time where that is asked for."""

    def __init__(self, world: World, **pool: Any) -> None:
        self.world = world
        self.events: list[tenure.Event] = []
        options: dict[str, Any] = {"size": 1} | pool
        self.worker = tenure.Worker(
            world.queue,
            poll_interval=1000.0,
            observers=[self.events.append],
            process_pool=tenure.ProcessPool(**options),
        )

    def register(self, handler: Callable[[Any], Any] | Any, **options: Any) -> None:
        self.worker.register(handler.__name__, handler, executor="process", **options)

    async def dispatch(
        self, handler: Callable[..., Any], payload: Any = None, **options: Any
    ) -> tenure.JobHandle:
        return await self.world.queue.dispatch(handler.__name__, payload, **options)

    async def ended(self, job: tenure.JobHandle) -> tenure.Job[Any]:
        """The job once it is terminal. Real time passes, and that of the clock a little with it."""
        async with asyncio.timeout(30.0):
            while (found := await self.world.job(job)).state in ("pending", "processing"):
                await self.world.advance(0.001)
                await asyncio.sleep(0.005)
        return found

    async def claimed(self, job: tenure.JobHandle) -> None:
        """Wait until the worker has taken it, which is some moments after its last claim."""
        async with asyncio.timeout(30.0):
            while await self.world.state(job) != "processing":
                await self.world.advance(0.001)

    async def begun(self, path: Path) -> int:
        """The id of the process that has begun to run something."""
        async with asyncio.timeout(30.0):
            while (pid := written(path)) is None:
                await self.world.settle()
                await asyncio.sleep(0.005)
        return pid

    async def run(self, handler: Callable[..., Any], payload: Any = None, **options: Any) -> Any:
        """The result of a new job."""
        job = await self.ended(await self.dispatch(handler, payload, **options))
        assert job.state == "completed", job.error
        return job.result


@asynccontextmanager
async def scene(
    *registered: Callable[..., Any], options: dict[str, Any] | None = None, **pool: Any
) -> AsyncGenerator[tuple[Scene, tenure.WorkerHandle]]:
    """A running worker with these handlers; `options` are those of their registration."""
    async with open_world() as world:
        made = Scene(world, **pool)
        for handler in registered:
            made.register(handler, **(options or {}))
        handle = made.worker.run()
        try:
            yield made, handle
        finally:
            await stop(world, handle)


async def stop(world: World, handle: tenure.WorkerHandle, drain: float = 0.0) -> None:
    await spend(world, handle.shutdown(drain))


async def spend(world: World, call: Coroutine[Any, Any, Any]) -> None:
    """Let real time pass, and little of the clock's, until it is done."""
    ending = asyncio.ensure_future(call)
    async with asyncio.timeout(30.0):
        while not ending.done():
            await world.advance(0.001)
            await asyncio.sleep(0.005)
    await ending


# --- what runs ----------------------------------------------------------------------------------


@each_method
async def test_a_handler_runs_in_a_process_that_serves_one_job_after_the_other(method: str) -> None:
    """Plain or async; the payload and the result are JSON."""
    async with scene(handlers.pid, handlers.echo, handlers.echo_async, start_method=method) as (
        it,
        handle,
    ):
        first = await it.run(handlers.pid)
        assert first != os.getpid()
        assert await it.run(handlers.pid) == first
        for handler in (handlers.echo, handlers.echo_async):
            value = {"text": "ä\U0001f600", "numbers": [1, 2.5, None, True], "big": "x" * 200_000}
            assert await it.run(handler, value) == value
        assert errors_of(handle) == []


async def test_the_job_is_seen_from_the_process_and_what_it_says_of_itself_is_stored() -> None:
    async with scene(handlers.about, options={"timeout": 20.0}) as (it, _):
        job = await it.ended(
            await it.dispatch(handlers.about, [1], headers={"trace": "abc"}, queue="default")
        )
        assert job.result == {
            "id": job.id,
            "name": "about",
            "queue": "default",
            "attempt": 1,
            "headers": {"trace": "abc"},
            "fence": 1,
            "cancelled": False,
            "current": job.id,
            "payload": [1],
        }
        assert job.progress is not None
        assert (job.progress.fraction, job.progress.note) == (0.5, "half")
        assert [line.text for line in job.progress.log] == ["a line"]


async def test_what_a_thread_says_after_its_job_is_not_of_the_next_one() -> None:
    async with scene(handlers.lingering, handlers.slow) as (it, _):
        await it.run(handlers.lingering)
        job = await it.ended(await it.dispatch(handlers.slow, 0.1))
        assert job.progress is None


async def test_a_context_does_not_leak_into_the_next_job() -> None:
    async with scene(handlers.setting) as (it, _):
        assert [await it.run(handlers.setting) for _ in range(2)] == ["nothing", "nothing"]


async def test_ctrl_c_and_sigterm_are_left_to_the_worker() -> None:
    async with scene(handlers.interrupted) as (it, _):
        assert await it.run(handlers.interrupted) == "still here"


async def test_a_process_has_the_locale_of_its_worker() -> None:
    """What a program has set, and not what the environment says."""
    before = locale.setlocale(locale.LC_NUMERIC)
    locale.setlocale(locale.LC_NUMERIC, "C.UTF-8")
    try:
        async with scene(handlers.numbers) as (it, _):
            assert await it.run(handlers.numbers) == "C.UTF-8"
    finally:
        locale.setlocale(locale.LC_NUMERIC, before)


async def test_complete_within_is_not_for_processes() -> None:
    async with scene(handlers.unsupported) as (it, _):
        job = await it.ended(await it.dispatch(handlers.unsupported))
        assert job.error is not None
        assert job.error.message.startswith("Unsupported: ")


async def test_an_encrypted_queue_stays_so() -> None:
    """The process sees the payload; the store sees neither it nor the result."""
    codec = tenure.Fernet([tenure.Fernet.generate_key()])
    async with tenure.connect("memory://", codec=codec) as queue:
        worker = tenure.Worker(queue, process_pool=tenure.ProcessPool(size=1))
        worker.register("echo", handlers.echo, executor="process")
        async with worker.run():
            job = await queue.dispatch("echo", {"secret": 1})
            assert await job.result(timeout=20) == {"secret": 1}


async def test_an_initializer_runs_once_in_each_process() -> None:
    pool: dict[str, Any] = {"initializer": handlers.initialise}
    async with scene(handlers.times_initialised, **pool) as (it, _):
        assert [await it.run(handlers.times_initialised) for _ in range(2)] == [1, 1]


# --- what is raised -----------------------------------------------------------------------------


async def test_an_error_is_stored_with_the_trace_of_the_process() -> None:
    async with scene(handlers.raise_wrong) as (it, handle):
        job = await it.ended(await it.dispatch(handlers.raise_wrong))
        assert job.error is not None
        assert (job.error.kind, job.error.message) == ("error", "Wrong: here 7")
        assert 'raise Wrong(7, "here")' in job.error.trace
        assert "_runtime" not in job.error.trace
        [error] = errors_of(handle)
        assert isinstance(error, tenure.JobFailed)
        assert error.failure == job.error


@pytest.mark.parametrize(("retry_on", "attempts"), [((handlers.Wrong,), 2), ((ValueError,), 1)])
async def test_a_policy_sees_the_class_of_the_error(
    retry_on: tuple[type[Exception], ...], attempts: int
) -> None:
    policy = tenure.RetryPolicy(max_attempts=2, base=0.0, retry_on=retry_on)
    async with scene(handlers.raise_wrong, options={"retry": policy}) as (it, handle):
        job = await it.ended(await it.dispatch(handlers.raise_wrong))
        assert (job.state, job.attempt) == ("failed", attempts)
        assert len(errors_of(handle)) == attempts


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        ("SystemExit", "panic"),
        ("KeyboardInterrupt", "panic"),
        ("StopIteration", "error"),
        ("CancelledError", "error"),
        ("ExceptionGroup", "error"),
    ],
)
async def test_whatever_is_raised_ends_that_attempt_only(raised: str, kind: str) -> None:
    """W13, from a process: it goes on with the next job."""
    async with scene(handlers.raise_named, handlers.pid) as (it, handle):
        before = await it.run(handlers.pid)
        job = await it.ended(await it.dispatch(handlers.raise_named, raised))
        assert job.error is not None
        assert job.error.kind == kind
        assert job.error.message.startswith(raised)
        [error] = errors_of(handle)
        assert isinstance(error, tenure.JobPanicked if kind == "panic" else tenure.JobFailed)
        assert await it.run(handlers.pid) == before


async def test_verdicts_are_understood(tmp_path: Path) -> None:
    async with scene(handlers.raise_named, handlers.snooze_once) as (it, _):
        cancelled = await it.ended(await it.dispatch(handlers.raise_named, "Cancel"))
        assert cancelled.state == "cancelled"
        retried = await it.ended(await it.dispatch(handlers.raise_named, "Retry", max_attempts=2))
        assert (retried.state, retried.attempt) == ("failed", 2)
        snoozed = await it.ended(await it.dispatch(handlers.snooze_once, str(tmp_path / "seen")))
        assert (snoozed.result, snoozed.attempt) == ("done", 1)


async def test_a_result_that_cannot_be_stored_is_refused_with_its_path() -> None:
    policy = tenure.RetryPolicy(max_attempts=3)
    async with scene(handlers.return_set, options={"retry": policy}) as (it, _):
        job = await it.ended(await it.dispatch(handlers.return_set))
        assert job.error is not None
        assert (job.error.kind, job.attempt) == ("serialization", 1)
        assert "result.a[1]: must be a JSON value, got set" in job.error.message


# --- what is killed -----------------------------------------------------------------------------


@each_method
@each_stuck
async def test_at_the_deadline_the_process_is_killed_and_replaced(
    stuck: Callable[..., Any], method: str, tmp_path: Path
) -> None:
    """W11: recorded as timed out, as for a coroutine; also in C, with the interpreter's lock."""
    async with scene(stuck, handlers.pid, start_method=method) as (it, handle):
        job = await it.dispatch(stuck, str(tmp_path / "pid"), timeout=5.0)
        pid = await it.begun(tmp_path / "pid")
        await it.world.advance(4.9)
        assert alive(pid)
        await it.world.advance(0.2)
        found = await it.ended(job)
        assert not alive(pid)
        assert found.error is not None
        assert (found.state, found.error.kind, found.attempt) == ("failed", "timeout", 1)
        [error] = errors_of(handle)
        assert isinstance(error, tenure.JobTimedOut)
        assert await it.run(handlers.pid) != pid


async def test_a_cancel_kills_the_process(tmp_path: Path) -> None:
    async with scene(handlers.spin_in_regex) as (it, handle):
        job = await it.dispatch(handlers.spin_in_regex, str(tmp_path / "pid"))
        pid = await it.begun(tmp_path / "pid")
        await it.world.queue.cancel(job.id)
        await it.world.advance(10.0)  # a turn of the keeper
        assert (await it.ended(job)).state == "cancelled"
        assert not alive(pid)
        assert errors_of(handle) == []


async def test_a_lost_lease_kills_the_process_and_writes_nothing(tmp_path: Path) -> None:
    """W19: and the job is the rival's."""
    async with scene(handlers.spin_in_regex, handlers.echo) as (it, handle):
        job = await it.dispatch(handlers.spin_in_regex, str(tmp_path / "pid"))
        pid = await it.begun(tmp_path / "pid")
        await take_over(it.world, job.id)
        before = await it.world.job(job)
        await it.world.advance(10.0)
        assert await it.run(handlers.echo, 1) == 1  # the slot and the place are free again
        assert not alive(pid)
        assert await it.world.job(job) == before
        [error] = errors_of(handle)
        assert isinstance(error, tenure.LeaseLost)


@each_method
async def test_shutdown_kills_what_runs_after_the_drain_time(method: str, tmp_path: Path) -> None:
    """W23: put back, with no attempt spent."""
    async with scene(handlers.spin_in_regex, start_method=method) as (it, handle):
        job = await it.dispatch(handlers.spin_in_regex, str(tmp_path / "pid"))
        pid = await it.begun(tmp_path / "pid")
        await stop(it.world, handle, drain=0.05)
        await gone(pid)
        found = await it.world.job(job)
        assert (found.state, found.attempt) == ("pending", 0)
        assert errors_of(handle) == []


async def test_shutdown_lets_a_handler_finish_within_the_drain_time() -> None:
    async with scene(handlers.slow) as (it, handle):
        await it.run(handlers.slow, 0.0)
        job = await it.dispatch(handlers.slow, 0.2)
        await it.claimed(job)
        await stop(it.world, handle, drain=25.0)
        assert (await it.world.job(job)).state == "completed"


async def test_abort_kills_at_once_and_records_nothing(tmp_path: Path) -> None:
    """W24."""
    async with scene(handlers.spin_in_regex) as (it, handle):
        job = await it.dispatch(handlers.spin_in_regex, str(tmp_path / "pid"))
        pid = await it.begun(tmp_path / "pid")
        handle.abort()
        await spend(it.world, handle.wait())
        await gone(pid)
        assert (await it.world.job(job)).state == "processing"


async def test_what_a_handler_has_started_is_killed_with_it(tmp_path: Path) -> None:
    async with scene(handlers.with_a_child) as (it, handle):
        await it.dispatch(handlers.with_a_child, str(tmp_path / "pid"))
        pid = await it.begun(tmp_path / "pid")
        child = int((tmp_path / "pid.child").read_text())
        assert alive(child)
        await stop(it.world, handle)
        await gone(pid, child)


@each_method
async def test_a_process_that_allocates_without_end_is_killed_at_its_limit(method: str) -> None:
    async with scene(
        handlers.devour, handlers.echo, memory_limit=200_000_000, start_method=method
    ) as (it, handle):
        job = await it.ended(await it.dispatch(handlers.devour))
        assert job.error is not None
        assert job.error.kind == "panic"
        assert "it used more than its memory limit of 200,000,000 bytes" in job.error.message
        assert await it.run(handlers.echo, "on it goes") == "on it goes"
        [error] = errors_of(handle)
        assert isinstance(error, tenure.JobPanicked)


# --- what dies by itself ------------------------------------------------------------------------


@each_method
@pytest.mark.parametrize(
    ("deadly", "how"),
    [
        (handlers.segfault, "ProcessDied: killed by SIGSEGV"),
        (handlers.abort, "ProcessDied: killed by SIGABRT"),
        (handlers.exit_3, "ProcessDied: exit code 3"),
        (handlers.kill_itself, "ProcessDied: killed by SIGKILL: perhaps the system was out of"),
        (handlers.close_everything, "ProcessDied: killed by SIGKILL"),
    ],
)
async def test_a_crash_is_the_failure_of_its_job_only(
    deadly: Callable[..., Any], how: str, method: str
) -> None:
    async with scene(deadly, handlers.slow, size=2, start_method=method) as (it, handle):
        beside = await it.dispatch(handlers.slow, 0.5)
        job = await it.ended(await it.dispatch(deadly))
        assert job.error is not None
        assert (job.state, job.error.kind, job.attempt) == ("failed", "panic", 1)
        assert job.error.message.startswith(how)
        [error] = errors_of(handle)
        assert isinstance(error, tenure.JobPanicked)
        other = await it.ended(beside)
        assert (other.state, other.attempt) == ("completed", 1)


async def test_a_crash_is_retried_as_failures_are(tmp_path: Path) -> None:
    policy = tenure.RetryPolicy(max_attempts=2, base=0.0, retry_on=(tenure.ProcessDied,))
    async with scene(handlers.die_once, options={"retry": policy}) as (it, _):
        job = await it.ended(await it.dispatch(handlers.die_once, str(tmp_path / "seen")))
        assert (job.result, job.attempt) == ("survived", 2)


async def crash(times: int, method: str) -> None:
    deadly = [handlers.exit_3, handlers.kill_itself, handlers.segfault]
    async with scene(*deadly, handlers.echo, size=2, start_method=method) as (it, handle):
        for number in range(0, times, 50):
            kinds = [deadly[n % 3] for n in range(number, min(times, number + 50))]
            for job in [await it.dispatch(kind) for kind in kinds]:
                found = await it.ended(job)
                assert found.error is not None
                assert (found.error.kind, found.attempt) == ("panic", 1)
            errors = errors_of(handle)
            assert len(errors) == len(kinds), errors
        assert handle.healthy
        assert await it.run(handlers.echo, "healthy") == "healthy"
        assert handle.dropped_errors == 0


async def test_100_crashes_leave_the_worker_healthy() -> None:
    await crash(100, "forkserver")


@pytest.mark.slow
async def test_30_crashes_of_fresh_interpreters_leave_the_worker_healthy() -> None:
    await crash(30, "spawn")


# --- the pool -----------------------------------------------------------------------------------


@each_method
async def test_a_process_is_replaced_after_so_many_jobs(method: str) -> None:
    async with scene(handlers.pid, max_jobs=3, start_method=method) as (it, handle):
        pids = [await it.run(handlers.pid) for _ in range(7)]
        assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [3, 3, 1]
        assert errors_of(handle) == []


async def test_a_process_that_keeps_memory_is_replaced_after_its_job() -> None:
    """Before the limit kills a job that is not to blame."""
    async with scene(handlers.keep, memory_limit=400_000_000) as (it, handle):
        pids = [await it.run(handlers.keep, 50_000_000) for _ in range(16)]
        assert len(set(pids)) > 1
        assert errors_of(handle) == []


async def test_the_time_of_a_job_that_waits_for_a_process_does_not_count(tmp_path: Path) -> None:
    async with scene(handlers.spin, handlers.echo) as (it, _):
        first = await it.dispatch(handlers.spin, str(tmp_path / "pid"), timeout=50.0)
        await it.begun(tmp_path / "pid")
        second = await it.dispatch(handlers.echo, "patient", timeout=1.0)
        await it.claimed(second)
        await it.world.advance(45.0)
        assert (await it.world.job(second)).state == "processing"
        await it.world.advance(6.0)
        assert (await it.ended(first)).state == "failed"
        assert (await it.ended(second)).result == "patient"


async def test_a_job_that_waits_for_a_process_is_put_back_at_shutdown(tmp_path: Path) -> None:
    async with scene(handlers.spin, handlers.echo) as (it, handle):
        await it.dispatch(handlers.spin, str(tmp_path / "pid"))
        await it.begun(tmp_path / "pid")
        waiting = await it.dispatch(handlers.echo)
        await it.claimed(waiting)
        await stop(it.world, handle)
        found = await it.world.job(waiting)
        assert (found.state, found.attempt) == ("pending", 0)


async def test_an_idle_process_that_is_killed_fails_no_job() -> None:
    async with scene(handlers.pid) as (it, handle):
        for _ in range(3):
            pid = await it.run(handlers.pid)
            os.kill(pid, 9)
            assert await it.run(handlers.pid) != pid
        assert errors_of(handle) == []


@each_method
@pytest.mark.parametrize(
    ("initializer", "why"),
    [
        (handlers.fail_to_initialise, "LookupError: no model to be found"),
        (handlers.exit_at_once, "exit code 5"),
    ],
)
async def test_where_no_process_can_be_started_jobs_are_put_back(
    initializer: Callable[[], None], why: str, method: str
) -> None:
    """Reported once; the job waits for another worker, with no attempt spent, and never spins."""
    pool: dict[str, Any] = {"initializer": initializer, "start_method": method}
    async with scene(handlers.echo, **pool) as (it, handle):
        job = await it.dispatch(handlers.echo)
        async with asyncio.timeout(30.0):
            while (await it.world.job(job)).state == "processing" or handle.healthy:
                await it.world.settle()
                await asyncio.sleep(0.005)
        found = await it.world.job(job)
        assert (found.state, found.attempt) == ("pending", 0)
        assert found.run_at > it.world.clock.now()
        [error] = errors_of(handle)
        assert isinstance(error, tenure.RuntimeUnavailable)
        assert why in str(error)


async def test_a_process_that_is_over_its_limit_before_any_job_is_refused() -> None:
    async with scene(handlers.echo, memory_limit=2_000_000) as (_, handle):
        error = await asyncio.wait_for(handle.next_error(), 30.0)
        assert "of a limit of 2,000,000" in str(error)


@pytest.mark.slow
async def test_1000_crashes_leave_the_worker_healthy() -> None:
    await crash(1000, "forkserver")
