"""I2, I3, I4 and I8: who had which job, and when. Part of the checker."""

from bisect import bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise

from chaos.facts import Facts, Hold, sent
from chaos.leases import early
from chaos.load import MAX_STALLS, ONE_AT_A_TIME, RATE
from chaos.violation import Violation

__all__ = ["holds"]

WINDOWS = (1.0, 10.0)  # seconds over which claims of limited jobs are counted


def holds(known: Facts) -> Iterator[Violation]:
    """Every violation by a start that should not have been, or not then."""
    taken = {each.hold: each.at for each in early(known) if each.excused}
    yield from _starts(known)
    yield from _reasons(known)
    yield from _overlaps(known, taken)
    yield from _unique_keys(known)
    yield from _limits(known, taken)
    yield from _rate(known)


def _starts(known: Facts) -> Iterator[Violation]:
    """I4: no start beyond the bound, none under a number or a hold that is spent."""
    for job_id, starts in known.starts.items():
        job = known.stored.get(job_id)
        lives = 1 + known.retries[job_id]
        given_back = known.given_back[job_id]
        for attempt, number in Counter(start.attempt for start in starts).items():
            if number > lives + given_back:
                yield Violation("started twice", job_id, f"attempt {attempt}, {number} times")
        for serial, number in Counter(start.serial for start in starts).items():
            if number > 1:
                yield Violation("hold used twice", job_id, f"serial {serial}, {number} starts")
        bound = None if job is None else job.max_attempts
        if bound is not None and len(starts) > bound * lives + given_back:
            yield Violation("too many starts", job_id, f"{len(starts)}, at most {bound}")
        if job is not None and job.name == "poison" and len(starts) > MAX_STALLS * lives:
            yield Violation("too many stalls", job_id, f"{len(starts)}, at most {MAX_STALLS}")


def _reasons(known: Facts) -> Iterator[Violation]:
    """I3: of each start its worker has heard how it ended, or it was killed."""
    for starts in known.starts.values():
        for start in starts:
            hold = Hold(start.job_id, start.serial)
            if (
                hold not in known.settled
                and hold not in known.told
                and start.process not in known.gone
            ):
                text = f"{start.process} heard nothing of hold {start.serial}"
                yield Violation("untold", start.job_id, text)


def _overlaps(known: Facts, taken: Mapping[Hold, float]) -> Iterator[Violation]:
    """I2: no two holds of one job were current at once."""
    for job_id, starts in known.starts.items():
        if len(starts) > 1:
            for one, other in pairwise(known.spans([job_id], taken)):
                if other.began < one.ended:
                    text = f"serials {one.hold.serial} and {other.hold.serial}"
                    yield Violation("two holds", job_id, text)


def _unique_keys(known: Facts) -> Iterator[Violation]:
    """I8: all of one holder's starts that counted are before the first of the next."""
    holders: defaultdict[str, list[str]] = defaultdict(list)
    for job in known.stored.values():
        if job.unique is not None and job.id in known.starts:
            holders[job.unique.key].append(job.id)
    for key, job_ids in holders.items():
        lives = sorted(
            (starts[0].at, max(starts, key=lambda start: start.serial).at, job_id)
            for job_id in job_ids
            for starts in [known.starts[job_id]]
        )
        for (_, ended, _), (began, _, job_id) in pairwise(lives):
            if began < ended:
                yield Violation("key shared", job_id, key)


def _limits(known: Facts, taken: Mapping[Hold, float]) -> Iterator[Violation]:
    """No two jobs of a key with a limit of one were held at once."""
    for key, job_ids in _limited(known, ONE_AT_A_TIME).items():
        for one, other in pairwise(known.spans(job_ids, taken)):
            if other.began < one.ended:
                yield Violation("limit exceeded", other.hold.job_id, f"{key}: {one.hold.job_id}")


def _rate(known: Facts) -> Iterator[Violation]:
    """No more claims in a second than the limit says, by the store's clock.

    A claim was made at some instant between when it was asked for and the start. Those that were
    made within a window without doubt are counted. A clock that is set opens the limit once more.
    """
    for key, job_ids in _limited(known, "rate").items():
        claims = sorted((sent(e), e.at) for i in job_ids for e in known.starts.get(i, ()))
        for window in WINDOWS:
            ends: list[float] = []  # of the claims that were asked for in the window
            for began, started in reversed(claims):
                insort(ends, started)
                number = bisect_right(ends, began + window)
                shifts = sum(began - 1 <= each.at <= began + window for each in known.shifts)
                if number > RATE * (window + 1 + shifts):
                    yield Violation("rate exceeded", key, f"{number} within {window:g} s")
                    return


def _limited(known: Facts, beginning: str) -> dict[str, list[str]]:
    """The jobs of each key with this beginning."""
    found: dict[str, list[str]] = {}
    for job in known.stored.values():
        for key in job.limits:
            if key.startswith(beginning):
                found.setdefault(key, []).append(job.id)
    return found
