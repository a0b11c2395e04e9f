"""A short tour of tenure: real work on a store, and the accidents that jobs meet with.

1. A second worker process takes a job and is killed in the middle of it.
2. Every source file of this Python's own standard library becomes a job: hash, count, compress.
   Among them are jobs that fail, hang, come later, are cancelled, or have no handler at all.
3. A worker runs them all, and recovers the job of the killed one after its lease has run out.
4. What became of every job is read back from the store, and the sum is checked.

Starts no server. `tenure demo` shows it on a file, `make demo` in a checkout on servers as well.
"""

import asyncio
import logging
import os
import platform
import re
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from tenure._runtime.handle import WorkerHandle
from tenure.call import Call
from tenure.cli.tour import handlers
from tenure.cli.tour.screen import Screen
from tenure.errors import HandlerNotFound, JobFailed
from tenure.events import Event, JobsReclaimed
from tenure.job_handle import JobHandle
from tenure.queue import Queue, connect
from tenure.retry import RetryPolicy
from tenure.types import Counts, Job
from tenure.version import VERSION
from tenure.worker import Worker

__all__ = ["Account", "account", "taken"]

# The queue of the worker that is killed, and how long a claim is valid without a sign of life. The
# default is 30 s; so short a lease lets the demo show a recovery without much waiting.
FRAGILE, LEASE = "fragile", 2.0
PATIENCE = 50.0  # seconds after which the demo stops waiting and reports what there is

ASYNC, THREAD = "measure-async", "measure-thread"

# What these are for is in their names. Their priority lets them start before the real work.
ACCIDENTS = [
    Call("fails-once", priority=10),
    Call("fails-for-good", 4711, priority=10),
    Call("takes-too-long", 600, priority=10, timeout=1.0),
    Call("comes-later", "world", priority=10, delay=2.0),
    Call("cancelled", delay=3600),
    Call("unknown-name", priority=10),
]
EXPECTED = {
    "fails-once": "completed",
    "fails-for-good": "failed",
    "takes-too-long": "failed",
    "comes-later": "completed",
    "cancelled": "cancelled",
    "unknown-name": "pending",  # it waits for a worker that knows the name
    "killed-worker": "completed",
    ASYNC: "completed",
    THREAD: "completed",
}
NEVER_ENDS = sum(state == "pending" for state in EXPECTED.values())


class Account(Struct, frozen=True, kw_only=True):
    """What became of the jobs. `problems` is empty when every one is accounted for."""

    dispatched: int
    completed: int
    failed: int
    cancelled: int
    waiting: int
    problems: tuple[str, ...]


def taken(screen: Screen, url: str, description: str) -> Account:
    """Take the whole tour on an empty store, which `description` is about."""
    with _told_here_alone():
        return asyncio.run(_tour(screen, url, description))


@contextmanager
def _told_here_alone() -> Generator[None]:
    """Errors are shown as they are read from the handle: without this they are logged as well."""
    logger = logging.getLogger("tenure")
    silent = logging.NullHandler()
    logger.addHandler(silent)
    try:
        yield
    finally:
        logger.removeHandler(silent)


async def _tour(screen: Screen, url: str, description: str) -> Account:
    async with connect(url) as queue:
        files = source_files()
        screen.say(f"tenure {VERSION} on {conditions(description)}", "bold")
        screen.say(f"{len(files):,} source files of the standard library, one job for each\n")

        dispatched = [await queue.dispatch("killed-worker", queue=FRAGILE)]
        await kill_a_worker(screen, url)
        dispatched += await dispatch_everything(screen, queue, files)

        began = datetime.now(UTC)
        log = Log(screen)
        async with new_worker(queue, log).run() as handle:
            reports = asyncio.create_task(log.read(handle))
            await watch(screen, queue, len(dispatched))
            asked = time.monotonic()
            await handle.shutdown()
            await reports
            screen.note(f"the worker has shut down, in {time.monotonic() - asked:.2f} s")

        jobs = await read_all(queue)
        show_jobs(screen, jobs, log)
        show_work(screen, jobs, began)
        return account(screen, dispatched, jobs, await queue.counts())


class Log:
    """What the worker tells while it runs: errors through its handle, events as an observer."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self.reported: dict[str, str] = {}  # the last error by job; completing a job clears its own
        self.stalls: Counter[str] = (
            Counter()
        )  # leases that ran out by job; any outcome sets its own to 0

    def observe(self, event: Event) -> None:
        if isinstance(event, JobsReclaimed):
            self.stalls.update(event.job_ids)
            number = len(event.job_ids)
            self._screen.note(f"a lease has run out: jobs pending again: {number}", "dim")

    async def read(self, handle: WorkerHandle) -> None:
        """Print errors as they come, until the worker has stopped."""
        async for error in handle.errors():
            self._screen.note(f"{type(error).__name__}: {shortened(str(error))}", "dim")
            match error:
                case JobFailed(job_id=job_id, failure=failure):
                    self.reported[job_id] = failure.message
                case HandlerNotFound(job_id=str(job_id)):
                    self.reported[job_id] = str(error)
                case _:
                    pass  # a time-out is stored with its job; others are about the worker


def new_worker(queue: Queue, log: Log) -> Worker:
    """A worker with every handler but one: nobody registers `unknown-name`."""
    worker = Worker(
        queue,
        queues=["default", FRAGILE],
        concurrency=16,
        lease=LEASE,
        observers=[log.observe],
    )
    worker.register(ASYNC, handlers.measure_async)
    worker.register(THREAD, handlers.measure_in_thread)
    again_soon = RetryPolicy(max_attempts=3, base=0.5, jitter=False)
    worker.register("fails-once", handlers.fail_once, retry=again_soon)
    worker.register("fails-for-good", handlers.fail)
    worker.register("takes-too-long", handlers.take_too_long)
    worker.register("comes-later", handlers.greet)
    worker.register("cancelled", handlers.greet)
    worker.register("killed-worker", handlers.survive)
    return worker


async def kill_a_worker(screen: Screen, url: str) -> None:
    """Let another process take the job in the fragile queue, and kill it at work."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tenure.cli.tour.second_worker"),
        *(url, FRAGILE, str(LEASE)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(20):
            if await process.stdout.readline() != b"started\n":
                raise RuntimeError("the second worker ended before it had begun its job")
        screen.note(f"a second worker (process {process.pid}) has begun the job killed-worker")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
    screen.note("SIGKILL: that worker is gone, in the middle of its job", "red")


async def dispatch_everything(
    screen: Screen, queue: Queue, files: Sequence[Path]
) -> list[JobHandle]:
    """Dispatch the real work in alternation to both handlers, and the accidents."""
    work = [Call(THREAD if number % 2 else ASYNC, str(file)) for number, file in enumerate(files)]
    began = time.monotonic()
    dispatched = [*await queue.dispatch_many([*ACCIDENTS, *work])]
    seconds = time.monotonic() - began
    screen.note(f"{len(dispatched):,} jobs dispatched in {seconds:.2f} s; the main worker starts")
    cancelled = [call.name for call in ACCIDENTS].index("cancelled")
    await queue.cancel(dispatched[cancelled].id)
    return dispatched


async def watch(screen: Screen, queue: Queue, total: int) -> None:
    """Show the progress until all jobs have ended but the one that nobody can run."""
    while True:
        counts = await queue.counts()
        ended = counts.completed + counts.failed + counts.cancelled
        waiting = counts.pending + counts.scheduled
        screen.progress(ended, total, f"{counts.processing} running, {waiting:,} waiting")
        if ended >= total - NEVER_ENDS:
            return
        if screen.seconds > PATIENCE:
            screen.note("this takes too long: what has not ended is left waiting", "red")
            return
        await asyncio.sleep(0.1)


async def read_all(queue: Queue) -> list[Job[Any]]:
    """Every job in the store, page by page."""
    jobs: list[Job[Any]] = []
    cursor: str | None = None
    while True:
        page = await queue.list(limit=1000, cursor=cursor)
        jobs += page.jobs
        cursor = page.cursor
        if cursor is None:
            return jobs


# --- what became of them ----------------------------------------------------------------------


def show_jobs(screen: Screen, jobs: Sequence[Job[Any]], log: Log) -> None:
    """One line for each name and state. Errors in brackets are past: reported, no longer stored."""

    def error(job: Job[Any]) -> str:
        if job.error is not None:
            return shortened(job.error.message)
        return f"({shortened(log.reported[job.id])})" if job.id in log.reported else ""

    groups: dict[tuple[str, str], list[Job[Any]]] = {}
    for job in jobs:
        groups.setdefault((job.name, job.state), []).append(job)
    order = list(EXPECTED)
    rows = [
        [
            name,
            f"{len(group):,}",
            "waiting" if state == "pending" else state,
            f"{sum(job.attempt for job in group):,}",
            f"{sum(log.stalls[job.id] for job in group):,}",
            "; ".join(sorted({error(job) for job in group} - {""})),
        ]
        for (name, state), group in sorted(groups.items(), key=lambda item: order.index(item[0][0]))
    ]
    screen.say()
    screen.table(["job", "jobs", "state", "attempts", "stalls", "error"], rows, right={1, 3, 4})


def show_work(screen: Screen, jobs: Sequence[Job[Any]], began: datetime) -> None:
    """Add up the results of the real work."""
    work = [job for job in jobs if job.name in (ASYNC, THREAD) and job.state == "completed"]
    results = [cast("handlers.Measured", job.result) for job in work]
    ends = [job.finished_at for job in work if job.finished_at is not None]
    if not ends:
        return
    seconds = (max(ends) - began).total_seconds()
    size = sum(result["size"] for result in results)
    packed = sum(result["packed"] for result in results)
    lines = sum(result["lines"] for result in results)
    different = len({result["sha256"] for result in results})
    screen.say()
    screen.say(f"  files        {len(work):,}, {different:,} of them different")
    screen.say(f"  lines        {lines:,}")
    screen.say(f"  bytes        {size:,} before, {packed:,} after: {packed / max(1, size):.1%}")
    screen.say(f"  time         {seconds:.2f} s, {len(work) / seconds:,.0f} jobs/s")


def account(
    screen: Screen,
    dispatched: Sequence[JobHandle],
    jobs: Sequence[Job[Any]],
    counts: Counts,
) -> Account:
    """Check that the sum comes out, that each job is there once, and that it ended as it should."""
    waiting = counts.pending + counts.scheduled
    ended = counts.completed + counts.failed + counts.cancelled
    screen.say()
    screen.say(
        f"  {len(dispatched):,} dispatched = {counts.completed:,} completed "
        f"+ {counts.failed:,} failed + {counts.cancelled:,} cancelled + {waiting:,} waiting",
        "bold",
    )
    problems: list[str] = []
    if len(dispatched) != ended + waiting:
        problems.append(f"the sum is {ended + waiting:,}; {counts.processing:,} are processing")
    if Counter(job.id for job in dispatched) != Counter(job.id for job in jobs):
        problems.append("the jobs in the store are not those that were dispatched")
    problems += [
        f"{job.name} is {job.state}, not {EXPECTED[job.name]}: {shortened(reason(job))}"
        for job in jobs
        if job.state != EXPECTED[job.name]
    ]
    for problem in problems[:10]:
        screen.say(f"  {problem}", "red")
    if not problems:
        screen.say("  every job is accounted for", "green")
    return Account(
        dispatched=len(dispatched),
        completed=counts.completed,
        failed=counts.failed,
        cancelled=counts.cancelled,
        waiting=waiting,
        problems=tuple(problems),
    )


def reason(job: Job[Any]) -> str:
    return job.error.message if job.error else "no error is stored"


def shortened(message: str) -> str:
    """The first clause of the message, without the long id of its job and a line of code."""
    clause = message.partition("\n")[0].partition(";")[0]
    return re.sub(r"job [0-9a-f-]{36} (was )?| at \S+:\d+ in \S+", "", clause)


# --- where and with what ----------------------------------------------------------------------


def source_files() -> list[Path]:
    """The source files of the standard library, without what was installed beside it."""
    root = Path(sysconfig.get_path("stdlib"))
    installed = {"site-packages", "dist-packages"}
    return sorted(
        file
        for file in root.rglob("*.py")
        if file.is_file() and not installed & set(file.relative_to(root).parts)
    )


def conditions(description: str) -> str:
    return f"Python {platform.python_version()}, {description}, {os.cpu_count()} CPUs"
