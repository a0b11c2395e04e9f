"""Checks of `prune`: what has ended is kept as long as was said, what is live always."""

from tenure.driver import Capability, Driver
from tenure.outcomes import Cancelled, Completed, Failed, Outcome
from tenure.testing.conformance.builders import (
    after,
    claim,
    counted,
    enqueue,
    failure,
    ids,
    new_job,
    record,
    started,
)
from tenure.testing.conformance.check import check, expect
from tenure.types import Retention

_NEEDS = (Capability.PRUNE,)
_OUTCOMES: tuple[Outcome, ...] = (Completed(), Failed(failure()), Cancelled("asked"))
_KEEP = Retention(completed=None, completed_count=None, failed=None, cancelled=None)
_NOTHING = Retention(completed=0.0, completed_count=0, failed=0.0, cancelled=0.0)


async def _ended(store: Driver, id: str, outcome: Outcome, at: float, queue: str = "q") -> None:
    claimed = await started(store, id, queue=queue, now=after(at))
    await record(store, claimed.hold, outcome, now=after(at))


@check("I16", _NEEDS)
async def what_has_ended_is_pruned_by_the_age_of_its_state(store: Driver) -> None:
    for number, outcome in enumerate(_OUTCOMES):
        await _ended(store, f"job-{number}", outcome, 0)
    keep = Retention(completed=100.0, failed=200.0, cancelled=300.0)
    everything = {"completed": 1, "failed": 1, "cancelled": 1}
    for now, pruned in ((99, 0), (101, 1), (199, 0), (201, 1), (299, 0), (301, 1)):
        expect(await store.prune(keep, 10, now=after(now)), pruned, f"the number after {now} s")
        if pruned:
            del everything[next(iter(everything))]
        expect(await counted(store, after(now)), everything, f"the counts after {now} s")


@check("I5", _NEEDS)
async def what_ended_less_than_a_minute_ago_is_never_pruned(store: Driver) -> None:
    for number, outcome in enumerate(_OUTCOMES):
        await _ended(store, f"job-{number}", outcome, 0)
    expect(await store.prune(_NOTHING, 10, now=after(59)), 0, "the number after 59 s")
    expect(await store.prune(_NOTHING, 10, now=after(61)), 3, "the number after 61 s")


@check("I5", _NEEDS)
async def a_live_job_is_never_pruned(store: Driver) -> None:
    await enqueue(store, new_job("waiting"))
    claimed = await started(store, "running")
    expect(await store.prune(_NOTHING, 10, now=after(1e8)), 0, "the number pruned")
    expect(ids(await claim(store, now=after(1e8))), ["waiting"], "the waiting job")
    await record(store, claimed.hold, Completed(), now=after(1e8))


@check("I16", _NEEDS)
async def the_newest_completed_jobs_of_each_queue_are_kept(store: Driver) -> None:
    for number in range(4):
        await _ended(store, f"x{number}", Completed(), number, queue="x")
    await _ended(store, "y", Completed(), 0, queue="y")
    await _ended(store, "failed", Failed(failure()), 0, queue="x")
    keep = Retention(completed=None, completed_count=2)
    expect(await store.prune(keep, 10, now=after(600)), 2, "the number pruned")
    right = {"completed": 2, "failed": 1}
    expect(await counted(store, after(600), "x"), right, "the counts of the queue with four")
    expect(await counted(store, after(600), "y"), {"completed": 1}, "of the queue with one")


@check("I16", _NEEDS)
async def without_a_bound_everything_is_kept(store: Driver) -> None:
    for number, outcome in enumerate(_OUTCOMES):
        await _ended(store, f"job-{number}", outcome, 0)
    expect(await store.prune(_KEEP, 10, now=after(1e9)), 0, "the number pruned")


@check("prune()", _NEEDS)
async def a_prune_deletes_at_most_its_limit(store: Driver) -> None:
    for number in range(5):
        await _ended(store, f"job-{number}", _OUTCOMES[number % 3], number)
    rounds = [await store.prune(_NOTHING, 2, now=after(600)) for _ in range(4)]
    expect(rounds, [2, 2, 1, 0], "the numbers pruned")
    expect(await counted(store, after(600)), {}, "the counts")
