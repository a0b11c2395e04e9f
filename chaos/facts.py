"""All entries and all jobs, arranged for the checker. It judges nothing."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

import tenure
from chaos.clocks import Shift
from chaos.ledger import Entry
from chaos.load import LEASE

__all__ = ["Accident", "Facts", "Hold", "Span", "facts", "sent"]


TOLD = ("fenced", "lease ended")


class Hold(msgspec.Struct, frozen=True, order=True):
    """A hold as the ledgers know it: of which job, and its serial."""

    job_id: str
    serial: int


class Accident(msgspec.Struct, frozen=True):
    """What the hand did, or a job to its worker (then it is a `kill`, too)."""

    kind: str
    began: float
    ended: float


class Span(msgspec.Struct, frozen=True, order=True):
    """From the first line of a handler on, for as long as its hold is known to be current."""

    began: float
    ended: float
    hold: Hold


class Facts(msgspec.Struct):
    """What happened to each job, and what the store says of it."""

    stored: dict[str, tenure.Job[Any]]
    by_what: dict[str, list[Entry]]
    starts: dict[str, list[Entry]]  # of each job, by time
    ends: dict[Hold, float]
    settled: dict[Hold, Entry]
    settled_of: dict[str, list[Entry]]
    given_back: Counter[str]
    retries: Counter[str]  # by hand: tried, so at most so many
    gone: dict[str, float]  # processes that were killed, and when
    told: set[Hold]  # that they are lost
    extended: dict[Hold, list[float]]  # when that was asked for
    reclaims: dict[str, list[Entry]]
    looks: dict[str, Entry]  # the first one of each worker for expired leases
    shifts: list[Shift]
    accidents: list[Accident]

    def all(self, what: str) -> list[Entry]:
        return self.by_what.get(what, [])

    def proofs(self, start: Entry) -> list[float]:
        """The instants from which on the hold of this start has lasted for a lease."""
        return [sent(start), *self.extended.get(Hold(start.job_id, start.serial), ())]

    def spans(self, job_ids: Sequence[str], taken: Mapping[Hold, float]) -> list[Span]:
        """The proved ones, by time.

        The outcome was taken under the same hold that started it; or its worker was killed, and
        until then the lease had neither run out nor been taken away, as those in `taken` were. A
        hold that was lost proves nothing: another may run beside it.
        """
        found: list[Span] = []
        for job_id in job_ids:
            for start in self.starts.get(job_id, ()):
                hold = Hold(job_id, start.serial)
                end = self.ends.get(hold)
                killed = self.gone.get(start.process)
                if hold in self.settled and end is not None:
                    found.append(Span(start.at, end, hold))
                elif end is None and killed is not None and hold not in self.told:
                    until = min(max(self.proofs(start)) + LEASE, taken.get(hold, killed))
                    found.append(Span(start.at, min(killed, until), hold))
        return sorted(found)

    def in_flight(self) -> Iterator[tuple[float, Entry]]:
        """Each start that a worker had not settled when it was killed, and when that was."""
        for starts in self.starts.values():
            for start in starts:
                killed = self.gone.get(start.process)
                settled = Hold(start.job_id, start.serial) in self.settled
                if killed is not None and not settled and start.at <= killed:
                    yield killed, start


def sent(start: Entry) -> float:
    """When the claim was asked for under which this handler runs."""
    return float(start.text) if start.text else start.at


def facts(entries: Sequence[Entry], jobs: Sequence[tenure.Job[Any]]) -> Facts:
    """One pass over all of it."""
    by_what: dict[str, list[Entry]] = {}
    for entry in entries:
        by_what.setdefault(entry.what, []).append(entry)
    arranged = Facts(
        stored={job.id: job for job in jobs},
        by_what=by_what,
        starts={},
        ends={Hold(e.job_id, e.serial): e.at for e in by_what.get("ended", ())},
        settled={Hold(e.job_id, e.serial): e for e in by_what.get("settled", ())},
        settled_of={},
        given_back=Counter(e.job_id for e in by_what.get("given back", ())),
        retries=Counter(e.job_id for e in by_what.get("retry tried", ())),
        gone=_gone(entries, by_what),
        told={Hold(e.job_id, e.serial) for w in TOLD for e in by_what.get(w, ())},
        extended={},
        reclaims={},
        looks={e.process: e for e in by_what.get("looked", ())},
        shifts=[msgspec.json.decode(e.text, type=Shift) for e in by_what.get("clock", ())],
        accidents=_accidents(by_what),
    )
    for entry in arranged.settled.values():
        arranged.settled_of.setdefault(entry.job_id, []).append(entry)
    for entry in by_what.get("extended", ()):
        arranged.extended.setdefault(Hold(entry.job_id, entry.serial), []).append(entry.at)
    for entry in by_what.get("reclaimed", ()):
        arranged.reclaims.setdefault(entry.job_id, []).append(entry)
    for entry in sorted(by_what.get("started", ()), key=lambda e: e.at):
        arranged.starts.setdefault(entry.job_id, []).append(entry)
    return arranged


def _gone(entries: Sequence[Entry], by_what: dict[str, list[Entry]]) -> dict[str, float]:
    """When each killed process died: the hand learns late of one that a job has killed."""
    gone = {e.text: e.at for e in by_what.get("killed", ())}
    by_jobs = {e.text for e in by_what.get("died of a job", ())}
    last = dict.fromkeys(by_jobs, 0.0)
    for entry in entries:
        if entry.process in by_jobs:
            last[entry.process] = max(last[entry.process], entry.at)
    return {name: min(at, last.get(name) or at) for name, at in gone.items()}


def _accidents(by_what: dict[str, list[Entry]]) -> list[Accident]:
    """The steps of the hand, which come one after the other, and the workers that died of a job."""
    begun, over = by_what.get("step", ()), by_what.get("step over", ())
    steps = [Accident(b.text, b.at, o.at) for b, o in zip(begun, over, strict=False)]
    return [*steps, *(Accident("kill", e.at, e.at) for e in by_what.get("died of a job", ()))]
