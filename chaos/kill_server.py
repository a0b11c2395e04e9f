"""A server that is killed three times under load: what it had confirmed is there, and runs once.

    python -m chaos.kill_server [--store redis|postgres]

Two worker processes, and one that dispatches and notes what became of each dispatch. The server,
which writes to the disk before it answers, is killed (SIGKILL) and started again. Exits with 1
unless

- each job whose dispatch returned is completed in the store, and completed once;
- none is there whose dispatch failed for certain, and none that nobody dispatched;
- each worker goes on within five seconds of each return of the server.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tenure
from chaos.dispatcher import ENDS
from chaos.ledger import Entry
from chaos.processes import Process
from chaos.reading import print_table, read_all
from chaos.stores import SERVERS, Server, running_server

KILLS = 3
WITHIN = 5.0  # seconds after which a worker must be at work again
BETWEEN, DOWN = 6.0, 1.5  # seconds of load before each kill, seconds without a server
LEASE = 5.0
CONCURRENCY = 16


class Options(argparse.Namespace):
    """The command line."""

    store: str


def options() -> Options:
    parser = argparse.ArgumentParser(description="Kill a server under load, and count.")
    parser.add_argument("--store", choices=SERVERS, default="redis")
    return parser.parse_args(namespace=Options())


class Run:
    """One run: its processes, and when the server went and came."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self.began = time.monotonic()
        self.returns: list[float] = []
        self.problems: list[str] = []
        self.workers = [
            Process("worker", f"worker-{n}", folder, server.url, CONCURRENCY, LEASE) for n in (1, 2)
        ]
        self.dispatcher = Process("dispatcher", "dispatcher", folder, server.url)

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.began:6.2f} s  {text}", flush=True)

    async def disturb(self) -> None:
        """Kill the server and start it again, as often as it takes."""
        for process in (*self.workers, self.dispatcher):
            await process.ready()
        for number in range(KILLS):
            await asyncio.sleep(BETWEEN)
            stored = len(self.dispatcher.entries("stored"))
            await asyncio.to_thread(self.server.kill)
            self.say(f"SIGKILL {number + 1}, with {stored:,} jobs dispatched")
            await asyncio.sleep(DOWN)
            await asyncio.to_thread(self.server.start)
            self.returns.append(time.monotonic())
            self.say("the server answers again")
        await asyncio.sleep(BETWEEN)

    async def finish(self, queue: tenure.Queue) -> None:
        """End the dispatcher, wait until all is done, and end the workers in order."""
        await self._end(self.dispatcher)
        deadline = time.monotonic() + 60
        left = await unfinished(queue)
        while left and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
            left = await unfinished(queue)
        self.say(f"{left} jobs are left")
        for worker in self.workers:
            await self._end(worker)

    async def _end(self, process: Process) -> None:
        problem = await process.ended()
        if problem:
            self.problems.append(problem)

    def account(self, jobs: Sequence[tenure.Job[Any]]) -> dict[str, str]:
        """Compare the store with the ledgers; the numbers, and `problems` grows."""
        ends = {end: {e.job_id for e in self.dispatcher.entries(end)} for end in ENDS}
        tried = {e.job_id for e in self.dispatcher.entries("tried")}
        stored = {job.id: job for job in jobs}
        completed = {job.id for job in jobs if job.state == "completed"}
        lines = [entry for worker in self.workers for entry in worker.ledger.read()]
        settled = Counter(e.job_id for e in lines if e.what == "settled" and e.text == "Completed")
        lost = ends["stored"] - set(stored)
        there = ends["refused"] & set(stored)
        wrong = [job_id for job_id in {*completed, *settled} if settled[job_id] != 1]
        undecided = tried - set().union(*ends.values())
        self._require(not undecided, f"{len(undecided)} dispatches did not end")
        self._require(not lost, f"{len(lost)} jobs are lost: {sorted(lost)[:3]}")
        self._require(not there, f"{len(there)} are there though their dispatch failed")
        self._require(set(stored) <= tried, "there are jobs that nobody dispatched")
        self._require(completed == set(stored), f"{len(stored) - len(completed)} not completed")
        self._require(not wrong, f"{len(wrong)} not recorded once as completed: {wrong[:3]}")
        starts = Counter(e.job_id for e in lines if e.what == "started")
        errors = Counter(e.kind for e in lines if e.what == "error")
        return {
            "dispatches tried": f"{len(tried):,}",
            "  returned": f"{len(ends['stored']):,}",
            "  failed for certain": f"{len(ends['refused']):,}",
            "  ambiguous": f"{len(ends['unsure']):,}",
            "    of these stored": f"{len(ends['unsure'] & set(stored)):,}",
            "jobs in the store": f"{len(stored):,}",
            "  completed": f"{len(completed):,}",
            "returned and lost": f"{len(lost):,}",
            "failed and there": f"{len(there):,}",
            "completions recorded once": f"{sum(n == 1 for n in settled.values()):,}",
            "jobs started more than once": f"{sum(n > 1 for n in starts.values()):,}",
            "errors of the workers": ", ".join(f"{k} {n:,}" for k, n in sorted(errors.items())),
            "at work after each return": self._resumed(),
        }

    def _resumed(self) -> str:
        """Seconds from each return of the server to the next outcome that each worker wrote."""
        found: list[str] = []
        for worker in self.workers:
            settled = worker.entries("settled")
            waits = [first_after(at, settled) - at for at in self.returns]
            if max(waits) > WITHIN:
                at = self.returns[waits.index(max(waits))]
                errors = [f"{e.at - at:+.2f} s {e.text}" for e in worker.entries("error")]
                told = "\n  ".join([f"{worker.name} took {max(waits):.1f} s to resume", *errors])
                self.problems.append(told)
            found.append(" ".join(f"{wait:.2f}" for wait in waits))
        return " s, ".join(found) + " s"

    def _require(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.problems.append(otherwise)


def first_after(at: float, entries: Sequence[Entry]) -> float:
    return min((entry.at for entry in entries if entry.at >= at), default=float("inf"))


async def unfinished(queue: tenure.Queue) -> int:
    counts = await queue.counts()
    return counts.pending + counts.scheduled + counts.processing


async def run(server: Server, folder: Path) -> list[str]:
    """Load, disturb, account; what was found wrong."""
    run = Run(server, folder)
    try:
        await run.disturb()
        async with tenure.connect(server.url) as queue:
            await run.finish(queue)
            jobs = await read_all(queue)
    finally:
        for process in (*run.workers, run.dispatcher):
            process.kill()
    print_table(run.account(jobs))
    return run.problems


def main() -> int:
    chosen = options()
    print(f"{chosen.store}: the server is killed {KILLS} times under load", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="tenure-chaos-") as name,
        running_server(chosen.store, Path(name)) as server,
    ):
        problems = asyncio.run(run(server, Path(name)))
    for problem in problems:
        print(f"wrong: {problem}", file=sys.stderr)
    if not problems:
        print("every dispatch that returned is accounted for, each job completed once")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
