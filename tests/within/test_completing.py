"""`job.complete_within`: the handler's own writes and the completion, together or not at all."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import tenure
from tests.runtime.scenes import errors_of, quiet_worker, running, take_over, unreachable
from tests.runtime.world import World, open_world


def connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path / "jobs.db")
    connection.execute("CREATE TABLE IF NOT EXISTS notes (text TEXT)")
    connection.commit()
    return connection


def notes(path: Path) -> list[str]:
    with sqlite3.connect(path / "jobs.db") as connection:
        return [text for (text,) in connection.execute("SELECT text FROM notes")]


def settled(world: World, worker_options: dict[str, Any]) -> list[tenure.JobSettled]:
    """The ends of jobs that a worker with these options will tell."""
    seen: list[tenure.JobSettled] = []

    def observe(event: tenure.Event) -> None:
        if isinstance(event, tenure.JobSettled):
            seen.append(event)

    worker_options["observers"] = [observe]
    return seen


async def test_a_committed_completion_is_the_outcome_with_its_own_result(tmp_path: Path) -> None:
    """What the handler returns is not stored; the job has ended before its handler has."""
    async with open_world("sqlite", tmp_path) as world:
        options: dict[str, Any] = {}
        ends = settled(world, options)
        worker = quiet_worker(world, **options)
        own = connected(tmp_path)

        @worker.handler("pay")
        async def pay(payload: str, job: tenure.RunningJob) -> str:
            own.execute("INSERT INTO notes VALUES (?)", (payload,))
            await job.complete_within(own, {"paid": payload})
            own.commit()
            return "not this"

        job = await world.queue.dispatch("pay", "invoice")
        async with running(worker) as handle:
            await world.advance(1.0)
            record = await world.job(job)
            assert (record.state, record.result, record.attempt) == (
                "completed",
                {"paid": "invoice"},
                1,
            )
            assert notes(tmp_path) == ["invoice"]
            assert [event.outcome for event in ends] == [tenure.Completed(b'{"paid":"invoice"}')]
            assert errors_of(handle) == []
        own.close()


async def test_a_handler_in_a_thread_completes_with_a_plain_call(tmp_path: Path) -> None:
    """It has been done when the call returns; awaiting is not needed."""
    async with open_world("sqlite", tmp_path) as world:
        worker = quiet_worker(world)
        connected(tmp_path).close()

        @worker.handler("pay")
        def pay(payload: str, job: tenure.RunningJob) -> None:
            with sqlite3.connect(tmp_path / "jobs.db") as own:
                own.execute("INSERT INTO notes VALUES (?)", (payload,))
                job.complete_within(own, "paid")
            own.close()

        job = await world.queue.dispatch("pay", "invoice")
        async with running(worker) as handle:
            await world.until(lambda: notes(tmp_path) == ["invoice"])
            assert await job.result(timeout=0) == "paid"
            assert errors_of(handle) == []


@pytest.mark.parametrize("attempts", [1, 2])
async def test_a_completion_that_was_not_committed_has_failed(
    attempts: int, tmp_path: Path
) -> None:
    """Also retried, as any failure: the transaction was rolled back, so nothing was done."""
    async with open_world("sqlite", tmp_path) as world:
        worker = quiet_worker(world)
        own = connected(tmp_path)
        starts: list[int] = []

        @worker.handler("pay", retry=tenure.RetryPolicy(max_attempts=attempts, base=1.0))
        async def pay(payload: str, job: tenure.RunningJob) -> None:
            starts.append(job.attempt)
            own.execute("INSERT INTO notes VALUES (?)", (payload,))
            await job.complete_within(own)
            own.rollback() if job.attempt == 1 else own.commit()

        job = await world.queue.dispatch("pay", "invoice")
        async with running(worker) as handle:
            await world.advance(0.0)
            record = await world.job(job)
            assert record.error is not None
            assert "was not committed" in record.error.message
            await world.advance(2.0)
            assert await world.state(job) == ("failed" if attempts == 1 else "completed")
            assert len(starts) == attempts
            assert len(notes(tmp_path)) == attempts - 1
            (error,) = errors_of(handle)
            assert isinstance(error, tenure.JobFailed)
        own.close()


async def test_a_handler_that_raises_within_its_transaction_has_failed_with_its_own_error(
    tmp_path: Path,
) -> None:
    """The usual case: the context of the transaction rolls back."""
    async with open_world("sqlite", tmp_path) as world:
        worker = quiet_worker(world)
        own = connected(tmp_path)

        @worker.handler("pay")
        async def pay(payload: str, job: tenure.RunningJob) -> None:
            with own:
                await job.complete_within(own)
                raise ValueError("no money")

        job = await world.queue.dispatch("pay", "invoice")
        async with running(worker) as handle:
            await world.advance(0.0)
            record = await world.job(job)
            assert record.state == "failed"
            assert record.error is not None
            assert record.error.message == "ValueError: no money"
            assert [type(error) for error in errors_of(handle)] == [tenure.JobFailed]
        own.close()


async def test_what_a_handler_does_after_the_commit_changes_nothing_and_is_reported(
    tmp_path: Path,
) -> None:
    """I3: the job stays completed; the error is not lost."""
    async with open_world("sqlite", tmp_path) as world:
        worker = quiet_worker(world)
        own = connected(tmp_path)

        @worker.handler("pay", retry=tenure.RetryPolicy())
        async def pay(payload: str, job: tenure.RunningJob) -> None:
            with own:
                await job.complete_within(own, "paid")
            raise ValueError("too late")

        job = await world.queue.dispatch("pay", "invoice")
        async with running(worker) as handle:
            await world.advance(10.0)
            assert await job.result(timeout=0) == "paid"
            (error,) = errors_of(handle)
            assert isinstance(error, tenure.StateTransitionError)
            assert error.operation == "retry"
            assert "stays completed" in error.message
            assert "too late" in error.message
        own.close()


async def test_a_hold_that_is_not_current_is_refused_in_the_handler(tmp_path: Path) -> None:
    """I3: another worker has the job; the transaction is the handler's to roll back."""
    async with open_world("sqlite", tmp_path) as world:
        worker = quiet_worker(world)
        own = connected(tmp_path)
        gate = asyncio.Event()
        refused: list[tenure.StateTransitionError] = []

        @worker.handler("pay")
        async def pay(payload: str, job: tenure.RunningJob) -> None:
            await gate.wait()
            with own:
                own.execute("INSERT INTO notes VALUES (?)", (payload,))
                try:
                    await job.complete_within(own)
                except tenure.StateTransitionError as error:
                    refused.append(error)
                    raise

        job = await world.queue.dispatch("pay", "invoice")
        async with running(worker) as handle:
            await world.settle()
            other = await take_over(world, job.id)
            gate.set()
            await world.settle()
            assert [error.operation for error in refused] == ["complete_within"]
            assert notes(tmp_path) == []
            record = await world.job(job)
            assert (record.state, record.serial) == ("processing", other.hold.serial)
            await world.inner.record([(other.hold, tenure.Completed())])
            kinds = {type(error) for error in errors_of(handle)}
            assert kinds <= {tenure.StateTransitionError, tenure.LeaseLost}
        own.close()


@pytest.mark.parametrize(
    ("error", "told"),
    [(unreachable(), tenure.StoreUnavailable), (RuntimeError("a defect"), tenure.WorkerTaskError)],
)
async def test_a_handler_that_works_on_after_its_commit_has_lost_no_lease(
    error: Exception, told: type[tenure.QueueError], tmp_path: Path
) -> None:
    """W19: the keeper finds the hold ended, by the handler itself; also when it cannot ask."""
    async with open_world("sqlite", tmp_path) as world:
        worker = quiet_worker(world, lease=30.0)
        own = connected(tmp_path)
        ended: list[str] = []

        @worker.handler("pay")
        async def pay(payload: None, job: tenure.RunningJob) -> None:
            await job.complete_within(own, "paid")
            own.commit()
            await world.clock.sleep(100.0)
            ended.append(job.id)

        job = await world.queue.dispatch("pay")
        async with running(worker) as handle:
            await world.settle()
            world.driver.fail("get", error, times=1)
            await world.advance(101.0)
            assert ended == [job.id]
            assert (await world.job(job)).result == "paid"
            assert [type(error) for error in errors_of(handle)] == [told]
        own.close()


async def test_a_completion_that_was_rolled_back_does_not_hide_a_lost_lease(tmp_path: Path) -> None:
    """W19: the job is another worker's, so the handler is told to stop."""
    async with open_world("sqlite", tmp_path) as world:
        worker = quiet_worker(world, lease=30.0)
        own = connected(tmp_path)

        @worker.handler("pay")
        async def pay(payload: None, job: tenure.RunningJob) -> None:
            await job.complete_within(own)
            own.rollback()
            await asyncio.Event().wait()

        job = await world.queue.dispatch("pay")
        async with running(worker) as handle:
            await world.settle()
            other = await take_over(world, job.id)
            await world.advance(11.0)
            assert [type(error) for error in errors_of(handle)] == [tenure.LeaseLost]
            await world.inner.record([(other.hold, tenure.Completed())])
        own.close()


@pytest.mark.parametrize("committed", [True, False])
async def test_the_check_is_repeated_until_the_store_answers(
    committed: bool, tmp_path: Path
) -> None:
    """W16: and it decides by what it is told then."""
    async with open_world("sqlite", tmp_path) as world:
        worker = quiet_worker(world)
        own = connected(tmp_path)

        @worker.handler("pay")
        async def pay(payload: str, job: tenure.RunningJob) -> None:
            await job.complete_within(own)
            own.commit() if committed else own.rollback()

        job = await world.queue.dispatch("pay", "invoice")
        world.driver.fail("get", unreachable(), times=3)
        async with running(worker) as handle:
            await world.until(lambda: "get" in world.driver.calls)
            await world.advance(10.0)
            assert await world.state(job) == ("completed" if committed else "failed")
            kinds = [type(error) for error in errors_of(handle)]
            assert kinds[:3] == [tenure.StoreUnavailable] * 3
            assert kinds[3:] == ([] if committed else [tenure.JobFailed])
        own.close()


@pytest.mark.parametrize("error", [tenure.StoreError("refused"), RuntimeError("a defect")])
async def test_a_check_that_cannot_be_made_leaves_it_to_the_hold(
    error: Exception, tmp_path: Path
) -> None:
    """I3: what was committed stands; the doubt is reported."""
    async with open_world("sqlite", tmp_path) as world:
        worker = quiet_worker(world)
        own = connected(tmp_path)

        @worker.handler("pay")
        async def pay(payload: bool, job: tenure.RunningJob) -> None:
            await job.complete_within(own)
            own.commit() if payload else own.rollback()

        async with running(worker) as handle:
            for committed, operations in (
                (True, ["complete_within", "complete_within"]),
                (False, ["complete_within", "JobFailed"]),
            ):
                await world.advance(0.01)  # the floor after an empty claim
                world.driver.fail("get", error, times=1)
                world.driver.calls.clear()
                job = await world.queue.dispatch("pay", committed)
                await world.until(lambda: "get" in world.driver.calls)
                assert await world.state(job) == ("completed" if committed else "failed")
                told = [
                    e.operation if isinstance(e, tenure.StateTransitionError) else type(e).__name__
                    for e in errors_of(handle)
                ]
                assert told == operations
        own.close()


async def test_a_shutdown_in_the_middle_of_the_transaction_gives_the_job_back(
    tmp_path: Path,
) -> None:
    """W23: with no attempt spent, since its transaction was rolled back."""
    async with open_world("sqlite", tmp_path) as world:
        worker = quiet_worker(world)
        own = connected(tmp_path)

        @worker.handler("pay")
        async def pay(payload: str, job: tenure.RunningJob) -> None:
            with own:
                await job.complete_within(own)
                own.rollback()  # or the store's own writer could not write
                await asyncio.Event().wait()

        job = await world.queue.dispatch("pay", "invoice")
        handle = worker.run()
        await world.settle()
        assert await handle.shutdown(0.0) is None
        record = await world.job(job)
        assert (record.state, record.attempt) == ("pending", 0)
        own.close()


async def test_a_store_that_cannot_says_so_in_the_handler() -> None:
    """No option is accepted and ignored."""
    async with open_world() as world:
        worker = quiet_worker(world)

        @worker.handler("pay")
        async def pay(payload: str, job: tenure.RunningJob) -> None:
            await job.complete_within(object())

        job = await world.queue.dispatch("pay", "invoice")
        async with running(worker) as handle:
            await world.settle()
            record = await world.job(job)
            assert record.error is not None
            assert "does not support complete_within" in record.error.message
            assert len(errors_of(handle)) == 1


async def test_a_result_that_cannot_be_stored_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    """Section 7, as for what a handler returns."""
    async with open_world("sqlite", tmp_path) as world:
        worker = quiet_worker(world)
        own = connected(tmp_path)

        @worker.handler("pay")
        async def pay(payload: str, job: tenure.RunningJob) -> None:
            await job.complete_within(own, {"when": {1, 2}})

        job = await world.queue.dispatch("pay", "invoice")
        async with running(worker) as handle:
            await world.settle()
            record = await world.job(job)
            assert record.state == "failed"
            assert record.error is not None
            assert "result.when" in record.error.message
            assert not own.in_transaction
            errors_of(handle)
        own.close()
