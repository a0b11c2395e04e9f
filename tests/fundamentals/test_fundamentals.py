"""What tenure does, one concept at a time: the first thing to read about it.

Every test uses a SQLite file and handlers as a program would write them. Nothing sleeps: a test
waits for the result of a job.
"""

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import tenure


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'jobs.db'}"


async def test_a_dispatched_job_is_run_by_a_worker_and_its_result_is_kept(url: str) -> None:
    async def total(prices: list[int]) -> int:
        return sum(prices)

    async with tenure.connect(url) as queue:
        worker = tenure.Worker(queue)
        worker.register("total", total)

        job = await queue.dispatch("total", [3, 4, 5])
        assert (await queue.get(job.id)).state == "pending"  # durable, and nobody has run it yet

        async with worker.run():
            assert await job.result(timeout=10) == 12

        record = await queue.get(job.id)  # the result outlives the worker
        assert (record.state, record.attempt, record.result) == ("completed", 1, 12)


async def test_a_failed_job_keeps_its_error_and_its_worker_reports_it(url: str) -> None:
    async def charge(amount: int) -> None:
        raise ValueError(f"cannot charge {amount}")

    async with tenure.connect(url) as queue:
        worker = tenure.Worker(queue)
        worker.register("charge", charge)

        async with worker.run() as handle:
            job = await queue.dispatch("charge", -1)
            with pytest.raises(tenure.JobFailed, match="cannot charge -1"):
                await job.result(timeout=10)
            reported = await handle.next_error()

        assert isinstance(reported, tenure.JobFailed)
        assert reported.job_id == job.id
        failure = (await queue.get(job.id)).error
        assert failure is not None
        assert (failure.kind, failure.attempt) == ("error", 1)  # one attempt, unless asked for more
        assert "in charge" in failure.trace


async def test_a_retry_policy_gives_a_failed_job_more_attempts(url: str) -> None:
    async def fetch(page: str, job: tenure.RunningJob) -> str:
        if job.attempt < 3:
            raise ConnectionError("try again")
        return f"{page} on attempt {job.attempt}"

    async with tenure.connect(url) as queue:
        worker = tenure.Worker(queue)
        at_once = tenure.RetryPolicy(max_attempts=5, base=0)  # the default waits longer each time
        worker.register("fetch", fetch, retry=at_once)

        async with worker.run():
            job = await queue.dispatch("fetch", "index.html")
            assert await job.result(timeout=10) == "index.html on attempt 3"

            # A bound given at dispatch beats that of the policy.
            job = await queue.dispatch("fetch", "index.html", max_attempts=2)
            with pytest.raises(tenure.JobFailed, match="attempt 2: ConnectionError"):
                await job.result(timeout=10)


async def test_a_job_can_be_due_later(url: str) -> None:
    async def remind(text: str) -> str:
        return datetime.now(UTC).isoformat()

    async with tenure.connect(url) as queue:
        worker = tenure.Worker(queue)
        worker.register("remind", remind)

        soon = await queue.dispatch("remind", "tea", delay=0.2)
        at = datetime.now(UTC) + timedelta(days=1)
        tomorrow = await queue.dispatch("remind", "milk", at=at)
        with pytest.raises(tenure.InvalidJob, match="aware"):
            await queue.dispatch("remind", "of what time zone?", at=datetime(2031, 1, 1))  # noqa: DTZ001
        assert (await queue.counts()).scheduled == 2

        async with worker.run():
            ran_at = datetime.fromisoformat(await soon.result(timeout=10))
        assert ran_at >= (await queue.get(soon.id)).run_at
        assert (await queue.get(tomorrow.id)).state == "pending"


async def test_higher_priorities_go_first_and_a_worker_serves_only_its_queues(url: str) -> None:
    order: list[str] = []

    async def note(text: str) -> None:
        order.append(text)

    async with tenure.connect(url) as queue:
        worker = tenure.Worker(queue, queues=["mail"], concurrency=1)
        worker.register("note", note)

        other = await queue.dispatch("note", "not mail", queue="reports", priority=100)
        last = await queue.dispatch("note", "newsletter", queue="mail", priority=-10)
        await queue.dispatch("note", "receipt", queue="mail")
        await queue.dispatch("note", "password", queue="mail", priority=10)
        await queue.dispatch("note", "second receipt", queue="mail")

        async with worker.run():
            await last.result(timeout=10)
        assert order == ["password", "receipt", "second receipt", "newsletter"]
        assert (await queue.get(other.id)).state == "pending"


async def test_a_job_can_be_cancelled_while_it_waits_and_while_it_runs(url: str) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def export(payload: None) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()  # a cancelled handler cleans up like any cancelled coroutine

    async with tenure.connect(url) as queue:
        # A running handler hears of it within a third of the lease, which is 30 s by default.
        worker = tenure.Worker(queue, lease=0.3)
        worker.register("export", export)

        waiting = await queue.dispatch("export")
        assert await queue.cancel(waiting.id) == "done"
        assert await queue.cancel([waiting.id, "no such id"]) == ["finished", "unknown"]

        async with worker.run():
            running = await queue.dispatch("export")
            await started.wait()
            assert await queue.cancel(running.id) == "requested"
            for job in (waiting, running):
                with pytest.raises(tenure.JobCancelled):
                    await job.result(timeout=10)
        assert stopped.is_set()

        assert await queue.retry(waiting.id) == "done"  # cancelled is not gone
        assert await queue.delete(waiting.id) == "done"
        with pytest.raises(tenure.JobNotFound):
            await queue.get(waiting.id)


async def test_a_paused_queue_keeps_its_jobs_until_it_is_resumed(url: str) -> None:
    async def echo(text: str) -> str:
        return text

    async with tenure.connect(url) as queue:
        worker = tenure.Worker(queue, queues=["slow", "default"])
        worker.register("echo", echo)

        await queue.pause("slow")
        async with worker.run():
            held = await queue.dispatch("echo", "from slow", queue="slow", priority=100)
            other = await queue.dispatch("echo", "from default")
            assert await other.result(timeout=10) == "from default"
            assert (await queue.get(held.id)).state == "pending"

            await queue.resume("slow")
            assert await held.result(timeout=10) == "from slow"


async def test_a_handler_is_cancelled_at_its_time_limit(url: str) -> None:
    async def hang(payload: None) -> None:
        await asyncio.Event().wait()

    async with tenure.connect(url) as queue:
        worker = tenure.Worker(queue)
        worker.register("hang", hang, timeout=60)

        async with worker.run() as handle:
            job = await queue.dispatch("hang", timeout=0.1)  # beats the limit of the registration
            with pytest.raises(tenure.JobFailed) as failed:
                await job.result(timeout=10)
            reported = await handle.next_error()

        assert failed.value.failure.kind == "timeout"
        assert isinstance(reported, tenure.JobTimedOut)
        assert reported.timeout == 0.1


async def test_a_plain_function_runs_in_a_thread_and_blocks_nobody(url: str) -> None:
    turn = threading.Event()

    def wait_for_turn(payload: None) -> bool:
        turn.wait(10)
        return threading.current_thread() is threading.main_thread()

    async def give_turn(payload: None) -> None:
        turn.set()

    async with tenure.connect(url) as queue:
        worker = tenure.Worker(queue)
        worker.register("wait", wait_for_turn)
        worker.register("give", give_turn)

        async with worker.run():
            waiting = await queue.dispatch("wait")
            giving = await queue.dispatch("give")
            await giving.result(timeout=5)  # although the other handler blocks its thread
            assert await waiting.result(timeout=10) is False


async def test_a_restart_loses_nothing(url: str) -> None:
    started = asyncio.Event()
    patient = False

    async def build(part: int) -> int:
        if not patient:
            started.set()
            await asyncio.Event().wait()
        return part

    async with tenure.connect(url) as queue:
        worker = tenure.Worker(queue, concurrency=1)
        worker.register("build", build)
        jobs = await queue.dispatch_many([tenure.Call("build", part) for part in range(3)])
        handle = worker.run()
        await started.wait()
        assert await handle.shutdown(drain=0) is None  # 0 s: cancel at once and put back

        record = await queue.get(jobs[0].id)
        assert (record.state, record.attempt) == ("pending", 0)  # no attempt was spent

    patient = True
    async with tenure.connect(url) as queue:  # as another process would
        worker = tenure.Worker(queue, concurrency=1)
        worker.register("build", build)
        async with worker.run():
            last = await queue.dispatch("build", 3)
            assert await last.result(timeout=10) == 3  # one slot, so the others came before it
        page = await queue.list(state="completed")
        assert {job.id for job in page.jobs} == {job.id for job in [*jobs, last]}


async def test_the_store_says_how_many_jobs_are_where_and_lists_them(url: str) -> None:
    async def divide(numbers: list[int]) -> float:
        return numbers[0] / numbers[1]

    async with tenure.connect(url) as queue:
        worker = tenure.Worker(queue)
        worker.register("divide", divide)

        good = await queue.dispatch("divide", [6, 3])
        bad = await queue.dispatch("divide", [6, 0])
        later = await queue.dispatch("divide", [6, 2], delay=3600)
        async with worker.run():
            await good.result(timeout=10)
            with pytest.raises(tenure.JobFailed):
                await bad.result(timeout=10)

        counts = await queue.counts()  # every job is in exactly one of them
        assert (counts.completed, counts.failed, counts.scheduled) == (1, 1, 1)
        assert (counts.pending, counts.processing, counts.cancelled) == (0, 0, 0)
        assert counts.by_queue["default"].failed == 1

        page = await queue.list(limit=2)  # newest first, page by page
        assert [job.id for job in page.jobs] == [later.id, bad.id]
        page = await queue.list(limit=2, cursor=page.cursor)
        assert [job.id for job in page.jobs] == [good.id]
        assert page.cursor is None
        page = await queue.list(state="failed", name="divide")
        assert [job.payload for job in page.jobs] == [[6, 0]]


async def test_a_handler_gets_headers_and_a_fence_that_grows_with_each_claim(url: str) -> None:
    seen: list[tuple[str, int]] = []

    async def save(text: str, job: tenure.RunningJob) -> None:
        # A write that carries the fence can be refused by whoever has seen a greater one.
        seen.append((job.headers["request-id"], job.fence))
        if job.attempt == 1:
            raise OSError("the disk is full")

    async with tenure.connect(url) as queue:
        worker = tenure.Worker(queue)
        worker.register("save", save, retry=tenure.RetryPolicy(base=0))
        async with worker.run():
            job = await queue.dispatch("save", "text", headers={"request-id": "r-17"})
            await job.result(timeout=10)

    (first, fence), (second, later_fence) = seen
    assert first == second == "r-17"
    assert later_fence > fence
