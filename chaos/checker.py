"""Compares what really happened, by the ledgers, with what the store says when all has settled.

It judges, and must never touch a store: it is given the entries of every ledger and every job, so
that a test can plant each kind of violation.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import tenure
from chaos.facts import Facts, Hold, facts
from chaos.holds import holds
from chaos.leases import leases, lost_in_the_gap
from chaos.ledger import Entry
from chaos.load import LEASE, MAX_STALLS, known_ends
from chaos.ticking import ticks
from chaos.violation import Violation

__all__ = ["check"]

FINAL = ("completed", "failed", "cancelled")


def check(entries: Sequence[Entry], jobs: Sequence[tenure.Job[Any]]) -> list[Violation]:
    """Every violation of what the ledgers and the store can show together."""
    known = facts(entries, jobs)
    return [
        *_dispatches(known, len(jobs)),
        *_ends(known),
        *_told(known),
        *_cancels(known),
        *_contents(known),
        *_stalled(known),
        *holds(known),
        *leases(known),
        *ticks(known),
    ]


def _dispatches(known: Facts, listed: int) -> Iterator[Violation]:
    """I5 and I15: what returned is there, what failed for certain is not."""
    stored = known.stored
    if listed != len(stored):
        yield Violation("listed twice", "", f"{listed - len(stored)} times")
    for what in ("stored", "fired"):
        for entry in known.all(what):
            if entry.job_id not in stored:
                yield Violation("lost", entry.job_id, f"it was {what}")
    for what in ("refused", "kept"):
        for entry in known.all(what):
            if entry.job_id in stored:
                yield Violation("left behind", entry.job_id, f"its dispatch was {what}")
    tried = {entry.job_id for entry in known.all("tried")}
    ends = ("stored", "refused", "kept", "unsure")
    for job_id in tried - {entry.job_id for end in ends for entry in known.all(end)}:
        yield Violation("undecided", job_id, "its dispatch did not end")
    for job_id in stored.keys() - tried:
        if "schedule" not in stored[job_id].headers:
            yield Violation("from nowhere", job_id, "nobody dispatched it")


def _ends(known: Facts) -> Iterator[Violation]:
    """I1: each job has ended, and in a way in which one of its name may."""
    ends = known_ends()
    cancels = {entry.job_id for entry in known.all("cancel tried")}
    for job in known.stored.values():
        if job.state not in FINAL:
            yield Violation("stuck", job.id, f"it is {job.state}")
        elif job.state == "cancelled":
            if job.id not in cancels:
                yield Violation("wrong end", job.id, "it is cancelled, and nobody asked for that")
        elif job.state != ends[job.name] and (job.error is None or job.error.kind != "stalled"):
            yield Violation("wrong end", job.id, f"a job named {job.name} is {job.state}")


def _stalled(known: Facts) -> Iterator[Violation]:
    """I4, I6: no job was failed as stalled without as many accidents to those who had it.

    Each lease that ran out was that of a start whose worker was killed or told so, or of a claim
    that nobody heard of: then something befell workers or the store in the life of the job.
    """
    tried = {entry.job_id: entry.at for entry in known.all("tried")}
    for job in known.stored.values():
        if job.error is None or job.error.kind != "stalled":
            continue
        starts = known.starts.get(job.id, ())
        lapsed = sum(Hold(job.id, start.serial) not in known.settled for start in starts)
        began = tried.get(job.id, 0.0)
        ended = max((e.at for e in known.settled_of.get(job.id, ())), default=float("inf"))
        unheard = sum(
            began - LEASE < accident.ended and accident.began < ended
            for accident in known.accidents
        )
        if lapsed + unheard < MAX_STALLS:
            text = f"{lapsed} starts that lapsed, {unheard} accidents"
            yield Violation("stalled without cause", job.id, text)


def _told(known: Facts) -> Iterator[Violation]:
    """I3: each job has ended once, as its worker was told, and by the hand of that worker."""
    told = {
        job_id: ended
        for job_id, entries in known.settled_of.items()
        if (ended := [entry for entry in entries if entry.text in ("Completed", "Failed")])
    }
    last_retry = {entry.job_id: entry.at for entry in known.all("retry done")}
    for job_id, entries in told.items():
        job = known.stored.get(job_id)
        if len(entries) > 1 + known.retries[job_id]:
            yield Violation("doubly recorded", job_id, f"{len(entries)} times")
        last = max(entries, key=lambda entry: entry.at)
        retried = known.retries[job_id] > 0
        if job is None or (retried and last.at < last_retry.get(job_id, last.at + 1)):
            continue
        if job.state != last.text.lower():
            yield Violation("contradicted", job_id, f"{last.text} was recorded: {job.state}")
        elif job.state == "completed" and _who(job) not in [(e.process, e.serial) for e in entries]:
            yield Violation("doubly recorded", job_id, f"by {last.process}, and by {_who(job)}")
    repeated = Counter((e.job_id, e.serial) for e in known.all("settled"))
    for (job_id, serial), number in repeated.items():
        if number > 1:
            yield Violation("doubly recorded", job_id, f"under hold {serial}, {number} times")


def _cancels(known: Facts) -> Iterator[Violation]:
    """I1: what was cancelled while it waited stays so, and is not started.

    But for by a worker that had claimed it before, and has lost it in the documented gap.
    """
    for entry in known.all("cancel done"):
        job = known.stored.get(entry.job_id)
        if job is None or known.retries[job.id]:
            continue
        late = [
            start
            for start in known.starts.get(job.id, ())
            if start.at > entry.at and not lost_in_the_gap(known, start, entry.at)
        ]
        if job.state != "cancelled" or late:
            yield Violation("cancel undone", job.id, f"{job.state}, {len(late)} starts after it")


def _contents(known: Facts) -> Iterator[Violation]:
    """I10: the payload is what was dispatched, and the result what the handler returned of it."""
    payloads = {entry.job_id: entry.text for entry in known.all("tried")}
    for job in known.stored.values():
        if job.payload != payloads.get(job.id, job.payload):
            yield Violation("altered payload", job.id, repr(job.payload))
        if job.state != "completed":
            continue
        starts = known.starts.get(job.id, ())
        if not starts:
            yield Violation("never started", job.id, "yet it is completed")
        elif job.result not in [[start.process, start.serial, job.payload] for start in starts]:
            yield Violation("altered result", job.id, repr(job.result))


def _who(job: tenure.Job[Any]) -> tuple[str, int]:
    """The worker whose result the store has taken, and under which hold."""
    result: list[Any] = job.result or [None, None]
    return result[0], result[1]
