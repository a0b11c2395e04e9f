"""How steady a worker is: minutes with a queue that is never empty, second by second.

Whatever a store does now and then (checkpoints, vacuum, rewriting its log, pruning what was kept
long enough) falls into it. Told are the jobs of the median second, of the slowest one in proportion
to it, the longest time without a second above half of it, and the worker's memory early and late.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks import usage
from benchmarks.figures import OURS
from benchmarks.measures import Value
from benchmarks.processes import ClientProcess, WorkerProcess
from benchmarks.stage import Contest, Stage
from benchmarks.stores import Mismatch

__all__ = ["seconds_of", "steady"]

_FULL = 40_000  # jobs that wait, about
_STEP = 2000
_EARLY = 0.1  # of the time; the worker has had its first jobs then
_LOOK = 0.02


@dataclass(kw_only=True)
class _Course:
    """What was seen: when, in seconds, so many jobs were handled; MiB early and late."""

    looks: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    early: float = 0.0
    late: float = 0.0


def steady(contest: Contest) -> Iterator[Value]:
    """Keep a worker busy for so long, while another process dispatches."""
    if contest.who.name != OURS:
        return  # minutes, for a question that is asked of tenure
    slots = contest.options.slots
    with contest.stage() as stage, stage.client() as client:
        client.ask("in_bulk", handler="nothing", jobs=_FULL)
        with stage.worker(slots) as worker:
            worker.start()
            course, dispatched = _course(stage, client, worker)
            code = worker.end(contest.options.patience)
        handled, left = stage.ledger.standing().jobs, client.ask("count")["unfinished"]
        if handled + left != dispatched or code:
            raise Mismatch(f"{dispatched} dispatched, {handled} handled, {left} left, code {code}")
    rates = seconds_of(course.looks)
    middle = median(rates)
    name = f"{contest.options.steady:.0f} s without an end, concurrency {slots}"
    yield Value(measure=f"{name}: median second", value=middle, unit="jobs/s")
    yield Value(measure=f"{name}: slowest second", value=min(rates) / middle, unit="x")
    slow = 1000.0 * _longest(rate < middle / 2 for rate in rates)
    yield Value(measure=f"{name}: longest time below half", value=slow, unit="ms")
    if usage.KNOWN:
        yield Value(measure=f"{name}: memory early", value=course.early, unit="MiB")
        yield Value(measure=f"{name}: memory at the end", value=course.late, unit="MiB")


def _course(stage: Stage, client: ClientProcess, worker: WorkerProcess) -> tuple[_Course, int]:
    """Keep the queue full; what was seen, and how many jobs were dispatched in all."""
    course, dispatched = _Course(), _FULL
    duration = stage.contest.options.steady
    began = time.monotonic()
    while (now := time.monotonic() - began) < duration:
        if not worker.alive:
            raise worker.broken("ended")
        handled = stage.ledger.standing().jobs
        course.looks.append((now, handled))
        if usage.KNOWN and now >= _EARLY * duration and not course.early:
            course.early = usage.resident_memory(worker.pid)
        if dispatched - handled < _FULL:
            client.ask("in_bulk", handler="nothing", jobs=_STEP)
            dispatched += _STEP
        else:
            time.sleep(_LOOK)
    if usage.KNOWN:
        course.late = usage.resident_memory(worker.pid)
    return course, dispatched


def seconds_of(looks: Sequence[tuple[float, int]]) -> list[float]:
    """Jobs per second, second by second, of what was seen at irregular instants."""
    rates: list[float] = []
    since, before = looks[0]
    for instant, handled in looks[1:]:
        if instant - since >= 1.0:
            rates.append((handled - before) / (instant - since))
            since, before = instant, handled
    return rates


def _longest(slow: Iterator[bool]) -> int:
    """The most seconds in a row."""
    longest = current = 0
    for each in slow:
        current = current + 1 if each else 0
        longest = max(longest, current)
    return longest
