"""`job.set_progress` and `job.log`: shown by `get`, without haste, never in the way of a job."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.driver import Capability
from tests.runtime.arrange import hidden
from tests.runtime.scenes import (
    Gates,
    errors_of,
    quiet_worker,
    running,
    shut_down,
    stubborn,
    take_over,
    unreachable,
    writes,
)
from tests.runtime.world import World, each_store, open_world

Say = Callable[[tenure.RunningJob], object]


class Told:
    """A job whose handler gives its `RunningJob` to the test, and waits to be let go."""

    def __init__(self, world: World, **options: Any) -> None:
        self.world = world
        self.worker = quiet_worker(world, **options)
        self.worker.register("work", self._work)
        self.go = asyncio.Event()
        self.jobs: list[tenure.RunningJob] = []
        self.stopped = 0
        self.handle: tenure.JobHandle | None = None

    async def _work(self, payload: None, job: tenure.RunningJob) -> str:
        self.jobs.append(job)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        return "done"

    async def begin(self) -> tenure.RunningJob:
        self.handle = await self.world.queue.dispatch("work")
        await self.world.settle()
        return self.jobs[0]

    async def end(self) -> tenure.Job[Any]:
        self.go.set()
        await self.world.settle()
        return await self.record()

    async def record(self) -> tenure.Job[Any]:
        assert self.handle is not None
        return await self.world.job(self.handle)

    async def shown(self) -> tenure.Progress | None:
        return (await self.record()).progress

    @property
    def written(self) -> int:
        return self.world.driver.calls.count("progress")


def said(record: tenure.Job[Any]) -> tenure.Progress:
    assert isinstance(record.progress, tenure.Progress)
    return record.progress


def texts(progress: tenure.Progress) -> list[str]:
    return [line.text for line in progress.log]


# --- what is shown ------------------------------------------------------------------------------


@each_store
async def test_what_a_handler_says_is_shown_while_it_runs_and_after(
    store: str, tmp_path: Path
) -> None:
    """`queue.get(id).progress`: None at first, then the newest; kept with the finished job."""
    async with open_world(store, tmp_path) as world:
        told = Told(world)
        async with running(told.worker) as handle:
            job = await told.begin()
            assert await told.shown() is None
            await job.set_progress(0.4, "two of five")
            await world.settle()
            assert await told.shown() == tenure.Progress(fraction=0.4, note="two of five")
            await world.advance(1.0)
            await job.set_progress(1)
            await world.settle()
            assert await told.shown() == tenure.Progress(fraction=1.0)
            record = await told.end()
            assert (record.state, record.result) == ("completed", "done")
            assert record.progress == tenure.Progress(fraction=1.0)
            assert errors_of(handle) == []


@each_store
async def test_a_handler_in_a_thread_says_it_with_a_plain_call(store: str, tmp_path: Path) -> None:
    """Nothing to await there; it never waits for the store."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world)
        spoken, gate = threading.Event(), threading.Event()

        @worker.handler("work")
        def work(payload: None, job: tenure.RunningJob) -> None:
            job.set_progress(0.25, "from a thread")
            job.log("read the file")
            spoken.set()
            assert gate.wait(20.0)
            job.set_progress(1.0)

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.until(spoken.is_set)
            await world.advance(1.0)
            progress = said(await world.job(job))
            assert (progress.fraction, progress.note) == (0.25, "from a thread")
            assert texts(progress) == ["read the file"]
            gate.set()
            await world.ended(job)
            record = await world.job(job)
            assert (record.state, said(record).fraction) == ("completed", 1.0)
            assert errors_of(handle) == []


async def test_what_is_stored_is_a_small_json_object() -> None:
    """So that a program in another language can show it."""
    async with open_world() as world:
        told = Told(world)
        async with running(told.worker):
            job = await told.begin()
            await job.set_progress(0.5, "half")
            record = await told.end()
            stored = await world.inner.get(record.id)
            assert stored is not None
            assert stored.progress == b'{"fraction":0.5,"note":"half"}'


@pytest.mark.parametrize("fraction", [-0.01, 1.01, float("nan"), float("inf"), True, "0.5", None])
async def test_a_fraction_that_is_none_is_refused_by_name(fraction: Any) -> None:
    """A `ValueError` for the handler; nothing is stored."""
    async with open_world() as world:
        told = Told(world)
        async with running(told.worker):
            job = await told.begin()
            with pytest.raises(ValueError, match="fraction must be a number from 0 to 1") as caught:
                job.set_progress(fraction)
            assert isinstance(caught.value, tenure.InvalidConfiguration)
            assert (await told.end()).progress is None
            assert told.written == 0


async def test_notes_and_lines_are_text_that_every_store_can_hold_cut_with_a_mark() -> None:
    """500 characters at most; what is no text is refused by name."""
    async with open_world() as world:
        told = Told(world)
        async with running(told.worker):
            job = await told.begin()
            wrong: Any = b"bytes"
            with pytest.raises(tenure.InvalidConfiguration, match="note must be text"):
                job.set_progress(0.5, wrong)
            with pytest.raises(tenure.InvalidConfiguration, match="text must be text"):
                job.log(wrong)
            job.set_progress(0.5, "n" * 501)
            job.log("\ud800\0" + "t" * 2000)
            progress = said(await told.end())
            assert progress.note == "n" * 499 + "…"
            [text] = texts(progress)
            assert len(text) == 500
            assert text.startswith("\\ud800\\0ttt")
            assert text.endswith("t…")


async def test_the_newest_hundred_lines_are_kept_with_their_instants() -> None:
    """Older ones make room; the fraction stays what it was."""
    async with open_world() as world:
        told = Told(world)
        async with running(told.worker):
            job = await told.begin()
            start = world.clock.now()
            job.set_progress(0.1)
            for number in range(150):
                await job.log(f"line {number}")
                await world.advance(0.01)
            progress = said(await told.end())
            assert texts(progress) == [f"line {number}" for number in range(50, 150)]
            assert progress.log[0].at == start + timedelta(seconds=0.5)
            assert progress.fraction == 0.1


@each_store
async def test_the_next_attempt_goes_on_from_what_is_stored(store: str, tmp_path: Path) -> None:
    """Its lines come after the stored ones; what it does not replace stays."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world)

        @worker.handler("work", retry=tenure.RetryPolicy(max_attempts=2, base=1.0, jitter=False))
        async def work(payload: None, job: tenure.RunningJob) -> None:
            job.log(f"attempt {job.attempt}")
            if job.attempt == 1:
                job.set_progress(0.7, "far")
                raise ValueError("once more")

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.advance(2.0)
            record = await world.job(job)
            assert (record.state, record.attempt) == ("completed", 2)
            assert texts(said(record)) == ["attempt 1", "attempt 2"]
            assert (said(record).fraction, said(record).note) == (0.7, "far")
            assert [type(error) for error in errors_of(handle)] == [tenure.JobFailed]


async def test_stored_progress_that_cannot_be_read_is_shown_as_damaged_and_replaced() -> None:
    """I12: another program wrote it; the job is none the worse."""
    async with open_world() as world:
        job = await world.queue.dispatch("work")
        [claim] = await world.claim_elsewhere()
        await world.inner.progress(claim.hold, b"[half")
        assert (await world.job(job)).progress == tenure.Damaged(b"[half")
        await world.inner.record([(claim.hold, tenure.Released("elsewhere"))])
        told = Told(world)
        async with running(told.worker) as handle:
            await world.settle()
            told.handle = job
            told.jobs[0].log("anew")
            record = await told.end()
            assert texts(said(record)) == ["anew"]
            assert errors_of(handle) == []


# --- how much is written, and when ----------------------------------------------------------------


async def test_a_handler_that_says_a_hundred_thousand_things_a_second_writes_ten() -> None:
    """Coalesced: the newest is shown within about a tenth of a second, the rest is passed over."""
    async with open_world() as world:
        told = Told(world)
        async with running(told.worker):
            job = await told.begin()
            for step in range(100):
                for number in range(1000):
                    job.set_progress((1000 * step + number) / 100_000)
                await world.advance(0.01)
                progress = await told.shown()
                assert progress is not None
                assert progress.fraction is not None
                assert progress.fraction >= (step - 10) / 100
            assert told.written <= 11
            await told.end()
            assert await told.shown() == tenure.Progress(fraction=0.99999)
            assert told.written <= 12


async def test_an_async_handler_that_awaits_each_call_lets_others_run() -> None:
    """Awaiting it gives the event loop a turn."""
    async with open_world() as world:
        worker = quiet_worker(world)
        turns: list[int] = []

        @worker.handler("talks")
        async def talks(payload: None, job: tenure.RunningJob) -> None:
            while len(turns) < 10:
                await job.set_progress(0.5)

        @worker.handler("works")
        async def works(payload: None) -> None:
            for number in range(10):
                turns.append(number)
                await asyncio.sleep(0)

        async with running(worker):
            jobs = [await world.queue.dispatch(name) for name in ("talks", "works")]
            await world.settle()
            assert [await world.state(job) for job in jobs] == ["completed", "completed"]


async def test_while_a_write_is_in_flight_the_newest_waits() -> None:
    """One write of a job at a time, so that they arrive in order."""
    async with open_world() as world:
        told = Told(world)
        async with running(told.worker):
            job = await told.begin()
            gate = world.driver.hold_up("progress")
            for tenth in range(1, 6):
                job.set_progress(tenth / 10)
                await world.advance(1.0)
            assert told.written == 1
            assert await told.shown() is None
            gate.set()
            await world.advance(0.1)
            assert told.written == 2
            assert await told.shown() == tenure.Progress(fraction=0.5)
            assert (await told.end()).state == "completed"
            assert told.written == 2


async def test_a_job_that_says_nothing_writes_nothing() -> None:
    """And an idle one writes nothing more."""
    async with open_world() as world:
        told = Told(world)
        async with running(told.worker):
            job = await told.begin()
            await world.advance(60.0)
            assert told.written == 0
            job.set_progress(0.5)
            await world.advance(60.0)
            assert told.written == 1
            await told.end()
            assert told.written == 1


@each_store
async def test_the_last_word_is_written_before_the_outcome(store: str, tmp_path: Path) -> None:
    """In order, and at once: no pause is kept when the handler has ended."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world)

        @worker.handler("work")
        async def work(payload: None, job: tenure.RunningJob) -> None:
            await job.set_progress(0.1)
            await world.clock.sleep(0.01)  # the first is written, the next has to wait
            await job.set_progress(0.9, "nearly")
            await job.log("last")

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.settle()
            del world.driver.calls[:]
            await world.advance(0.01)
            record = await world.job(job)
            assert (record.state, said(record).note) == ("completed", "nearly")
            assert texts(said(record)) == ["last"]
            calls = [c for c in world.driver.calls if c in ("progress", "record", "exchange")]
            assert calls[0] == "progress"
            assert len(calls) == 2
            assert errors_of(handle) == []


async def test_an_outcome_waits_for_the_progress_in_flight_and_holds_no_other_up() -> None:
    """What was sent before it may not arrive after it."""
    async with open_world() as world:
        told = Told(world)
        other = Gates()
        told.worker.register("other", other)
        async with running(told.worker):
            job = await told.begin()
            gate = world.driver.hold_up("progress")
            await job.set_progress(0.5)
            await world.settle()
            beside = await world.queue.dispatch("other", "x")
            await world.advance(0.1)
            other.let("x")
            assert (await told.end()).state == "processing"
            assert await world.state(beside) == "completed"
            gate.set()
            await world.settle()
            record = await told.record()
            assert (record.state, said(record).fraction) == ("completed", 0.5)


async def test_a_released_job_keeps_the_last_word_for_the_next_attempt() -> None:
    """W23: the shutdown writes it, then gives the job back."""
    async with open_world() as world:
        told = Told(world)
        handle = told.worker.run()
        job = await told.begin()
        job.set_progress(0.3)
        await world.settle()
        job.log("interrupted here")
        assert await shut_down(world, handle) is None
        record = await told.record()
        assert (record.state, record.attempt) == ("pending", 0)
        assert (said(record).fraction, texts(said(record))) == (0.3, ["interrupted here"])


# --- what can go wrong ----------------------------------------------------------------------------


def set_progress(job: tenure.RunningJob) -> object:
    return job.set_progress(0.5)


def log(job: tenure.RunningJob) -> object:
    return job.log("x")


@pytest.mark.parametrize("say", [set_progress, log])
async def test_a_store_that_keeps_no_progress_says_so_at_the_call(say: Say) -> None:
    """`Unsupported`, in the handler."""
    async with open_world(**hidden("memory", Capability.PROGRESS)) as world:
        told = Told(world)
        async with running(told.worker) as handle:
            job = await told.begin()
            with pytest.raises(tenure.Unsupported) as caught:
                say(job)
            assert caught.value.operation == "progress"
            assert (await told.end()).state == "completed"
            assert errors_of(handle) == []


async def test_an_outage_is_reported_and_the_newest_is_written_after_it() -> None:
    """The handler hears nothing of it."""
    async with open_world() as world:
        told = Told(world)
        async with running(told.worker) as handle:
            job = await told.begin()
            world.driver.fail("progress", unreachable(ambiguous=True), times=3)
            job.set_progress(0.1)
            await world.advance(0.01)
            assert [type(error) for error in errors_of(handle)] == [tenure.StoreUnavailable]
            job.set_progress(0.2)
            await world.advance(10.0)
            assert [type(error) for error in errors_of(handle)] == [tenure.StoreUnavailable] * 2
            assert told.stopped == 0
            assert await told.shown() == tenure.Progress(fraction=0.2)
            assert (await told.end()).state == "completed"


async def test_what_an_outage_kept_from_being_written_is_dropped_with_the_attempt() -> None:
    """One more try, then its outcome is written: that matters more."""
    async with open_world() as world:
        told = Told(world)
        async with running(told.worker) as handle:
            job = await told.begin()
            world.driver.fail("progress", unreachable(), times=1000)
            job.set_progress(0.1)
            await world.advance(100.0)
            assert 5 < len(errors_of(handle)) < 25  # it is not asked all the time
            record = await told.end()
            assert (record.state, record.progress) == ("completed", None)
            assert [type(error) for error in errors_of(handle)] == [tenure.StoreUnavailable]


async def test_a_value_that_the_store_refuses_is_reported_once_and_the_next_is_tried() -> None:
    """A definite error would come again."""
    async with open_world() as world:
        told = Told(world)
        async with running(told.worker) as handle:
            job = await told.begin()
            world.driver.fail("progress", tenure.StoreError("no"))
            job.set_progress(0.1)
            await world.advance(30.0)
            assert [type(error) for error in errors_of(handle)] == [tenure.StoreError]
            assert told.written == 1
            job.set_progress(0.2)
            await world.settle()
            assert await told.shown() == tenure.Progress(fraction=0.2)
            await told.end()


async def test_a_defect_of_the_driver_harms_neither_the_job_nor_the_worker() -> None:
    """Reported with its cause."""
    async with open_world() as world:
        told = Told(world)
        async with running(told.worker) as handle:
            job = await told.begin()
            world.driver.fail("progress", TypeError("a defect"), times=10)
            for _ in range(5):
                job.set_progress(0.1)
                await world.advance(20.0)
            errors = errors_of(handle)
            assert [type(error) for error in errors] == [tenure.WorkerTaskError] * 5
            assert isinstance(errors[0].__cause__, TypeError)
            assert handle.healthy
            assert (await told.end()).state == "completed"


@each_store
async def test_a_fenced_write_changes_nothing_and_tells_that_the_lease_is_lost(
    store: str, tmp_path: Path
) -> None:
    """W15, W19, I3: reported, and the handler is cancelled, before the keeper has found out."""
    async with open_world(store, tmp_path) as world:
        events: list[tenure.Event] = []
        told = Told(world, observers=[events.append])
        async with running(told.worker) as handle:
            job = await told.begin()
            assert told.handle is not None
            rival = await take_over(world, told.handle.id)
            await world.inner.progress(rival.hold, b'{"fraction":0.1}')
            before = await told.record()
            await job.set_progress(0.9, "late")
            await world.settle()
            assert told.stopped == 1
            fenced, lost = errors_of(handle)
            assert isinstance(fenced, tenure.StateTransitionError)
            assert (fenced.job_id, fenced.operation) == (told.handle.id, "progress")
            assert isinstance(lost, tenure.LeaseLost)
            kinds = [type(e) for e in events if isinstance(e, tenure.JobFenced | tenure.LeaseEnded)]
            assert kinds == [tenure.JobFenced, tenure.LeaseEnded]
            await job.set_progress(1.0)
            await world.advance(60.0)
            assert told.written == 1
            assert await told.record() == before
            assert errors_of(handle) == []


@each_store
async def test_after_a_lost_lease_the_progress_of_a_thread_changes_nothing(
    store: str, tmp_path: Path
) -> None:
    """I3: it cannot be interrupted, so it goes on saying things; the keeper knows of the loss."""
    async with open_world(store, tmp_path) as world:
        worker = quiet_worker(world)
        seen: list[tenure.RunningJob] = []
        gate = threading.Event()

        @worker.handler("work")
        def work(payload: None, job: tenure.RunningJob) -> None:
            seen.append(job)
            assert gate.wait(20.0)
            job.set_progress(0.9, "too late")
            job.log("too late")

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.until(lambda: bool(seen))
            seen[0].set_progress(0.2)
            await world.settle()
            await take_over(world, job.id)
            await world.advance(10.0)
            assert [type(error) for error in errors_of(handle)] == [tenure.LeaseLost]
            assert seen[0].cancelled
            before = await world.job(job)
            gate.set()
            await world.until(lambda: writes(world) > 0)
            await world.advance(1.0)
            assert world.driver.calls.count("progress") == 1
            after = await world.job(job)
            assert after == before
            assert after.progress == tenure.Progress(fraction=0.2)
            [refused] = errors_of(handle)
            assert isinstance(refused, tenure.StateTransitionError)
            assert refused.operation == "complete"


async def test_what_is_said_after_the_end_is_not_written() -> None:
    """Something that the handler started goes on with the job in its hands."""
    async with open_world() as world:
        told = Told(world)
        async with running(told.worker) as handle:
            job = await told.begin()
            await told.end()
            await job.set_progress(0.5)
            await world.advance(1.0)
            assert told.written == 0
            assert errors_of(handle) == []


async def test_a_write_that_hangs_does_not_hold_up_a_shutdown_past_its_bound() -> None:
    """W23: the outcome that waits for it is abandoned and reported."""
    async with open_world() as world:
        told = Told(world)
        handle = told.worker.run()
        job = await told.begin()
        world.driver.hold_up("progress")
        job.set_progress(0.5)
        await world.settle()
        error = await shut_down(world, handle)
        assert isinstance(error, tenure.StateTransitionError)
        assert error.operation == "release_after_shutdown"
        assert not handle.running
        assert (await told.record()).state == "processing"


@pytest.mark.parametrize("how", ["abort", "cancel"])
async def test_nothing_is_written_for_a_handler_that_outlives_its_worker(how: str) -> None:
    """W24: its lease runs out, and its job is another worker's."""
    async with open_world() as world:
        told = Told(world)
        gate = asyncio.Event()
        seen: list[tenure.RunningJob] = []

        @told.worker.handler("stubborn")
        async def outlives(payload: None, job: tenure.RunningJob) -> None:
            seen.append(job)
            await stubborn(gate)
            await job.set_progress(1.0)

        handle = told.worker.run()
        await world.queue.dispatch("stubborn")
        await world.settle()
        await seen[0].set_progress(0.1)
        await world.settle()
        if how == "abort":
            handle.abort()
        else:
            await shut_down(world, handle)
        await handle.wait()
        gate.set()
        await world.settle()
        assert told.written == 1
        left = [task for task in asyncio.all_tasks() if task.get_name() == "tenure-progress"]
        assert left == []


async def test_progress_beside_a_completion_of_the_handlers_own_is_no_lost_lease(
    tmp_path: Path,
) -> None:
    """The commit of `complete_within` has settled the hold; what comes after is passed over."""
    import sqlite3

    async with open_world("sqlite", tmp_path) as world:
        worker = quiet_worker(world)
        own = sqlite3.connect(tmp_path / "jobs.db")
        own.execute("CREATE TABLE notes (text TEXT)")

        @worker.handler("work")
        async def work(payload: None, job: tenure.RunningJob) -> None:
            await job.set_progress(0.5)
            await world.clock.sleep(1.0)
            own.execute("INSERT INTO notes VALUES ('x')")
            await job.complete_within(own, "own")
            own.commit()
            await job.set_progress(1.0)
            await world.clock.sleep(1.0)

        async with running(worker) as handle:
            job = await world.queue.dispatch("work")
            await world.advance(3.0)
            record = await world.job(job)
            assert (record.state, record.result) == ("completed", "own")
            assert record.progress == tenure.Progress(fraction=0.5)
            assert errors_of(handle) == []
        own.close()


async def test_every_call_can_be_awaited_or_not() -> None:
    """One signature for coroutines and threads."""
    async with open_world() as world:
        told = Told(world)
        async with running(told.worker):
            job = await told.begin()
            answers: list[Awaitable[None]] = [job.set_progress(0.5), job.log("x")]
            for answer in answers:
                await answer
            assert texts(said(await told.end())) == ["x"]
