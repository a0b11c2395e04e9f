"""`tenure.testing.Bench`: a program's jobs run when its test says so, and time passes only then."""

import asyncio
import inspect
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

import tenure
from tenure.testing import Bench, Processed, SyncBench


@dataclass
class Receipt:
    to: str
    length: int


class Program:
    """A program with tasks, made for one test."""

    def __init__(self) -> None:
        self.ran: list[Any] = []
        self.failures = 0
        self.gate = asyncio.Event()
        self.tasks = tenure.Tasks(prefix="app.")

        @self.tasks.task(queue="mail", retry=tenure.RetryPolicy(max_attempts=3, base=60))
        async def send(to: str, subject: str = "hi") -> Receipt:
            if self.failures > 0:
                self.failures -= 1
                raise ConnectionError("no answer")
            self.ran.append(to)
            return Receipt(to, len(subject))

        @self.tasks.task(timeout=30)
        async def wait() -> str:
            await self.gate.wait()
            return "opened"

        @self.tasks.task
        def relay(to: str) -> None:
            """In a thread."""
            self.ran.append(threading.current_thread().name.partition("-")[0])
            self.queue.sync.dispatch("app.send", {"to": to}, queue="mail")

        self.send, self.wait, self.relay = send, wait, relay

    @property
    def queue(self) -> tenure.Queue:
        assert self.tasks.queue is not None
        return self.tasks.queue


async def same(payload: object) -> object:
    return payload


async def something(payload: object) -> object:
    return object()


@pytest.fixture
def program() -> Program:
    return Program()


@pytest.fixture
def bench(program: Program) -> Iterator[Bench]:
    """Closed after the event loop of the test: what it ran in threads has used another one."""
    with Bench(tasks=[program.tasks]) as bench:
        yield bench


# --- drain --------------------------------------------------------------------------------------


async def test_a_drain_runs_what_is_due_in_every_queue_and_what_that_dispatches(
    program: Program, bench: Bench
) -> None:
    await program.relay.enqueue("a@b")
    await program.send.using(delay=60).enqueue("later")
    assert program.ran == []
    jobs = await bench.drain()
    assert {job.name: job.state for job in jobs} == {
        "app.relay": "completed",
        "app.send": "completed",
    }
    [sent] = [job for job in jobs if job.name == "app.send"]
    assert sent.result == {"to": "a@b", "length": 2}
    assert program.ran == ["tenure", "a@b"]
    assert await bench.drain() == []


async def test_no_time_passes_in_a_drain() -> None:
    with Bench() as bench:
        began = bench.now
        bench.register("work", same)
        await bench.queue.dispatch_many([tenure.Call("work", n) for n in range(50)])
        assert [job.result for job in await bench.drain()] == list(range(50))
        assert bench.now == began


async def test_a_drain_with_scheduled_goes_from_instant_to_instant() -> None:
    """Delays, retries and snoozes; each at its own time."""
    program = Program()
    program.failures = 2
    starts: list[float] = []
    with Bench(tasks=[program.tasks]) as bench:
        began = bench.now

        @bench.handler("snoozing")
        async def snoozing(payload: None) -> Any:
            starts.append((bench.now - began).total_seconds())
            return tenure.Snooze(3600) if len(starts) < 3 else "awake"

        await program.send.enqueue("a@b")
        await bench.queue.dispatch("snoozing", delay=timedelta(hours=1))
        jobs = await bench.drain(with_scheduled=True)
        assert [(job.name, job.state, job.attempt) for job in jobs] == [
            ("app.send", "completed", 3),
            ("snoozing", "completed", 1),
        ]
        assert starts == [3600.0, 7200.0, 10800.0]


async def test_a_drain_without_an_end_is_given_up() -> None:
    """Jobs that dispatch one another; a schedule is not waited for."""
    with Bench() as bench:

        @bench.handler("again")
        async def again(number: int) -> None:
            await bench.queue.dispatch("again", number + 1, delay=1)

        await bench.queue.schedule("minutely", "* * * * *", "again", 0)
        assert await bench.drain(with_scheduled=True) == []
        await bench.queue.dispatch("again", 1)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("tenure.testing.bench._MOST", 5)
            with pytest.raises(AssertionError, match="5 attempts have ended and jobs are"):
                await bench.drain(with_scheduled=True)


async def test_a_failed_job_is_returned_and_a_missing_handler_raises() -> None:
    with Bench() as bench:

        @bench.handler("fails")
        def fails(payload: None) -> None:
            raise ValueError("no")

        await bench.queue.dispatch("fails")
        [job] = await bench.drain()
        assert job.state == "failed"
        assert job.error is not None
        assert job.error.message == "ValueError: no"
        await bench.queue.dispatch("failss")
        with pytest.raises(tenure.HandlerNotFound):
            await bench.drain()


async def test_a_handler_that_does_not_return_is_named() -> None:
    program = Program()
    with Bench(tasks=[program.tasks]) as bench, pytest.MonkeyPatch.context() as patched:
        patched.setattr("tenure.testing.bench._PATIENCE", 0.05)
        await program.wait.enqueue()
        with pytest.raises(AssertionError, match=r"app.wait did not return .* use `time_out`"):
            await bench.drain()


# --- time ---------------------------------------------------------------------------------------


async def test_schedules_and_due_jobs_take_their_turns_while_time_passes() -> None:
    """I13: each tick once, and its job at its own instant."""
    seen: list[tuple[str, str]] = []
    with Bench() as bench:

        @bench.handler("note")
        async def note(payload: str) -> None:
            seen.append((payload, f"{bench.now:%d %H:%M}"))

        await bench.queue.schedule("noon", "0 12 * * *", "note", "noon")
        await bench.queue.dispatch("note", "once", delay=18 * 3600)
        await bench.advance(timedelta(days=2))
        assert seen == [("noon", "01 12:00"), ("once", "01 18:00"), ("noon", "02 12:00")]
        assert f"{bench.now:%d %H:%M}" == "03 00:00"


async def test_leases_and_retention_pass_with_the_same_clock() -> None:
    """I7, I16: a job of a worker that was lost runs again; a finished one is deleted in time."""
    with Bench() as bench:
        runs: list[int] = []

        @bench.handler("work")
        async def work(payload: None, job: tenure.RunningJob) -> None:
            runs.append(job.attempt)

        job = await bench.queue.dispatch("work")
        driver = await bench.queue.driver()
        request = tenure.ClaimRequest(token="lost", queues=(), limit=1, worker="lost", lease=30.0)
        assert len(await driver.claim(request)) == 1
        await bench.advance(29)
        assert runs == []
        await bench.advance(2)
        assert runs == [2]
        assert (await bench.queue.get(job.id)).state == "completed"
        await bench.advance(timedelta(days=2))
        with pytest.raises(tenure.JobNotFound):
            await bench.queue.get(job.id)


# --- one job ------------------------------------------------------------------------------------


async def test_one_attempt_is_run_alone_and_its_outcome_returned() -> None:
    program = Program()
    with Bench(tasks=[program.tasks]) as bench:
        await program.send.enqueue("other")
        done: Processed[Receipt] = await bench.process(program.send, "a@b", subject="hey")
        assert done.result == Receipt("a@b", 3)  # as the type that the task returns
        assert isinstance(done.outcome, tenure.Completed)
        assert done.outcome.result == b'{"to":"a@b","length":3}'
        assert program.ran == ["a@b"]

        program.failures = 1
        retried = await bench.process(program.send.using(priority=3), "c@d")
        assert isinstance(retried.outcome, tenure.Retried)
        assert retried.failure is not None
        assert retried.failure.message == "ConnectionError: no answer"
        assert (retried.job.state, retried.job.priority) == ("pending", 3)
        with pytest.raises(AssertionError, match="did not complete: ConnectionError"):
            _ = retried.result


async def test_a_name_with_a_payload_is_processed_as_well() -> None:
    with Bench() as bench:

        @bench.handler("say")
        async def say(payload: Any) -> Any:
            match payload:
                case "snooze":
                    return tenure.Snooze(5)
                case "cancel":
                    raise tenure.Cancel("enough")
                case other:
                    return other

        assert (await bench.process("say", {"a": [1]})).result == {"a": [1]}
        assert (await bench.process("say")).result is None
        assert (await bench.process("say", "snooze")).outcome == tenure.Snoozed(5.0)
        assert isinstance((await bench.process("say", "cancel")).outcome, tenure.Cancelled)
        with pytest.raises(tenure.HandlerNotFound):
            await bench.process("sai")
        await bench.queue.pause("default")
        with pytest.raises(AssertionError, match="its queue is paused"):
            await bench.process("say")


async def test_what_a_program_cannot_encode_fails_as_it_would_in_production() -> None:
    """The codec is the real one, on the way in and out."""
    with Bench() as bench:
        bench.register("bad", something)
        with pytest.raises(tenure.InvalidJob):
            await bench.process("bad", {1, 2})
        done = await bench.process("bad", "x")
        assert done.failure is not None
        assert done.failure.kind == "serialization"


async def test_a_time_limit_is_passed_without_waiting_for_it() -> None:
    program = Program()
    with Bench(tasks=[program.tasks]) as bench:
        began = bench.now
        done = await bench.time_out(program.wait)
        assert done.failure is not None
        assert (done.failure.kind, done.job.state) == ("timeout", "failed")
        assert bench.now - began == timedelta(seconds=30)
        program.gate.set()
        assert (await bench.time_out(program.wait)).result == "opened"


# --- inline -------------------------------------------------------------------------------------


async def test_inline_a_dispatch_runs_its_job_before_it_returns(
    program: Program, bench: Bench
) -> None:
    """Also one that a handler makes, and one in a thread; a delayed one waits for its time."""
    bench.inline = True
    job = await program.send.enqueue("first")
    assert await job.result(timeout=0) == Receipt("first", 2)
    await program.relay.enqueue("second")
    assert program.ran == ["first", "tenure", "second"]
    await program.send.using(delay=60).enqueue("later")
    assert len(program.ran) == 3
    bench.inline = False
    await program.send.enqueue("fourth")
    assert len(program.ran) == 3
    await bench.drain(with_scheduled=True)
    assert program.ran[3:] == ["fourth", "later"]


async def test_inline_a_failure_is_in_the_job_and_not_in_the_dispatch() -> None:
    program = Program()
    program.failures = 1
    with Bench(tasks=[program.tasks], inline=True) as bench:
        job = await program.send.enqueue("a@b")
        assert (await bench.queue.get(job.id)).state == "pending"  # to be tried again
        await bench.drain(with_scheduled=True)
        assert await job.result(timeout=0) == Receipt("a@b", 2)


# --- what was dispatched ------------------------------------------------------------------------


async def test_what_was_dispatched_is_found_by_name_arguments_and_queue() -> None:
    program = Program()
    with Bench(tasks=[program.tasks]) as bench:
        bench.assert_dispatched(program.send, count=0)
        await program.send.enqueue("a@b", subject="hello")
        await bench.drain()
        await bench.queue.dispatch("raw", [1, [2, 3]], headers={"trace": "1"}, unique="one")
        await bench.queue.dispatch("raw", None, unique="one")  # refused: stored is the first alone
        [sent] = bench.assert_dispatched(program.send, args={"to": "a@b"}, queue="mail", count=1)
        assert sent.args == {"to": "a@b", "subject": "hello"}
        bench.assert_dispatched("app.send")
        [raw] = bench.assert_dispatched("raw", args=(1, [2, 3]))
        assert (raw.headers, raw.queue) == ({"trace": "1"}, "default")
        assert [job.name for job in bench.dispatched] == ["app.send", "raw"]


@pytest.mark.parametrize(
    ("name", "wanted", "message"),
    [
        ("app.send", {"args": {"to": "x@y"}}, "The nearest has to='a@b' instead of to='x@y'"),
        ("app.send", {"args": {"cc": 1}}, "The nearest has no cc instead of cc=1"),
        ("app.send", {"queue": "default"}, "the queue 'mail' instead of 'default'"),
        ("app.send", {"count": 3}, "expected 3 dispatch of 'app.send', got 1"),
        ("app.send", {"count": 0}, "expected no dispatch of 'app.send', got 1"),
        ("app.sent", {}, "The nearest name is 'app.send'"),
        ("raw", {"args": None}, "The nearest has args 1 instead of None"),
        ("raw", {"args": True}, "The nearest has args 1 instead of True"),
        ("nothing", {}, "  app.send {'to': 'a@b'} on 'mail' in 60 s"),
    ],
)
async def test_a_miss_shows_what_was_dispatched_instead(
    name: str, wanted: dict[str, Any], message: str
) -> None:
    program = Program()
    with Bench(tasks=[program.tasks]) as bench:
        await program.send.using(delay=60).enqueue("a@b")
        await bench.queue.dispatch("raw", 1)
        with pytest.raises(AssertionError) as caught:
            bench.assert_dispatched(name, **wanted)
        assert message in str(caught.value)


def test_without_any_dispatch_a_miss_says_so() -> None:
    with Bench() as bench, pytest.raises(AssertionError, match="Nothing was dispatched"):
        bench.assert_dispatched("send")


# --- the program --------------------------------------------------------------------------------


def test_tasks_are_bound_while_the_bench_is_open_and_then_as_they_were() -> None:
    program = Program()
    own = tenure.connect("memory://")
    program.tasks.bind(own)
    with Bench(tasks=[program.tasks]) as bench:
        assert program.tasks.queue is bench.queue
        with Bench(tasks=[program.tasks]) as inner:
            assert program.tasks.queue is inner.queue
        assert program.tasks.queue is bench.queue
    assert program.tasks.queue is own


async def test_a_program_brings_its_own_worker() -> None:
    """With its queues, as in production: what it does not serve is not run."""
    program = Program()

    def worker(queue: tenure.Queue) -> tenure.Worker:
        return tenure.Worker(queue, tasks=[program.tasks], queues=["default"])

    with Bench(tasks=[program.tasks], worker=worker) as bench:
        await program.send.enqueue("a@b")
        assert await bench.drain() == []
        assert (await bench.queue.counts()).pending == 1


async def test_a_dependency_is_replaced() -> None:
    tasks = tenure.Tasks()

    def price() -> int:
        raise AssertionError("the real one")

    with Bench(tasks=[tasks]) as bench:
        bench.override(price, lambda: 7)
        handler = _dependent(tasks, price)
        assert (await bench.process(handler)).result == 7


def _dependent(tasks: tenure.Tasks, price: Any) -> Any:
    async def total(value: Any = tenure.INJECTED) -> int:
        return int(value)

    from typing import Annotated

    total.__annotations__["value"] = Annotated[int, tenure.Depends(price)]
    return tasks.task(total)


# --- tests that are not async -------------------------------------------------------------------


def test_the_blocking_bench_runs_the_same_jobs() -> None:
    program = Program()
    with Bench(tasks=[program.tasks]) as bench:
        program.send.enqueue_sync("a@b")
        assert [job.state for job in bench.sync.drain(with_scheduled=True)] == ["completed"]
        assert bench.sync.process(program.send, "c@d").result == Receipt("c@d", 2)
        assert bench.sync.time_out(program.wait).job.state == "failed"
        assert bench.sync.advance(60) == []


@pytest.mark.parametrize("verb", ["drain", "advance", "process", "time_out"])
def test_a_blocking_verb_has_the_signature_of_the_awaited_one(verb: str) -> None:
    ours, theirs = getattr(SyncBench, verb), getattr(Bench, verb)
    assert inspect.signature(ours) == inspect.signature(theirs)
