"""What a second core gives: jobs that burn 2 ms of CPU, drained by one and by two processes.

The processes are those of `tenure.run_processes`. All of them are ready before the queue is opened
to them, so that no start is measured. A machine that does other things gives two processes less
than two cores, so beside the ratio stands that of the times without those in which a process was
ready to run and had no CPU (of its main thread: waits of the thread that writes still count); and
the CPU time that a job costs beyond its handler.
"""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import tenure
from benchmarks import usage
from benchmarks.burning import BURN
from benchmarks.contestants import ROOT
from benchmarks.figures import OURS
from benchmarks.measures import Value
from benchmarks.peers.tenure import connect
from benchmarks.processes import Broken
from benchmarks.stage import Contest, Stage
from benchmarks.stores import Mismatch

__all__ = ["cores"]

PROCESSES = (1, 2)

_MOST = 2000  # jobs: four seconds of one core
_LOOK = 0.01


@dataclass(frozen=True, kw_only=True)
class _Drained:
    """Jobs per second, by the clock and as if nobody else had used the CPUs; CPU for each job.

    The latter two are 0 where they are not known.
    """

    rate: float
    undisturbed: float
    cpu: float


def cores(contest: Contest) -> Iterator[Value]:
    """Drains by one and by two processes, and their ratios."""
    if contest.who.name != OURS:
        return  # how others are started in processes differs
    one, two = (_drained(contest, processes) for processes in PROCESSES)
    for processes, drained in zip(PROCESSES, (one, two), strict=True):
        name = f"2 ms CPU jobs, processes: {processes}"
        yield Value(measure=f"drain of {name}", value=drained.rate, unit="jobs/s")
        if usage.KNOWN:
            beyond = 1e6 * (drained.cpu - BURN)
            yield Value(measure=f"CPU beyond the handler, {name}", value=beyond, unit="us")
    name = "2 ms CPU jobs, two processes against one"
    yield Value(measure=name, value=two.rate / one.rate, unit="x")
    if usage.KNOWN:
        gain = two.undisturbed / one.undisturbed
        yield Value(measure=f"{name}, without waits for a CPU", value=gain, unit="x")


def _drained(contest: Contest, processes: int) -> _Drained:
    """Drain a queue, from the first handler to the last."""
    jobs = min(contest.options.jobs, _MOST)
    patience = contest.options.patience
    with contest.stage() as stage, stage.client() as client:
        client.ask("in_bulk", handler="burn", jobs=jobs)
        setting = stage.setting(contest.options.slots)
        asyncio.run(_open(connect(setting), to_workers=False))
        command = [sys.executable, "-m", "benchmarks.burning", json.dumps(asdict(setting))]
        program = subprocess.Popen([*command, str(processes)], cwd=ROOT)
        try:
            pids = asyncio.run(_all_there(connect(setting), processes, patience))
            before = _used(pids)
            asyncio.run(_open(connect(setting), to_workers=True))
            _wait_done(stage, program, jobs)
            cpu, waiting = (now - then for now, then in zip(_used(pids), before, strict=True))
            program.send_signal(signal.SIGTERM)
            code = program.wait(patience)
        finally:
            program.kill()
            program.wait()
        done, counted = stage.ledger.standing(), client.ask("count")
        if done.jobs != jobs or counted["finished"] != jobs or code:
            raise Mismatch(
                f"{jobs} dispatched, {done.jobs} handled, {counted['finished']} finished, "
                f"exit code {code}"
            )
    seconds = (done.last - done.first) / 1e9
    return _Drained(
        rate=jobs / seconds,
        undisturbed=jobs / (seconds - waiting / processes),
        cpu=cpu / jobs,
    )


def _used(pids: Sequence[int]) -> tuple[float, float]:
    """Seconds of CPU of all processes, and those for which their main threads waited for one."""
    if not usage.KNOWN:
        return 0.0, 0.0
    cpu = sum(usage.cpu_seconds(pid) for pid in pids)
    return cpu, sum(usage.waiting_seconds(pid) for pid in pids)


async def _open(queue: tenure.Queue, *, to_workers: bool) -> None:
    async with queue:
        await (queue.resume("default") if to_workers else queue.pause("default"))


async def _all_there(queue: tenure.Queue, count: int, patience: float) -> list[int]:
    """Wait until so many workers are there; the ids of their processes."""
    end = time.monotonic() + patience
    async with queue:
        there: Sequence[tenure.WorkerInfo] = []
        while len(there) < count:
            if time.monotonic() > end:
                raise Broken(f"{len(there)} of {count} processes came", "")
            await asyncio.sleep(_LOOK)
            there = await queue.workers()
    return [worker.pid for worker in there]


def _wait_done(stage: Stage, program: "subprocess.Popen[bytes]", jobs: int) -> None:
    end = time.monotonic() + stage.contest.options.patience
    while stage.ledger.standing().jobs < jobs:
        if program.poll() is not None:
            raise Broken(f"the program ended with {program.returncode}", "")
        if time.monotonic() > end:
            raise Mismatch(f"{stage.ledger.standing().jobs} of {jobs} jobs were handled in time")
        time.sleep(_LOOK)
