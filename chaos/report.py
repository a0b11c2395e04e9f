"""The numbers of a run, for people: as a table, and as Markdown. It judges nothing."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tenure
from chaos.facts import Facts, facts
from chaos.leases import early, recoveries
from chaos.ledger import Entry
from chaos.violation import Violation

__all__ = ["markdown", "numbers", "text"]


def numbers(
    entries: Sequence[Entry], jobs: Sequence[tenure.Job[Any]], violations: Sequence[Violation]
) -> dict[str, str]:
    """Each by its name, in the order in which they are shown."""
    known = facts(entries, jobs)
    starts = Counter(len(found) for found in known.starts.values())
    kinds = Counter(violation.kind for violation in violations)
    unsure = {entry.job_id for entry in known.all("unsure")}
    steps = Counter(entry.text for entry in known.all("step"))
    stalled = sum(j.error is not None and j.error.kind == "stalled" for j in jobs)
    found = {
        "jobs": len(jobs),
        **dict(sorted(Counter(str(job.state) for job in jobs).items())),
        "failed as stalled": stalled,
        "made by schedules": sum("schedule" in job.headers for job in jobs),
        "workers killed": steps["kill"],
        "workers killed by a job": len(known.all("died of a job")),
        "server restarts": steps["server"],
        **{f"steps of {k}": n for k, n in sorted(steps.items()) if k not in ("kill", "server")},
        **{f"jobs of {_starts(n)}": number for n, number in sorted(starts.items())},
        "dispatches refused": len(known.all("refused")),
        "dispatches unsure": len(unsure),
        "of these stored": len(unsure & known.stored.keys()),
        "dispatches kept by a unique key": len(known.all("kept")),
        "writes refused to a lost hold": len(known.all("fenced")),
        "taken early, as the guarantees page allows": sum(e.excused for e in early(known)),
        "cancelled by hand": len(known.all("cancel done")) + len(known.all("cancel requested")),
        "retried by hand": len(known.all("retry done")),
        **{kind: kinds[kind] for kind in ("lost", "doubly recorded", "stuck")},
        "violations": len(violations),
    }
    return {
        **{name: f"{number:,}" for name, number in found.items()},
        **_recovered(known),
        "slowest from kill to next start": f"{max(_restarts(known), default=0.0):.1f} s",
    }


def _starts(number: int) -> str:
    return "1 start" if number == 1 else f"{number} starts"


def _recovered(known: Facts) -> dict[str, str]:
    """The slowest of all, and the one that came nearest to its bound."""
    found = recoveries(known)
    slowest = max(found, key=lambda recovery: recovery.seconds, default=None)
    nearest = max(found, key=lambda recovery: recovery.seconds / recovery.bound, default=None)
    if slowest is None or nearest is None:
        return {}
    return {
        "slowest from kill to claimable again": f"{slowest.seconds:.1f} s",
        "of its bound at most": f"{nearest.seconds / nearest.bound:.0%}",
    }


def _restarts(known: Facts) -> Iterable[float]:
    """From a kill until a handler began elsewhere, where nobody had to retry it by hand."""
    for killed, start in known.in_flight():
        later = [e.at for e in known.starts[start.job_id] if e.at > killed]
        if later and not known.retries[start.job_id]:
            yield min(later) - killed


def text(found: Mapping[str, str]) -> str:
    width = max(map(len, found))
    return "\n".join(f"  {name:<{width}}  {number}" for name, number in found.items())


def markdown(title: str, found: Mapping[str, str], skipped: Sequence[str]) -> str:
    """The numbers, and in front of them what was left out."""
    left_out = "".join(f"SKIPPED: {reason}\n\n" for reason in skipped)
    rows = "\n".join(f"| {name} | {number} |" for name, number in found.items())
    return f"### {title}\n\n{left_out}| | |\n|---|---|\n{rows}\n"
