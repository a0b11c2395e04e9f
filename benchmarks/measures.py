"""What is measured: each function sets its stages, and gives values with their units.

A value is believed only when the store and the ledger of the handlers agree; else `Mismatch`.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks import usage
from benchmarks.figures import OURS, Unit, percentile
from benchmarks.processes import ClientProcess, WorkerProcess, output
from benchmarks.protocol.client import ABREAST
from benchmarks.stage import Contest, Stage
from benchmarks.stores import Mismatch

__all__ = ["HANDLERS", "Value", "dispatch", "drain", "idle", "imports", "latency", "pickup"]

HANDLERS = {"nothing": "no-op jobs", "nap": "1 ms jobs"}

_AIM = 2.5  # seconds that a drain of a slow contestant may take
_TRIAL = 200  # jobs from which its speed is guessed
_FEWEST = 50
_ONE_BY_ONE = 2000
_WARM = 3  # pick-ups that are not counted
_SETTLE = 1.5  # seconds after a start until a worker is idle
_LOOK = 0.002
_IMPORTS = 5
_PERCENTS = (50, 95, 99)


@dataclass(frozen=True, kw_only=True)
class Value:
    """One figure of one turn. `who` only where it is not the contestant's own.

    `compared`: whether tenure's and a peer's are of the same thing.
    """

    measure: str
    value: float
    unit: Unit
    who: str = ""
    compared: bool = True


@dataclass(frozen=True, kw_only=True)
class Drained:
    """Jobs per second; seconds of CPU, and the peak of memory, of all workers.

    `pace` counts what handlers did alone, without what the store had to be told afterwards.
    """

    rate: float
    pace: float
    cpu: float
    memory: float


# --- drain --------------------------------------------------------------------------------------


def drain(contest: Contest, handler: str, concurrency: int, workers: int) -> Iterator[Value]:
    """Empty a full queue."""
    jobs = _enough(contest, handler, concurrency)
    drained = _drain(contest, handler, concurrency, workers, jobs)
    where = f"concurrency {concurrency}" if workers == 1 else f"{workers} x {concurrency}"
    yield Value(measure=f"drain of {HANDLERS[handler]}, {where}", value=drained.rate, unit="jobs/s")
    if handler != "nothing" or workers != 1:
        return
    contest.rates[f"drain {concurrency}"] = drained.rate
    if usage.KNOWN and concurrency == contest.options.slots:
        measure = f"worker, CPU for each no-op job, {where}"
        yield Value(measure=measure, value=1e6 * drained.cpu / jobs, unit="us")
        yield Value(measure="worker, busy, most memory", value=drained.memory, unit="MiB")


def _enough(contest: Contest, handler: str, concurrency: int) -> int:
    """So many jobs that a slow contestant is done in seconds; found out once for a handler."""
    if handler not in contest.jobs:
        most = contest.options.jobs
        trial = _drain(contest, handler, concurrency, 1, min(most, _TRIAL))
        contest.jobs[handler] = max(min(most, _FEWEST), min(most, int(_AIM * trial.pace)))
    return contest.jobs[handler]


def _drain(contest: Contest, handler: str, concurrency: int, workers: int, jobs: int) -> Drained:
    """From the start of the first handler until the store has no job left."""
    with contest.stage() as stage, ExitStack() as stack:
        client = stack.enter_context(stage.client())
        client.ask("in_bulk", handler=handler, jobs=jobs)
        working = [stack.enter_context(stage.worker(concurrency)) for _ in range(workers)]
        before = _cpu(working)
        for worker in working:
            worker.start()
        if not _holds(stage, working, lambda: stage.ledger.standing().jobs >= jobs):
            handled = stage.ledger.standing().jobs
            raise working[0].broken(f"handled {handled} of {jobs} jobs and was not done in time")
        ended = _emptied(stage, client, working, jobs)
        cpu, memory = _cpu(working) - before, 0.0
        if usage.KNOWN:
            memory = sum(usage.peak_memory(worker.pid) for worker in working)
        ours = contest.who.name == OURS  # and only it has to end well
        codes = [worker.end(contest.options.patience if ours else 0) for worker in working]
        done = stage.ledger.standing()
        if done.jobs != jobs:
            raise Mismatch(f"{jobs} dispatched, {done.jobs} handled")
        if ours and any(codes):
            raise working[0].broken(f"ended with {codes}")
    return Drained(
        rate=1e9 * jobs / (ended - done.first),
        pace=1e9 * jobs / max(1, done.last - done.first),
        cpu=cpu,
        memory=memory,
    )


def _emptied(
    stage: Stage, client: ClientProcess, working: Sequence[WorkerProcess], jobs: int
) -> int:
    """When, in monotonic ns, the store said that no job was left."""
    ended = 0

    def empty() -> bool:
        nonlocal ended
        counted = client.ask("count")
        ended = time.monotonic_ns()
        finished = counted["finished"]
        if counted["unfinished"]:
            return False
        if finished not in (None, jobs):
            raise Mismatch(f"{jobs} dispatched and handled, {finished} finished in the store")
        return True

    if not _holds(stage, working, empty):
        raise Mismatch(f"{jobs} dispatched and handled, but some are not finished in the store")
    return ended


def _holds(stage: Stage, working: Sequence[WorkerProcess], holds: Callable[[], bool]) -> bool:
    """Wait until it holds, as long as there is patience; whether it does."""
    end = time.monotonic() + stage.contest.options.patience
    while not holds():
        for worker in working:
            if not worker.alive:
                raise worker.broken("ended")
        if time.monotonic() > end:
            return False
        time.sleep(_LOOK)
    return True


def _cpu(working: Sequence[WorkerProcess]) -> float:
    return sum(usage.cpu_seconds(worker.pid) for worker in working) if usage.KNOWN else 0.0


# --- dispatch -----------------------------------------------------------------------------------


def dispatch(contest: Contest) -> Iterator[Value]:
    """The three ways to dispatch."""
    jobs = contest.options.jobs
    one = _dispatch(contest, "one_by_one", min(jobs, _ONE_BY_ONE))
    yield Value(measure="dispatch, one at a time", value=one, unit="jobs/s")
    at_once = max(1, min(jobs, int(_AIM * 2 * one)) // ABREAST) * ABREAST
    rate = contest.rates["abreast"] = _dispatch(contest, "abreast", at_once)
    yield Value(measure=f"dispatch, {ABREAST} at once", value=rate, unit="jobs/s")
    if contest.bulk:
        bulk = _dispatch(contest, "in_bulk", jobs, handler="nothing")
        yield Value(measure="dispatch, all in one call", value=bulk, unit="jobs/s")


def _dispatch(contest: Contest, how: str, jobs: int, **more: object) -> float:
    with contest.stage() as stage, stage.client() as client:
        seconds: float = client.ask(how, jobs=jobs, **more)["seconds"]
        stored = client.ask("count")["unfinished"]
        if stored != jobs:
            raise Mismatch(f"{jobs} dispatched, {stored} stored")
        return jobs / seconds


# --- latency ------------------------------------------------------------------------------------


def pickup(contest: Contest) -> Iterator[Value]:
    """How soon an idle worker in another process starts a job."""
    samples = contest.options.samples + _WARM
    with (
        contest.stage() as stage,
        stage.client() as client,
        stage.worker(contest.options.slots) as worker,
    ):
        worker.start()
        client.ask("pick_ups", samples=samples)
        delays = stage.ledger.delays()[_WARM:]
    yield from _percentiles("idle pick-up, another process", delays)


def latency(contest: Contest) -> Iterator[Value]:
    """From dispatch to the start of the handler while half of what it could do is asked for."""
    slots = contest.options.slots
    if f"drain {slots}" not in contest.rates:
        list(drain(contest, "nothing", slots, 1))
    if "abreast" not in contest.rates:
        list(dispatch(contest))
    # What one program cannot dispatch cannot be asked for either.
    rate = min(contest.rates[f"drain {slots}"] / 2, contest.rates["abreast"] / 2)
    with (
        contest.stage() as stage,
        stage.client() as client,
        stage.worker(slots) as worker,
    ):
        worker.start()
        client.ask("pick_ups", samples=_WARM)
        offered = client.ask("offer", rate=rate, seconds=contest.options.load)
        jobs = offered["jobs"] + _WARM
        if not _holds(stage, [worker], lambda: stage.ledger.delays_count() >= jobs):
            raise worker.broken(f"did not start {jobs} jobs in time")
        delays = stage.ledger.delays()[_WARM:]
    asked = offered["jobs"] / offered["seconds"]
    yield Value(measure="half load, asked for", value=rate, unit="jobs/s")
    yield Value(measure="half load, as dispatched", value=asked, unit="jobs/s")
    # Each at half of what it can: such latencies are not of the same load.
    yield from _percentiles("half load, dispatch to handler", delays, compared=False)


def _percentiles(measure: str, delays: list[float], *, compared: bool = True) -> Iterator[Value]:
    for percent in _PERCENTS:
        value = percentile(delays, percent)
        yield Value(measure=f"{measure}, p{percent}", value=value, unit="ms", compared=compared)


# --- what there is when nothing happens ---------------------------------------------------------


def idle(contest: Contest) -> Iterator[Value]:
    """A worker with nothing to do: its CPU time, memory, and what it asks of the store."""
    seconds = contest.options.idle
    with (
        contest.stage() as stage,
        stage.client() as client,
        stage.worker(contest.options.slots, traced=True) as worker,
    ):
        worker.start()
        client.ask("pick_ups", samples=1)
        client.end(0)
        time.sleep(_SETTLE)

        cpu, asked = _cpu([worker]), _asked(stage, seconds)
        used = _cpu([worker]) - cpu
        if usage.KNOWN:
            memory = usage.resident_memory(worker.pid)
            yield Value(measure="worker, idle, CPU", value=100 * used / seconds, unit="%")
            yield Value(measure="worker, idle, memory", value=memory, unit="MiB")
    if asked is not None:
        yield Value(measure="worker, idle, store commands", value=asked / seconds, unit="1/s")


def _asked(stage: Stage, seconds: float) -> int | None:
    """What is asked of the store in so many seconds; None where that is not known."""
    watch = stage.contest.place.commands
    if watch is not None:
        return watch(stage.url, seconds)
    before = stage.ledger.standing().transactions
    time.sleep(seconds)
    after = stage.ledger.standing().transactions
    return after - before if after else None  # none ever: they are not run by this Python


def imports(contest: Contest) -> Iterator[Value]:
    """How long the package takes to import; the files are in the system's cache."""
    program = (
        "import time; began = time.perf_counter(); "
        f"import {contest.who.module}; print(time.perf_counter() - began)"
    )
    times: list[float] = []
    for _ in range(_IMPORTS + 1):
        command: list[str | Path] = [contest.python, "-P", "-c", program]
        what = f"the import of {contest.who.module}"
        times.append(1000 * float(output(what, command, contest.options.patience)))
    yield Value(measure="import", value=min(times[1:]), unit="ms")
