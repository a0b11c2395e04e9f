"""Checks of rates: in any one second a key has no more claims than its limit allows."""

from datetime import datetime

from tenure.driver import Capability, Driver
from tenure.outcomes import Completed, Retried
from tenure.standing import Limit
from tenure.testing.conformance.builders import (
    after,
    claim,
    claim_one,
    enqueue,
    failure,
    ids,
    new_job,
    record,
)
from tenure.testing.conformance.check import check, expect, expect_that
from tenure.testing.conformance.limiting import claimed_of, limited
from tenure.types import Retention

_NEEDS = (Capability.LIMITS,)
_NEXT_DUE = (Capability.LIMITS, Capability.NEXT_DUE)
_ONE = Limit(key="k", per_second=1)
_TWO = Limit(key="k", per_second=2)


@check("claim()", _NEEDS)
async def a_claim_takes_what_a_rate_allows_in_a_second(store: Driver) -> None:
    await store.put_limit(Limit(key="k", per_second=3))
    await enqueue(store, *(limited(f"job-{n}") for n in range(8)))
    await claimed_of(store, "job-0", "job-1", "job-2", at=0)
    await claimed_of(store, at=0)
    await claimed_of(store, at=0.999)
    await claimed_of(store, "job-3", "job-4", "job-5", at=1)
    await claimed_of(store, at=1.999)
    await claimed_of(store, "job-6", "job-7", at=60)


@check("claim()", _NEEDS)
async def in_any_one_second_there_are_no_more_claims_than_a_rate_allows(store: Driver) -> None:
    await store.put_limit(_TWO)
    await enqueue(store, *(limited(f"job-{n}") for n in range(9)))
    for at, right in (
        (0.0, ["job-0", "job-1"]),
        (0.75, []),
        (1.0, ["job-2", "job-3"]),
        (3.0, ["job-4"]),
        (3.5, ["job-5"]),
        (3.999, []),
        (4.0, ["job-6"]),
        (4.25, []),
        (4.5, ["job-7"]),
        (4.999, []),
        (5.0, ["job-8"]),
    ):
        claims = await claim(store, limit=2 if at != 3.0 else 1, now=after(at))
        expect(ids(claims), right, f"the claim after {at} s")


@check("claim()", _NEEDS)
async def a_claim_counts_for_its_second_though_its_hold_has_ended(store: Driver) -> None:
    await store.put_limit(_TWO)
    await enqueue(store, *(limited(f"job-{n}") for n in range(4)))
    done, again = await claimed_of(store, "job-0", "job-1", at=0)
    await record(store, done.hold, Completed(), now=after(0.1))
    await record(store, again.hold, Retried(0.0, failure()), now=after(0.1))
    await claimed_of(store, at=0.5)
    await claimed_of(store, "job-2", "job-3", at=1)
    await claimed_of(store, "job-1", at=2)


@check("claim()", _NEEDS)
async def a_rate_bounds_claims_and_not_what_runs(store: Driver) -> None:
    await store.put_limit(_ONE)
    await enqueue(store, *(limited(f"job-{n}") for n in range(5)))
    for number in range(5):
        await claimed_of(store, f"job-{number}", at=number)


@check("claim()", _NEEDS)
async def a_rate_is_one_for_all_queues_and_workers(store: Driver) -> None:
    await store.put_limit(_TWO)
    await enqueue(store, *(limited(queue, queue=queue) for queue in ("x", "y", "z")))
    claims = await claim(store, "z", "x", "y", worker="one")
    expect(ids(claims), ["z", "x"], "one claim from three queues")
    expect(ids(await claim(store, "y", worker="two", now=after(0.5))), [], "another worker's")
    expect(ids(await claim(store, "y", worker="two", now=after(1))), ["y"], "its claim later")


@check("claim()", _NEEDS)
async def a_rate_on_a_beginning_counts_each_key_apart(store: Driver) -> None:
    await store.put_limit(Limit(key="to-*", per_second=1))
    for key in ("to-a", "to-b"):
        await enqueue(store, *(limited(f"{key} {n}", key) for n in range(3)))
    await claimed_of(store, "to-a 0", "to-b 0", at=0)
    await enqueue(store, limited("both", "to-a", "to-b", priority=1), now=after(0.5))
    await claimed_of(store, "both", at=1)
    await claimed_of(store, at=1.5)
    await claimed_of(store, "to-a 1", "to-b 1", at=2)


@check("claim()", _NEEDS)
async def jobs_of_a_rate_and_others_keep_one_order(store: Driver) -> None:
    await store.put_limit(_TWO)
    jobs = [new_job("u0"), limited("k1"), new_job("u2"), limited("k3"), limited("k4")]
    await enqueue(store, *jobs, new_job("u5"), limited("first", priority=1))
    await claimed_of(store, "first", "u0", "k1", "u2", "u5", at=0)
    await enqueue(store, new_job("u6"), now=after(1))
    await claimed_of(store, "k3", "k4", "u6", at=1)


@check("claim()", _NEEDS)
async def both_bounds_of_a_limit_hold(store: Driver) -> None:
    await store.put_limit(Limit(key="k", per_second=2, concurrent=3))
    await enqueue(store, *(limited(f"job-{n}") for n in range(8)))
    first = await claimed_of(store, "job-0", "job-1", at=0)
    await claimed_of(store, "job-2", at=1)
    await claimed_of(store, at=2)
    done = [(claimed.hold, Completed()) for claimed in first]
    await store.record(done, now=after(2))
    await claimed_of(store, "job-3", "job-4", at=2)
    await claimed_of(store, at=2.5)
    await claimed_of(store, at=60)


@check("I14", _NEEDS)
async def a_repeated_claim_counts_once_for_a_rate(store: Driver) -> None:
    await store.put_limit(_TWO)
    await enqueue(store, *(limited(f"job-{n}") for n in range(5)))
    first = await claim(store, limit=1, token="token")
    for at in (0.1, 0.2, 0.9):
        again = await claim(store, limit=1, token="token", again=True, now=after(at))
        expect([c.hold for c in again], [c.hold for c in first], f"the repeat after {at} s")
    await claimed_of(store, "job-1", at=0.9)
    await claimed_of(store, "job-2", at=1)
    await claimed_of(store, at=1.5)


@check("put_limit()", _NEEDS)
async def a_changed_rate_acts_from_the_next_claim_on(store: Driver) -> None:
    await store.put_limit(_TWO)
    await enqueue(store, *(limited(f"job-{n}") for n in range(9)))
    await claimed_of(store, "job-0", "job-1", at=0)
    await store.put_limit(Limit(key="k", per_second=3))
    await claimed_of(store, "job-2", at=0.25)
    await claimed_of(store, at=0.5)
    await store.put_limit(_ONE)
    await claimed_of(store, at=1)
    await claimed_of(store, "job-3", at=1.25)
    expect(await store.drop_limit("k"), True, "the answer of drop_limit")
    await claimed_of(store, *(f"job-{n}" for n in range(4, 9)), at=1.25)


@check("claim()", _NEEDS)
async def a_claim_of_the_far_future_holds_no_rate(store: Driver) -> None:
    """As a clock that was set back leaves one."""
    await store.put_limit(_ONE)
    await enqueue(store, limited("a"), limited("b"), limited("c"))
    await claimed_of(store, "a", at=3600)
    await claimed_of(store, "b", at=1)
    await claimed_of(store, at=1.5)
    await claimed_of(store, "c", at=2)


@check("claim()", [*_NEEDS, Capability.PRUNE])
async def a_prune_forgets_no_claim_of_the_last_second(store: Driver) -> None:
    await store.put_limit(_ONE)
    await enqueue(store, limited("a"), limited("b"))
    await claimed_of(store, "a", at=0)
    await store.prune(Retention(), 10, now=after(0.5))
    await claimed_of(store, at=0.75)
    await claimed_of(store, "b", at=1)


@check("claim()", [*_NEEDS, Capability.RECLAIM])
async def a_reclaim_gives_no_claim_of_a_rate_back(store: Driver) -> None:
    await store.put_limit(_ONE)
    await enqueue(store, limited("a"), limited("b"))
    await claim_one(store, lease=0.25)
    await store.reclaim(10, [0.0], now=after(0.5))
    await claimed_of(store, at=0.75)
    await claimed_of(store, "b", at=1)


# --- next_due -----------------------------------------------------------------------------------


async def _due(store: Driver, *queues: str, at: float) -> datetime | None:
    return await store.next_due(queues or ("default",), now=after(at))


async def _due_by(store: Driver, latest: float, *, at: float) -> None:
    """`next_due` is later than now, and not later than that."""
    due = await _due(store, at=at)
    held = due is not None and after(at) < due <= after(latest)
    finding = f"next_due after {at} s: expected at most {after(latest)} and later, got {due}"
    expect_that(held, finding)


@check("next_due()", _NEXT_DUE)
async def next_due_knows_when_a_rate_lets_a_job_through(store: Driver) -> None:
    await store.put_limit(_TWO)
    await enqueue(store, *(limited(f"job-{n}") for n in range(4)))
    await claim_one(store, now=after(0.25))
    await claim_one(store, now=after(0.75))
    await claimed_of(store, at=0.75)
    await _due_by(store, 1.25, at=0.75)
    await claimed_of(store, "job-2", at=1.25)
    await _due_by(store, 1.75, at=1.25)
    expect(await _due(store, "other", at=1.25), None, "next_due of another queue")
    await claimed_of(store, "job-3", at=1.75)
    expect(await _due(store, at=1.75), None, "next_due when none waits")


@check("next_due()", [*_NEXT_DUE, Capability.DELAY])
async def next_due_is_the_earlier_of_a_due_time_and_a_rate(store: Driver) -> None:
    await store.put_limit(_ONE)
    await enqueue(store, limited("a"), limited("b"), new_job("u", delay=0.5))
    await claimed_of(store, "a", at=0)
    await _due_by(store, 0.5, at=0.25)
    await claimed_of(store, "u", at=0.5)
    await _due_by(store, 1, at=0.5)
    await enqueue(store, new_job("later", delay=60.0), now=after(0.75))
    await _due_by(store, 1, at=0.75)
    await claimed_of(store, "b", at=1)
    expect(await _due(store, at=1), after(60.75), "next_due when only the later one waits")


@check("next_due()", [*_NEXT_DUE, Capability.CONTROL])
async def next_due_of_a_rate_passes_over_paused_queues(store: Driver) -> None:
    await store.put_limit(_ONE)
    await enqueue(store, limited("a"), limited("b"), limited("c"))
    await claimed_of(store, "a", at=0)
    await store.pause("default", True)
    expect(await _due(store, at=0.5), None, "next_due while the queue is paused")
    await store.pause("default", False)
    await _due_by(store, 1, at=0.5)
