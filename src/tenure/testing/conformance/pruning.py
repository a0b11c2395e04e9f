"""Checks of `prune`: what has ended is kept as long as was said, what is live always."""

from msgspec.structs import replace

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
from tenure.types import JobFilter, Retention

_NEEDS = (Capability.PRUNE,)
_OUTCOMES: tuple[Outcome, ...] = (Completed(), Failed(failure()), Cancelled("asked"))
_KEEP = Retention(
    completed=None, completed_count=None, completed_bytes=None, failed=None, cancelled=None
)
_NOTHING = Retention(completed=0.0, completed_count=0, failed=0.0, cancelled=0.0)
_SIZE = 500  # of a job of `_sized`, three fifths of it its payload


async def _ended(
    store: Driver, id: str, outcome: Outcome, at: float, queue: str = "q", payload: bytes = b"null"
) -> None:
    claimed = await started(store, id, queue=queue, payload=payload, now=after(at))
    await record(store, claimed.hold, outcome, now=after(at))


async def _sized(store: Driver, id: str, at: float, queue: str = "q", size: int = _SIZE) -> None:
    """A completed job of so many bytes."""
    payload = size * 3 // 5
    result = Completed(b"r" * (size - payload))
    await _ended(store, id, result, at, queue, payload=b"p" * payload)


async def _left(store: Driver, *ids: str) -> list[str]:
    return [id for id in ids if await store.get(id) is not None]


def _bytes(number: int) -> Retention:
    return replace(_KEEP, completed_bytes=number)


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


@check("I16", (*_NEEDS, Capability.INSPECT))
async def the_newest_completed_jobs_are_kept_up_to_their_bytes(store: Driver) -> None:
    names = [f"job-{number}" for number in range(5)]
    for number, name in enumerate(names):
        await _sized(store, name, number)
    expect(await store.prune(_bytes(5 * _SIZE), 10, now=after(600)), 0, "pruned at the bound")
    expect(await store.prune(_bytes(3 * _SIZE), 10, now=after(600)), 2, "pruned above it")
    expect(await _left(store, *names), names[2:], "the jobs left")
    expect(await store.prune(_bytes(3 * _SIZE - 1), 10, now=after(600)), 1, "one byte above it")
    expect(await _left(store, *names), names[3:], "the jobs left then")


@check("I16", (*_NEEDS, Capability.INSPECT))
async def the_bytes_of_each_queue_are_its_completed_jobs_payloads_and_results(
    store: Driver,
) -> None:
    for number in range(3):
        await _sized(store, f"x{number}", number, "x")
    await _sized(store, "y", 5, "y", size=2 * _SIZE)
    await _ended(store, "failed", Failed(failure()), 5, "x", payload=b"p" * 9000)
    await enqueue(store, new_job("waiting", queue="x", payload=b"p" * 9000))
    expect(await store.prune(_bytes(2 * _SIZE), 10, now=after(600)), 1, "the number pruned")
    left = ["x1", "x2", "y", "failed", "waiting"]
    expect(await _left(store, "x0", *left), left, "the jobs left")


@check("I16", (*_NEEDS, Capability.INSPECT))
async def of_the_bounds_on_completed_jobs_the_one_reached_first_holds(store: Driver) -> None:
    names = [f"job-{number}" for number in range(6)]
    for number, name in enumerate(names):
        await _sized(store, name, 100 * number)
    for keep, left in (
        (Retention(completed=900.0, completed_count=5, completed_bytes=5 * _SIZE), 5),
        (Retention(completed=None, completed_count=5, completed_bytes=4 * _SIZE), 4),
        (Retention(completed=None, completed_count=3, completed_bytes=4 * _SIZE), 3),
        (Retention(completed=None, completed_count=None, completed_bytes=2 * _SIZE), 2),
        (Retention(completed=550.0, completed_count=2, completed_bytes=2 * _SIZE), 1),
    ):
        expect(await store.prune(keep, 10, now=after(1000)), 1, f"pruned with {keep}")
        expect(await _left(store, *names), names[6 - left :], f"left with {keep}")


@check("I16", _NEEDS)
async def a_job_that_is_more_than_the_bytes_goes_when_it_is_a_minute_old(store: Driver) -> None:
    await _sized(store, "large", 0)
    await _sized(store, "fresh", 30)
    expect(await store.prune(_bytes(_SIZE - 1), 10, now=after(59)), 0, "the number after 59 s")
    expect(await store.prune(_bytes(_SIZE - 1), 10, now=after(61)), 1, "the number after 61 s")
    expect(await store.prune(_bytes(0), 10, now=after(91)), 1, "the number after 91 s")


@check("I16", (*_NEEDS, Capability.INSPECT))
async def of_jobs_that_ended_together_the_later_arrival_is_the_newer(store: Driver) -> None:
    sizes = {"b": 600, "a": 300, "c": 100}
    await enqueue(store, *(new_job(id, payload=b"p" * size) for id, size in sizes.items()))
    claimed = {each.job.id: each.hold for each in await claim(store)}
    await store.record([(claimed[id], Completed()) for id in ("c", "b", "a")], now=after(1))
    expect(await store.prune(_bytes(500), 10, now=after(600)), 1, "the number pruned")
    expect(await _left(store, *sizes), ["a", "c"], "the jobs left")


@check("I16", (*_NEEDS, Capability.INSPECT))
async def what_goes_by_its_bytes_goes_oldest_first(store: Driver) -> None:
    names = [f"job-{number}" for number in range(4)]
    for number, name in enumerate(names):
        await _sized(store, name, number)
    for number in range(3):
        expect(await store.prune(_bytes(_SIZE), 1, now=after(600)), 1, "the number pruned")
        expect(await _left(store, *names), names[number + 1 :], "the jobs left")
    expect(await store.prune(_bytes(_SIZE), 1, now=after(600)), 0, "the number at the end")


@check("I16", (*_NEEDS, Capability.INSPECT, Capability.CONTROL))
async def the_bytes_of_deleted_jobs_do_not_count(store: Driver) -> None:
    for number in range(6):
        await _sized(store, f"job-{number}", number)
    await _sized(store, "other", 9, "other")
    await store.delete(["job-5", "job-1", "job-5"], now=after(600))
    expect(await store.prune(_bytes(4 * _SIZE), 10, now=after(600)), 0, "after two were deleted")
    expect(await store.purge(JobFilter(queue="other"), 10, now=after(600)), 1, "the purged")
    expect(await store.purge(JobFilter(queue="q"), 2, now=after(600)), 2, "the purged")
    expect(await store.prune(_bytes(2 * _SIZE), 10, now=after(600)), 0, "after a purge")
    await _sized(store, "other-again", 601, "other")
    await _sized(store, "job-again", 601)
    expect(await store.prune(_bytes(2 * _SIZE), 10, now=after(1200)), 1, "after another ended")


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
