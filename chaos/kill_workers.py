"""A hundred thousand short jobs while one worker is killed and another frozen, all accounted for.

    python -m chaos.kill_workers [--store sqlite|redis|postgres] [--jobs 100000]

Three worker processes. In the middle, with jobs in flight, one is stopped (SIGSTOP) for longer than
its lease, and one is killed (SIGKILL); the stopped one goes on (SIGCONT) when all that it had in
flight has been completed by others. Exits with 1 unless

- each job that was dispatched is completed in the store, and there are no others;
- each completion was recorded once, by the worker and under the attempt that the store names;
- each job that the stopped worker had in flight was refused to it and reported;
- each start beyond a job's first has a reason.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tenure
from chaos.processes import Process, wait_until
from chaos.reading import completed, print_table, read_all, wait_until_completed
from chaos.stores import STORES, running_store
from chaos.worker import JOB, SECONDS

REFUSALS = ("StateTransitionError", "LeaseLost")
LEVELS = 10  # of priority: what is reclaimed is then claimed before most of what waits


class Options(argparse.Namespace):
    """The command line."""

    store: str
    jobs: int
    concurrency: int
    lease: float


def options() -> Options:
    parser = argparse.ArgumentParser(description="Kill and freeze workers, and count.")
    parser.add_argument("--store", choices=STORES, default="sqlite")
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--concurrency", type=int, default=64, help="of each worker")
    parser.add_argument("--lease", type=float, default=2.5, help="seconds")
    return parser.parse_args(namespace=Options())


class Run:
    """One run: its workers, and what happened to them."""

    def __init__(self, chosen: Options, folder: Path, url: str) -> None:
        self.chosen = chosen
        self.began = time.monotonic()
        self.problems: list[str] = []
        # What each of the two had started and not yet settled when it was stopped or killed.
        self.in_flight: dict[str, frozenset[str]] = {"killed": frozenset(), "frozen": frozenset()}
        arguments = (url, chosen.concurrency, chosen.lease)
        self.survivor, self.killed, self.frozen = self.workers = [
            Process("worker", name, folder, *arguments) for name in ("survivor", "killed", "frozen")
        ]

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.began:6.2f} s  {text}", flush=True)

    async def disturb(self, queue: tenure.Queue) -> None:
        """Freeze one worker and kill another, and let the first go on."""
        await wait_until_completed(queue, self.chosen.jobs // 5)
        await self.freeze(queue)
        stopped = time.monotonic()
        await wait_until_completed(queue, self.chosen.jobs * 2 // 5)
        self.killed.kill()
        await self._note("SIGKILL", self.killed, queue)

        held = self.in_flight["frozen"]
        while time.monotonic() < stopped + 60:
            states = [(await queue.get(job_id)).state for job_id in held]
            if all(state == "completed" for state in states):
                break
            await asyncio.sleep(0.1)
        else:
            self.problems.append("what the frozen worker had in flight was not taken over in 60 s")
        await asyncio.sleep(max(0.0, stopped + 2 * self.chosen.lease - time.monotonic()))
        self.frozen.send(signal.SIGCONT)
        done = await completed(queue)
        self.say(
            f"SIGCONT after {time.monotonic() - stopped:.1f} s, {done:,} of all completed, the "
            f"{len(held)} that it had in flight among them"
        )

    async def freeze(self, queue: tenure.Queue) -> None:
        """Stop a worker at a moment at which it has jobs in flight and the others can go on.

        One that stops in the middle of a transaction on a file keeps all others out until it goes
        on: such a moment proves nothing about leases, and another is tried.
        """
        for _ in range(50):
            self.frozen.send(signal.SIGSTOP)
            before = await completed(queue)
            await asyncio.sleep(0.5)
            if in_flight(self.frozen) and await completed(queue) > before:
                await self._note("SIGSTOP", self.frozen, queue)
                return
            self.frozen.send(signal.SIGCONT)
            if before >= self.chosen.jobs:
                break
            self.say("the worker stopped inside a transaction, or idle: let go, and tried again")
            await asyncio.sleep(0.05)
        raise TimeoutError("there was no moment at which one worker could be stopped alone")

    async def _note(self, how: str, worker: Process, queue: tenure.Queue) -> None:
        self.in_flight[worker.name] = held = in_flight(worker)
        done = await completed(queue)
        self.say(f"{how} with {len(held)} jobs in flight, {done:,} of all completed")
        if not held or done >= self.chosen.jobs:
            self.problems.append(f"{how} did not come in the middle, with jobs in flight")

    async def finish(self, queue: tenure.Queue) -> None:
        """Wait for the last job and for the last refusal, and end the workers in order."""
        await wait_until_completed(queue, self.chosen.jobs)
        self.say(f"all {self.chosen.jobs:,} jobs are completed")
        held = self.in_flight["frozen"]

        def told() -> bool:
            heard = {e.job_id for e in self.frozen.ledger.read() if e.what in ("settled", "error")}
            return held <= heard

        try:
            await wait_until(told, "the frozen worker learns what became of its jobs", seconds=30)
        except TimeoutError as error:
            self.problems.append(str(error))
        for worker in (self.survivor, self.frozen):
            problem = await worker.ended()
            if problem:
                self.problems.append(problem)

    def account(self, ids: Sequence[str], jobs: Sequence[tenure.Job[Any]]) -> dict[str, str]:
        """Compare the store with the ledgers; the numbers, and `problems` grows."""
        entries = {worker.name: worker.ledger.read() for worker in self.workers}
        stored = {job.id: job for job in jobs}
        unfinished = sum(job.state != "completed" for job in jobs)
        lost, strangers = set(ids) - set(stored), set(stored) - set(ids)
        self._require(not lost, f"{len(lost)} jobs are lost")
        self._require(not strangers, f"{len(strangers)} jobs that nobody dispatched")
        self._require(len(jobs) == len(stored), "the store lists jobs twice")
        self._require(not unfinished, f"{unfinished} jobs are not completed")

        recorded: dict[str, list[list[str | int]]] = {}
        for name, lines in entries.items():
            for e in lines:
                if e.what == "settled" and e.text == "Completed":
                    recorded.setdefault(e.job_id, []).append([name, e.attempt])
        # A worker may be killed after the store has its outcome and before it has the answer.
        unheard = {
            job_id
            for job_id in self.in_flight["killed"] - set(recorded)
            if job_id in stored and (stored[job_id].result or [None])[0] == "killed"
        }
        wrong = [i for i in stored if recorded.get(i) != [stored[i].result] and i not in unheard]
        self._require(not wrong, f"{len(wrong)} completions not recorded once: {wrong[:3]}")

        return {
            "dispatched": f"{len(ids):,}",
            "completed in the store": f"{len(jobs) - unfinished:,}",
            "lost": f"{len(lost):,}",
            "completions recorded once": f"{len(stored) - len(wrong):,}",
            "  and heard of by their worker": f"{len(stored) - len(wrong) - len(unheard):,}",
            "  and not: it was killed first": f"{len(unheard):,}",
            "never, twice, or by another": f"{len(wrong):,}",
            **self._refusals(entries["frozen"]),
            **self._starts(entries, stored),
        }

    def _refusals(self, entries: Sequence[Any]) -> dict[str, str]:
        """What the frozen worker was told of the jobs that it had in flight."""
        held = self.in_flight["frozen"]
        errors = [e for e in entries if e.what == "error" and e.kind in REFUSALS]
        refused = held & {e.job_id for e in errors}
        itself = held & {e.job_id for e in entries if e.what == "settled"}
        kinds = Counter(e.kind for e in errors)
        untold = held - refused - itself
        self._require(not untold, f"the frozen worker was not told of {len(untold)} of its jobs")
        self._require(bool(refused), "nothing was refused to the frozen worker")
        self._require(not refused & itself, f"both refused and settled: {len(refused & itself)}")
        return {
            "in flight when frozen": f"{len(held):,}",
            "  refused and reported": f"{len(refused):,}",
            "  written before the stop": f"{len(itself):,}",
            "refusals in all": ", ".join(f"{kind} {n:,}" for kind, n in sorted(kinds.items())),
        }

    def _starts(
        self, entries: dict[str, Sequence[Any]], stored: dict[str, tenure.Job[Any]]
    ) -> dict[str, str]:
        """How often jobs were started, and what became of the starts that completed nothing."""
        starts = [
            (name, e.job_id, e.attempt)
            for name, lines in entries.items()
            for e in lines
            if e.what == "started"
        ]
        reclaimed = {e.job_id for lines in entries.values() for e in lines if e.what == "reclaimed"}
        again = sum(number > 1 for number in Counter(job_id for _, job_id, _ in starts).values())
        reasons = Counter[str]()
        completing = 0
        for name, job_id, attempt in starts:
            if job_id in stored and stored[job_id].result == [name, attempt]:
                completing += 1
            elif name == "killed" and job_id in self.in_flight[name]:
                reasons["was killed"] += 1
            elif name == "frozen" and job_id in self.in_flight[name]:
                reasons["was frozen"] += 1
            elif job_id in reclaimed:
                reasons["came late with its lease"] += 1
            else:
                reasons["is unknown"] += 1
        self._require(completing == len(stored), f"only {completing:,} starts completed a job")
        self._require("is unknown" not in reasons, f"{reasons['is unknown']} starts for no reason")
        self._require(
            sum(reasons.values()) == len(starts) - len(stored), "the starts do not add up"
        )
        return {
            "starts": f"{len(starts):,}",
            "jobs started more than once": f"{again:,}",
            **{f"  since a worker {why}": f"{number:,}" for why, number in reasons.items()},
        }

    def _require(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.problems.append(otherwise)


def in_flight(worker: Process) -> frozenset[str]:
    """Jobs whose handler it has started, and of whose outcome it has not heard."""
    running: set[str] = set()
    for entry in worker.ledger.read():
        if entry.what == "started":
            running.add(entry.job_id)
        elif entry.what == "settled":
            running.discard(entry.job_id)
    return frozenset(running)


async def run(chosen: Options, folder: Path, url: str) -> list[str]:
    """Dispatch, disturb, account; what was found wrong."""
    async with tenure.connect(url) as queue:
        began = time.perf_counter()
        handles = await queue.dispatch_many(
            tenure.Call(JOB, number, priority=LEVELS - number * LEVELS // chosen.jobs)
            for number in range(chosen.jobs)
        )
        print(f"dispatched in {time.perf_counter() - began:.2f} s", flush=True)
        run = Run(chosen, folder, url)
        try:
            await run.disturb(queue)
            await run.finish(queue)
        except TimeoutError as error:
            run.problems.append(str(error))
        finally:
            for worker in run.workers:
                worker.kill()
        numbers = run.account([handle.id for handle in handles], await read_all(queue))
    print_table(numbers)
    return run.problems


def main() -> int:
    chosen = options()
    print(
        f"{chosen.store}: {chosen.jobs:,} jobs of {1000 * SECONDS:g} ms, 3 workers of "
        f"{chosen.concurrency}, lease {chosen.lease:g} s",
        flush=True,
    )
    with (
        tempfile.TemporaryDirectory(prefix="tenure-chaos-") as name,
        running_store(chosen.store, Path(name)) as url,
    ):
        problems = asyncio.run(run(chosen, Path(name), url))
    for problem in problems:
        print(f"wrong: {problem}", file=sys.stderr)
    if not problems:
        print("nothing lost, each completion recorded once, late writes refused and reported")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
