"""How much of what its store can do tenure reaches: a drain beside the raw limit of that store."""

import json
import sys
from collections.abc import Iterator

from benchmarks.figures import OURS
from benchmarks.measures import Value, drain
from benchmarks.processes import output
from benchmarks.stage import Contest

__all__ = ["raw_limit"]


def raw_limit(contest: Contest, slots: int) -> Iterator[Value]:
    """The limit with batches as large as the concurrency, and the share of it."""
    if contest.who.name != OURS:
        return  # the statements are tenure's
    if f"drain {slots}" not in contest.rates:
        list(drain(contest, "nothing", slots, 1))
    limit = _limit(contest, slots)
    share = 100 * contest.rates[f"drain {slots}"] / limit
    yield Value(
        measure=f"drain of no-op jobs, concurrency {slots}",
        who=f"raw limit, batches of {slots}",
        value=limit,
        unit="jobs/s",
    )
    yield Value(measure=f"share of the raw limit, concurrency {slots}", value=share, unit="%")


def _limit(contest: Contest, batch: int) -> float:
    with contest.stage() as stage:
        asked = {
            "kind": contest.store.kind,
            "url": stage.url,
            "durability": contest.store.durability,
            "jobs": contest.options.jobs,
            "batch": batch,
        }
        command = [sys.executable, "-m", "benchmarks.raw", json.dumps(asked)]
        return float(output("the raw limit", command, contest.options.patience))
