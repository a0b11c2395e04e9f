"""I6 and I7: which holds ended before their time, and which too late. Part of the checker.

What is known of a lease is known without doubt: it lasts for its length from the moment on at
which its claim, or an extension that was answered, was *sent*. Whoever takes the job before that
must have an excuse, of which there is one: it looked for the first time in the moments after the
clock was set forward, before the others could extend their leases, and the store could not tell it
of that (docs/guarantees.md).
"""

from collections.abc import Iterator
from itertools import pairwise

import msgspec

from chaos.facts import Facts, Hold, sent
from chaos.ledger import Entry
from chaos.load import LEASE
from chaos.violation import Violation

__all__ = ["Recovery", "early", "leases", "lost_in_the_gap", "recoveries"]

INTERVAL = max(1.0, min(LEASE, 60.0))  # between two looks of a worker for leases that ran out (W5)
GAP = LEASE / 3 + LEASE / 12  # within which who lives extends: a third, and the keeper's tick
BUSY = 5.0  # seconds that the machine may take over all this
STARTING = 3.0  # the same, for a worker to be started in the place of another one


class Early(msgspec.Struct, frozen=True):
    """A job was given to somebody while the lease of a living worker lasted."""

    hold: Hold
    at: float
    seconds: float  # that it would have lasted
    taker: str  # a process: who reclaimed it, or had it next where that is not known
    excused: bool


class Recovery(msgspec.Struct, frozen=True):
    """A job that a killed worker had in its hands was made claimable again."""

    job_id: str
    seconds: float
    bound: float


def leases(known: Facts) -> Iterator[Violation]:
    """Every violation by a lease that ended at the wrong time."""
    for found in early(known):
        if not found.excused:
            text = f"hold {found.hold.serial}, {found.seconds:.2f} s before its end"
            yield Violation("taken early", found.hold.job_id, text + _when(known, found))
    for recovery in recoveries(known):
        if recovery.seconds > recovery.bound:
            text = f"after {recovery.seconds:.1f} s, at most {recovery.bound:.1f} s"
            yield Violation("recovered late", recovery.job_id, text)


def early(known: Facts) -> Iterator[Early]:
    """Each hold of which it is certain that its handler ran on, and its lease with it."""
    for job_id, starts in known.starts.items():
        for one, other in pairwise(starts):
            hold = Hold(job_id, one.serial)
            reclaim = _reclaim(known, job_id, one.at, other.at)
            taken = other.at if reclaim is None else reclaim.at
            over = min(known.ends.get(hold, taken + 1), known.gone.get(one.process, taken + 1))
            if hold in known.settled or over <= taken:
                continue
            proof = max(at for at in known.proofs(one) if at <= taken)
            if taken < proof + LEASE:
                excused = _in_the_gap(known, proof, taken, reclaim)
                taker = other.process if reclaim is None else reclaim.process
                yield Early(hold, taken, proof + LEASE - taken, taker, excused)


def _when(known: Facts, found: Early) -> str:
    """Who took it, and how near that was to what would be an excuse."""
    text = f", by {found.taker}"
    if (first := known.looks.get(found.taker)) is not None:
        text += f", whose first look was {found.at - first.at:.2f} s before"
    forward = [shift.at for shift in known.shifts if shift.forward and shift.at < found.at]
    if forward:
        text += f"; the clock was set forward {found.at - max(forward):.2f} s before"
    return text


def _reclaim(known: Facts, job_id: str, after: float, until: float) -> Entry | None:
    """The first of the job between these, if anybody heard of it."""
    found = [entry for entry in known.reclaims.get(job_id, ()) if after < entry.at <= until]
    return min(found, key=lambda entry: entry.at, default=None)


def lost_in_the_gap(known: Facts, start: Entry, until: float) -> bool:
    """Whether the hold of this start was reclaimed before then, with that excuse."""
    reclaim = _reclaim(known, start.job_id, sent(start), until)
    if reclaim is None:
        return False
    proof = max(at for at in known.proofs(start) if at <= reclaim.at)
    return _in_the_gap(known, proof, reclaim.at, reclaim)


def _in_the_gap(known: Facts, proof: float, taken: float, reclaim: Entry | None) -> bool:
    """Whether who took it, or anybody where that is not known, looked first just after a shift."""
    looks = [
        look
        for look in known.looks.values()
        if look.text == "blind" and (reclaim is None or look.process == reclaim.process)
    ]
    return any(
        proof < shift.at < taken and any(0 <= look.at - shift.at <= GAP for look in looks)
        for shift in known.shifts
        if shift.forward
    )


def recoveries(known: Facts) -> list[Recovery]:
    """Each job that a killed worker had in its hands, where somebody heard of the reclaim.

    What is not known is passed over: a reclaim whose answer was lost, or whose worker was killed
    before it could note it.
    """
    recovered: list[Recovery] = []
    for killed, start in known.in_flight():
        entries = known.reclaims.get(start.job_id, ())
        found = min((e.at for e in entries if e.at > start.at), default=None)
        later = min((e.at for e in known.starts[start.job_id] if e.at > start.at), default=None)
        if found is None or found < killed or (later is not None and later < found):
            continue
        bound = _bound(known, start.at, killed, found)
        recovered.append(Recovery(start.job_id, found - killed, bound))
    return recovered


def _bound(known: Facts, start: float, killed: float, found: float) -> float:
    """A lease and an interval, and what each accident meanwhile may cost beyond that.

    While the store cannot be used nobody looks, and who has met an error looks an interval later.
    For a lease after the clock was set, and until all is clear, a hold is reclaimed only when it
    has been seen to stand still for a whole lease.
    """
    bound = LEASE + INTERVAL + BUSY
    for accident in known.accidents:
        if accident.kind == "kill":
            bound += STARTING if killed < accident.began < found else 0.0
        elif accident.began < found and accident.ended > killed - INTERVAL:
            bound += accident.ended - accident.began + INTERVAL
    if any(start - 3 * LEASE < shift.at < found for shift in known.shifts):
        bound += LEASE + 2 * INTERVAL
    return bound
