"""W13: whatever a handler raises ends that attempt, and nothing else."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

import tenure
from tests.runtime.arrange import running
from tests.runtime.scenes import errors_of
from tests.runtime.world import World, each_store, open_world

Raise = Callable[[], object]
each_kind = pytest.mark.parametrize("kind", ["async", "sync"])


class Outside(BaseException):
    """Of a user's own, outside `Exception`."""


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class Exiting(Exception):
    def __str__(self) -> str:
        raise SystemExit(1)


class Forgetful(Exception):
    """Cannot be built again from its `args`."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Locked(Exception):
    """Holds what cannot be copied or pickled."""

    def __init__(self) -> None:
        super().__init__("locked")
        self.lock = threading.Lock()
        self.rest = (n for n in range(3))


def raising(error: Callable[[], BaseException]) -> Raise:
    def run() -> NoReturn:
        raise error()

    return run


def recurse() -> object:
    return [recurse()]


def cycle() -> NoReturn:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    raise first


def nested(depth: int) -> BaseException:
    error: Exception = ValueError("innermost")
    for _ in range(depth):
        inner: list[Exception] = [error]
        error = ExceptionGroup("group", inner)
    return error


def noted() -> BaseException:
    error = ValueError("with notes")
    error.add_note("n" * 1_000_000)
    return error


RAISED: dict[str, tuple[Raise, type[tenure.QueueError], str, str]] = {
    "ValueError": (raising(lambda: ValueError("no")), tenure.JobFailed, "error", "ValueError: no"),
    "no message": (raising(KeyError), tenure.JobFailed, "error", "KeyError"),
    "TimeoutError": (raising(TimeoutError), tenure.JobFailed, "error", "TimeoutError"),
    "SystemExit": (raising(lambda: SystemExit(3)), tenure.JobPanicked, "panic", "SystemExit: 3"),
    "KeyboardInterrupt": (
        raising(KeyboardInterrupt),
        tenure.JobPanicked,
        "panic",
        "KeyboardInterrupt",
    ),
    "GeneratorExit": (raising(GeneratorExit), tenure.JobPanicked, "panic", "GeneratorExit"),
    "Outside": (raising(lambda: Outside("mine")), tenure.JobPanicked, "panic", "Outside: mine"),
    "CancelledError": (
        raising(lambda: asyncio.CancelledError("mine")),
        tenure.JobFailed,
        "error",
        "CancelledError: mine",
    ),
    "StopIteration": (raising(StopIteration), tenure.JobFailed, "error", "StopIteration"),
    "StopAsyncIteration": (
        raising(StopAsyncIteration),
        tenure.JobFailed,
        "error",
        "StopAsyncIteration",
    ),
    "RecursionError": (recurse, tenure.JobFailed, "error", "RecursionError: "),
    "MemoryError": (raising(MemoryError), tenure.JobFailed, "error", "MemoryError"),
    "str() raises": (raising(Unprintable), tenure.JobFailed, "error", "Unprintable: (its str()"),
    "str() exits": (raising(Exiting), tenure.JobFailed, "error", "Exiting: (its str()"),
    "rebuilt": (raising(lambda: Forgetful(5, "why")), tenure.JobFailed, "error", "Forgetful: why"),
    "locked": (raising(Locked), tenure.JobFailed, "error", "Locked: locked"),
    "cause cycle": (cycle, tenure.JobFailed, "error", "ValueError: first"),
    "5 MB": (
        raising(lambda: ValueError("x" * 5_000_000)),
        tenure.JobFailed,
        "error",
        "ValueError: xxx",
    ),
    "nested groups": (
        raising(lambda: nested(10_000)),
        tenure.JobFailed,
        "error",
        "ExceptionGroup: group",
    ),
    "wide group": (
        raising(lambda: ExceptionGroup("g", [ValueError(n) for n in range(10_000)])),
        tenure.JobFailed,
        "error",
        "ExceptionGroup: g",
    ),
    "notes": (raising(noted), tenure.JobFailed, "error", "ValueError: with notes"),
    "bad text": (
        raising(lambda: ValueError("a\0b\ud800")),
        tenure.JobFailed,
        "error",
        "ValueError: a\\0b\\ud800",
    ),
}


def register(worker: tenure.Worker, kind: str, raise_: Raise, **options: Any) -> None:
    def plain(payload: Any) -> None:
        raise_()

    async def coroutine(payload: Any) -> None:
        raise_()

    worker.register("raise", plain if kind == "sync" else coroutine, **options)


async def ended(world: World, job: tenure.JobHandle) -> tenure.Job[Any]:
    """The job when it has ended, which takes a thread's time but no simulated time."""
    for _ in range(2000):
        await world.settle()
        record = await world.job(job)
        if record.state in ("completed", "failed", "cancelled"):
            return record
        await asyncio.sleep(0.001)
    raise AssertionError("it did not end")


@each_store
@each_kind
@pytest.mark.parametrize("name", list(RAISED))
async def test_w13_whatever_a_handler_raises_ends_that_attempt_only(
    store: str, tmp_path: Path, kind: str, name: str
) -> None:
    """W13, A15, A16: one error, bounded text, and the worker goes on with the next job."""
    raise_, error_class, failure_kind, text = RAISED[name]
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, concurrency=1)
        register(worker, kind, raise_)

        @worker.handler("canary")
        async def canary(payload: None) -> str:
            return "alive"

        job, after = await world.queue.dispatch_many([tenure.Call("raise"), tenure.Call("canary")])
        async with running(world, worker) as handle:
            record = await ended(world, job)
            assert (record.state, record.attempt, record.stalls) == ("failed", 1, 0)
            failure = record.error
            assert failure is not None
            assert (failure.kind, failure.attempt) == (failure_kind, 1)
            if name == "StopIteration" and kind == "async":
                text = "RuntimeError: coroutine raised StopIteration"  # Python's own rule
            assert failure.message.startswith(text)
            assert len(failure.message) <= 4096
            assert 0 < len(failure.trace) <= 16 * 1024
            assert (await ended(world, after)).result == "alive"
            [error] = errors_of(handle)
            assert type(error) is error_class
            assert text in str(error)
            assert len(str(error)) < 5000
            if isinstance(error, tenure.JobFailed):
                assert (error.job_id, error.name, error.attempt) == (job.id, "raise", 1)
                assert error.failure == failure
            else:
                assert isinstance(error, tenure.JobPanicked)
                assert error.job_id == job.id
            assert handle.running
            assert handle.healthy


@each_kind
async def test_w13_the_trace_shows_the_handler_and_not_the_worker(kind: str) -> None:
    """W13: bounded text for people."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue)
        register(worker, kind, raising(lambda: ValueError("no")))
        job = await world.queue.dispatch("raise")
        async with running(world, worker) as handle:
            failure = (await ended(world, job)).error
            assert failure is not None
            assert "raise error()" in failure.trace
            assert failure.trace.endswith("ValueError: no\n")
            assert "_runtime" not in failure.trace
            assert failure.at == world.clock.now()
            assert len(errors_of(handle)) == 1


@each_store
async def test_w13_each_failed_attempt_makes_one_error_retried_ones_too(
    store: str, tmp_path: Path
) -> None:
    """W13: with the attempt that failed."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue, poll_interval=30.0)
        policy = tenure.RetryPolicy(max_attempts=3, base=1.0, jitter=False)
        register(worker, "async", raising(lambda: ValueError("no")), retry=policy)
        job = await world.queue.dispatch("raise")
        async with running(world, worker) as handle:
            await world.settle()
            waiting = await world.job(job)
            assert (waiting.state, waiting.attempt) == ("pending", 1)
            assert waiting.error is not None  # the newest failure, kept while the retry waits
            await world.advance(5.0)
            errors = errors_of(handle)
            assert [type(error) for error in errors] == [tenure.JobFailed] * 3
            attempts = [e.attempt for e in errors if isinstance(e, tenure.JobFailed)]
            assert attempts == [1, 2, 3]
            record = await world.job(job)
            assert (record.state, record.attempt) == ("failed", 3)


async def test_w13_a_panic_is_retried_only_where_the_policy_says_so() -> None:
    """W13: a policy retries `Exception`; it may be asked for more."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue, poll_interval=30.0)
        panic = raising(lambda: SystemExit(1))
        register(worker, "async", panic, retry=tenure.RetryPolicy(max_attempts=3))

        @worker.handler(
            "all",
            retry=tenure.RetryPolicy(
                max_attempts=3, base=1.0, jitter=False, retry_on=(BaseException,)
            ),
        )
        async def everything(payload: None) -> None:
            panic()

        jobs = [await world.queue.dispatch(name) for name in ("raise", "all")]
        async with running(world, worker) as handle:
            await world.advance(5.0)
            records = [await world.job(job) for job in jobs]
            assert [(job.state, job.attempt) for job in records] == [("failed", 1), ("failed", 3)]
            assert [type(error) for error in errors_of(handle)] == [tenure.JobPanicked] * 4


@each_store
async def test_w13_a_task_that_cancels_itself_has_failed(store: str, tmp_path: Path) -> None:
    """W13: the worker did not request it."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue)

        @worker.handler("work")
        async def work(payload: None) -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)

        job = await world.queue.dispatch("work")
        async with running(world, worker) as handle:
            record = await ended(world, job)
            assert (record.state, record.attempt) == ("failed", 1)
            assert record.error is not None
            assert (record.error.kind, record.error.message) == ("error", "CancelledError")
            assert [type(error) for error in errors_of(handle)] == [tenure.JobFailed]


async def test_w13_a_handler_that_is_cancelled_by_another_has_failed() -> None:
    """W13: nor did the worker request this one."""
    async with open_world() as world:
        worker = tenure.Worker(world.queue)

        @worker.handler("victim")
        async def victim(payload: None) -> None:
            await asyncio.Event().wait()

        @worker.handler("culprit")
        async def culprit(payload: str) -> None:
            [task] = [task for task in asyncio.all_tasks() if task.get_name() == payload]
            task.cancel()

        job = await world.queue.dispatch("victim")
        async with running(world, worker) as handle:
            await world.settle()
            other = await world.queue.dispatch("culprit", job.id)
            await world.advance(0.01)
            assert await world.state(other) == "completed"
            assert await world.state(job) == "failed"
            assert [type(error) for error in errors_of(handle)] == [tenure.JobFailed]


@each_store
@pytest.mark.parametrize(
    "result",
    [float("nan"), {"a": {1, 2}}, b"bytes", object(), "\ud800", ["\0"], (1, 2)],
    ids=["nan", "set", "bytes", "object", "surrogate", "NUL", "tuple"],
)
async def test_w13_a_result_that_cannot_be_stored_ends_the_attempt_as_failed(
    store: str, tmp_path: Path, result: object
) -> None:
    """W13, A32: "the result cannot be stored", never stuck in processing."""
    async with open_world(store, tmp_path) as world:
        worker = tenure.Worker(world.queue)

        @worker.handler("work")
        async def work(payload: None) -> object:
            return result

        job = await world.queue.dispatch("work")
        async with running(world, worker) as handle:
            record = await ended(world, job)
            assert (record.state, record.result) == ("failed", None)
            assert record.error is not None
            assert record.error.kind == "serialization"
            assert "the result cannot be stored: result" in record.error.message
            assert [type(error) for error in errors_of(handle)] == [tenure.JobFailed]


@each_kind
async def test_w13_a_retry_policy_that_raises_ends_the_attempt_too(kind: str) -> None:
    """W13: the policy is the user's own; the failure stands, and the policy is reported."""

    class Broken(tenure.RetryPolicy):
        def delay(self, attempt: int) -> float:
            raise LookupError("no such delay")

    class Endless(tenure.RetryPolicy):
        def delay(self, attempt: int) -> float:
            return float("nan")

    for policy in (Broken(), Endless()):
        async with open_world() as world:
            worker = tenure.Worker(world.queue, concurrency=1)
            register(worker, kind, raising(lambda: ValueError("no")), retry=policy)
            job = await world.queue.dispatch("raise")
            async with running(world, worker) as handle:
                assert (await ended(world, job)).attempt == 1
                about, failed = errors_of(handle)
                assert isinstance(about, tenure.InvalidConfiguration)
                assert (about.option, about.value) == ("retry", type(policy).__name__)
                assert isinstance(failed, tenure.JobFailed)
                assert failed.failure.message == "ValueError: no"
