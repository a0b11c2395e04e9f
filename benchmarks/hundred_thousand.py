"""A hundred thousand jobs through one worker process, none lost, none doubled.

    python -m benchmarks.hundred_thousand [--jobs 100000] [--concurrency 64] [--store sqlite-full]

A ledger in the handler counts the starts of every job; the store is read back
job by job. Exits with 1 when either of them disagrees with what was dispatched.
"""

import argparse
import asyncio
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import tenure
from benchmarks.conditions import told
from benchmarks.stores import STORES


class Options(argparse.Namespace):
    """The command line."""

    jobs: int
    concurrency: int
    folder: str | None
    store: str


def options() -> Options:
    parser = argparse.ArgumentParser(description="Drain many jobs and check each of them.")
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--store", choices=list(STORES), default="sqlite-full")
    parser.add_argument("--folder", help="where the store file goes (default: temporary)")
    return parser.parse_args(namespace=Options())


async def run(chosen: Options, url: str) -> list[str]:
    """Dispatch, drain, check; what was found wrong."""
    ledger = bytearray(chosen.jobs)  # how often the handler was started with each payload
    started = 0
    all_started = asyncio.Event()

    async def note(number: int) -> None:
        nonlocal started
        ledger[number] += 1
        started += 1
        if started >= chosen.jobs:
            all_started.set()

    async with tenure.connect(url) as queue:
        began = time.perf_counter()
        handles = await queue.dispatch_many(
            tenure.Call("note", number) for number in range(chosen.jobs)
        )
        _say("dispatched", chosen.jobs, time.perf_counter() - began)

        worker = tenure.Worker(queue, concurrency=chosen.concurrency)
        worker.register("note", note)
        began = time.perf_counter()
        async with worker.run() as handle:
            await all_started.wait()
            error = await handle.shutdown()
        _say("drained", chosen.jobs, time.perf_counter() - began)

        problems = [f"the worker reported {error!r}"] if error is not None else []
        starts = Counter(ledger)
        if starts != {1: chosen.jobs}:
            problems.append(f"started how often: {dict(starts)}")
        counts = await queue.counts()
        if counts.completed != chosen.jobs:
            problems.append(f"the store counts {counts.completed:,} completed jobs")
        problems += await _unlike(queue, {handle.id for handle in handles})
    return problems


async def _unlike(queue: tenure.Queue, dispatched: set[str]) -> list[str]:
    """Read every job back: each is there once, completed on its first attempt."""
    missing, odd, cursor = set(dispatched), 0, None
    while True:
        page = await queue.list(limit=1000, cursor=cursor)
        for job in page.jobs:
            if job.id not in missing or job.state != "completed" or job.attempt != 1:
                odd += 1
            missing.discard(job.id)
        cursor = page.cursor
        if cursor is None:
            break
    problems = [f"{len(missing):,} jobs are not in the store"] if missing else []
    return problems + ([f"{odd:,} jobs are not completed once"] if odd else [])


def _say(what: str, jobs: int, seconds: float) -> None:
    print(f"{what:<11} {jobs:,} jobs in {seconds:.2f} s: {jobs / seconds:,.0f} jobs/s", flush=True)


def main() -> int:
    chosen = options()
    print(told({"tenure": tenure.__version__, "SQLite": sqlite3.sqlite_version}))
    store = STORES[chosen.store]
    print(f"{store.name}, {store.durability}, concurrency {chosen.concurrency}")
    with (
        tempfile.TemporaryDirectory(prefix="tenure-bench-", dir=chosen.folder) as folder,
        ExitStack() as stack,
    ):
        url = store.open(stack).fresh(Path(folder))
        if store.kind == "sqlite":
            url = f"sqlite:///{url}?synchronous={store.durability}"
        problems = asyncio.run(run(chosen, url))
    for problem in problems:
        print(f"wrong: {problem}", file=sys.stderr)
    if not problems:
        print(f"each of {chosen.jobs:,} jobs was started once and is completed in the store")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
