"""Checks of limits on what runs at once: a key never has more current holds than its limit allows.

Rates are in `pacing.py`; what becomes of the jobs that were passed over in `admitting.py`.
"""

import asyncio

from tenure.driver import Capability, Driver
from tenure.outcomes import Completed, Failed, Outcome, Released, Retried, Snoozed
from tenure.standing import Limit
from tenure.testing.conformance.builders import (
    LEASE,
    T0,
    after,
    claim,
    claim_one,
    enqueue,
    failure,
    ids,
    new_job,
    record,
    request,
    stored,
)
from tenure.testing.conformance.check import check, expect, expect_that
from tenure.testing.conformance.recording import ENDS
from tenure.types import Claim, JobFilter, NewJob, QueueLimit, Recorded, Retention

__all__ = ["claimed_of", "limited"]

_NEEDS = (Capability.LIMITS,)
_ONE = Limit(key="k", concurrent=1)
_TWO = Limit(key="k", concurrent=2)


def limited(id: str, *keys: str, queue: str = "default", priority: int = 0) -> NewJob:
    """A job that names these keys, or `k`."""
    return new_job(id, queue=queue, priority=priority, limits=keys or ("k",))


async def claimed_of(store: Driver, *right: str, at: float, queue: str = "default") -> list[Claim]:
    """Claim from the queue all there is, which must be those jobs in that order."""
    claims = await claim(store, queue, now=after(at))
    expect(ids(claims), list(right), f"the claim from {queue!r} after {at} s")
    return list(claims)


async def _completed(store: Driver, *claims: Claim, at: float) -> None:
    for claimed in claims:
        await record(store, claimed.hold, Completed(), now=after(at))


# --- how many at once ---------------------------------------------------------------------------


@check("claim()", _NEEDS)
async def a_full_key_lets_no_further_job_be_claimed(store: Driver) -> None:
    await store.put_limit(_ONE)
    await enqueue(store, *(limited(id) for id in "cba"))
    for number, id in enumerate("cba"):
        running = await claimed_of(store, id, at=number)
        await claimed_of(store, at=number)
        await _completed(store, *running, at=number)
    await claimed_of(store, at=9)


@check("claim()", _NEEDS)
async def one_claim_takes_no_more_than_is_left_of_a_key(store: Driver) -> None:
    await store.put_limit(Limit(key="k", concurrent=3))
    await enqueue(store, *(limited(f"job-{n}") for n in range(6)))
    first = await claim(store, QueueLimit("default", 2))
    expect(ids(first), ["job-0", "job-1"], "the claim of two")
    await claimed_of(store, "job-2", at=1)
    await claimed_of(store, at=2)
    await _completed(store, *first, at=3)
    await claimed_of(store, "job-3", "job-4", at=3)


@check("claim()", _NEEDS)
async def a_key_is_counted_over_queues_names_and_workers(store: Driver) -> None:
    await store.put_limit(_TWO)
    for queue in ("x", "y", "z"):
        job = new_job(queue, name=f"of-{queue}", queue=queue, limits=("k",))
        await enqueue(store, job)
    claims = await claim(store, "y", "z", "x", now=after(1), worker="one")
    expect(ids(claims), ["y", "z"], "one claim from three queues")
    expect(ids(await claim(store, "x", now=after(1), worker="two")), [], "another worker's claim")
    await _completed(store, claims[0], at=2)
    expect(ids(await claim(store, "x", now=after(2), worker="two")), ["x"], "when one has ended")


@check("claim()", _NEEDS)
async def several_workers_claiming_at_once_keep_to_a_limit(store: Driver) -> None:
    """One claim may pass over what another has locked: together they may take less, or others."""
    await store.put_limit(Limit(key="k", concurrent=3))
    await enqueue(store, *(limited(f"{n:02}") for n in range(18)))
    served: list[str] = []
    for number in range(6):
        answers = await asyncio.gather(*(claim(store, now=after(number)) for _ in range(4)))
        claims = [claimed for answer in answers for claimed in answer]
        expect_that(len(claims) <= 3, f"four claims at once took {ids(claims)} of a limit of 3")
        claims += await claim(store, now=after(number))
        expect(len(claims), 3, "how many run after one more claim")
        await _completed(store, *claims, at=number)
        served += ids(claims)
    expect(sorted(served), [f"{n:02}" for n in range(18)], "what was served in the end")


@check("claim()", _NEEDS)
async def a_job_is_passed_over_while_one_of_its_keys_is_full(store: Driver) -> None:
    await store.put_limit(_ONE)
    await store.put_limit(Limit(key="m", concurrent=1))
    await enqueue(store, limited("a", "k"), limited("b", "k", "m"), limited("c", "m"))
    one, other = await claimed_of(store, "a", "c", at=0)
    await _completed(store, one, at=1)
    await claimed_of(store, at=1)
    await _completed(store, other, at=2)
    both = await claimed_of(store, "b", at=2)
    await enqueue(store, limited("d", "k"), limited("e", "m"), limited("f", "n"), now=after(3))
    await claimed_of(store, "f", at=3)
    await _completed(store, *both, at=4)
    await claimed_of(store, "d", "e", at=4)


@check("claim()", _NEEDS)
async def jobs_that_name_no_full_key_are_claimed_past_those_that_do(store: Driver) -> None:
    await store.put_limit(_ONE)
    await enqueue(store, *(limited(f"limited-{n}", priority=1) for n in range(50)))
    await enqueue(store, new_job("free-1"), limited("free-2", "of no limit"), new_job("free-3"))
    await claimed_of(store, "limited-0", "free-1", "free-2", "free-3", at=0)
    await enqueue(store, new_job("free-4"), now=after(1))
    await claimed_of(store, "free-4", at=1)


@check("claim()", _NEEDS)
async def a_job_that_is_passed_over_counts_against_no_bound_of_a_claim(store: Driver) -> None:
    await store.put_limit(_ONE)
    await enqueue(store, limited("a"), new_job("big", payload=b"8" * 1000, limits=("k",)))
    await claim_one(store)
    jobs = [new_job(f"free-{n}", payload=b"12345") for n in range(4)]
    await enqueue(store, *jobs, now=after(1))
    two = await claim(store, now=after(1), max_bytes=10)
    expect(ids(two), ["free-0", "free-1"], "the claim of ten bytes")
    one = await claim(store, QueueLimit("default", 1), now=after(1))
    expect(ids(one), ["free-2"], "the claim of one job of the queue")
    expect(ids(await claim(store, now=after(1), limit=1)), ["free-3"], "the claim of one job")


# --- what gives a place back --------------------------------------------------------------------


@check("claim()", _NEEDS)
async def every_outcome_gives_the_place_back_once(store: Driver) -> None:
    await store.put_limit(_ONE)
    outcomes: tuple[Outcome, ...] = (*ENDS, Retried(0.0, failure()), Snoozed(0.0))
    await enqueue(store, *(limited(f"job-{n}") for n in range(len(outcomes) + 2)))
    for number, outcome in enumerate(outcomes):
        (running,) = await claimed_of(store, f"job-{number}", at=number)
        await record(store, running.hold, outcome, now=after(number))
        again = Recorded.REPEATED
        await record(store, running.hold, outcome, now=after(number), answer=again)
    await claimed_of(store, f"job-{len(outcomes)}", at=50)
    await claimed_of(store, at=51)


@check("claim()", [*_NEEDS, Capability.RELEASE])
async def a_release_gives_the_place_back(store: Driver) -> None:
    await store.put_limit(_ONE)
    await enqueue(store, limited("a"), limited("b"))
    (running,) = await claimed_of(store, "a", at=0)
    await record(store, running.hold, Released("shutdown"), now=after(1))
    (running,) = await claimed_of(store, "a", at=1)
    await record(store, running.hold, Released("unknown", 0.0), now=after(2))
    await claimed_of(store, "b", at=2)


@check("claim()", [*_NEEDS, Capability.RECLAIM])
async def a_reclaim_gives_the_place_back_once(store: Driver) -> None:
    await store.put_limit(_ONE)
    await enqueue(store, limited("a"), limited("b"), limited("c"))
    (lost,) = await claimed_of(store, "a", at=0)
    await claimed_of(store, at=LEASE * 2)
    await store.reclaim(10, [0.0], now=after(LEASE * 2))
    (running,) = await claimed_of(store, "b", at=LEASE * 2)
    await record(store, lost.hold, Completed(), now=after(61), answer=Recorded.FENCED)
    await record(store, lost.hold, Failed(failure()), now=after(61), answer=Recorded.FENCED)
    await claimed_of(store, at=62)
    await store.reclaim(10, [0.0], now=after(63))
    await claimed_of(store, at=63)
    await _completed(store, running, at=64)
    await claimed_of(store, "c", at=64)


@check("claim()", [*_NEEDS, Capability.CONTROL])
async def a_wish_to_cancel_gives_the_place_back_when_it_is_fulfilled(store: Driver) -> None:
    await store.put_limit(_ONE)
    await enqueue(store, limited("a"), limited("b"))
    (running,) = await claimed_of(store, "a", at=0)
    await store.cancel(["a"], now=after(1))
    await claimed_of(store, at=1)
    await record(store, running.hold, Retried(0.0, failure()), now=after(2))
    await claimed_of(store, "b", at=2)


@check("claim()", [*_NEEDS, Capability.PRUNE])
async def a_prune_forgets_no_hold(store: Driver) -> None:
    await store.put_limit(_TWO)
    await enqueue(store, *(limited(id) for id in "abc"))
    done, running = await claimed_of(store, "a", "b", at=0)
    await _completed(store, done, at=1)
    nothing = Retention(completed=0.0, failed=0.0, cancelled=0.0)
    expect(await store.prune(nothing, 10, now=after(1000)), 1, "the number pruned")
    await enqueue(store, limited("d"), now=after(1000))
    (other,) = await claimed_of(store, "c", at=1000)
    await _completed(store, running, other, at=1001)
    await claimed_of(store, "d", at=1001)


@check("exchange()", [*_NEEDS, Capability.EXCHANGE])
async def an_exchange_takes_the_place_that_it_gives_back(store: Driver) -> None:
    await store.put_limit(_ONE)
    await enqueue(store, limited("a"), limited("b"), limited("c"))
    (running,) = await claimed_of(store, "a", at=0)
    answer = await store.exchange([(running.hold, Completed())], request(), now=after(1))
    expect(ids(answer.claims), ["b"], "the claims of the exchange")
    answer = await store.exchange([(running.hold, Completed())], request(), now=after(2))
    expect(ids(answer.claims), [], "those of one that repeats the outcome")


@check("I14", _NEEDS)
async def a_repeated_claim_counts_its_holds_once(store: Driver) -> None:
    await store.put_limit(_TWO)
    await enqueue(store, *(limited(id) for id in "abcd"))
    first = await claim(store, limit=2, token="token")
    for at in (1, 2):
        again = await claim(store, limit=2, token="token", again=True, now=after(at))
        expect([c.hold for c in again], [c.hold for c in first], "the holds of the repeat")
    more = await claim(store, limit=4, token="token", again=True, now=after(3))
    expect(ids(more), ["a", "b"], "a repeat with room for more, but not of the key")
    await _completed(store, *first, at=4)
    await claimed_of(store, "c", "d", at=4)


# --- which limit governs a key ------------------------------------------------------------------


@check("put_limit()", _NEEDS)
async def a_limit_on_a_beginning_gives_each_key_a_limit_of_its_own(store: Driver) -> None:
    await store.put_limit(Limit(key="of-*", concurrent=1))
    for key in ("of-a", "of-b", "of-", "Of-a", "o", "x-of-a"):
        await enqueue(store, limited(f"{key} 1", key), limited(f"{key} 2", key))
    right = ["of-a 1", "of-b 1", "of- 1", "Of-a 1", "Of-a 2", "o 1", "o 2", "x-of-a 1", "x-of-a 2"]
    claims = await claimed_of(store, *right, at=0)
    await _completed(store, claims[1], at=1)
    await claimed_of(store, "of-b 2", at=1)


@check("put_limit()", _NEEDS)
async def the_key_itself_governs_before_the_longest_beginning(store: Driver) -> None:
    for key, concurrent in (("a*", 2), ("*", 4), ("ab", 1), ("abc*", 3)):
        await store.put_limit(Limit(key=key, concurrent=concurrent))
    for key in ("ab", "abc", "abcd", "abd", "a", "x"):
        await enqueue(store, *(limited(f"{key}{n}", key) for n in range(6)))
    claims = await claim(store)
    seen = {key: sum(c.job.limits == (key,) for c in claims) for key in ("ab", "abc", "abcd")}
    expect(seen, {"ab": 1, "abc": 3, "abcd": 3}, "how many were claimed of each key")
    seen = {key: sum(c.job.limits == (key,) for c in claims) for key in ("abd", "a", "x")}
    expect(seen, {"abd": 2, "a": 2, "x": 4}, "how many of each of the others")


@check("put_limit()", _NEEDS)
async def keys_of_limits_are_text_and_no_patterns(store: Driver) -> None:
    await store.put_limit(Limit(key="%_[a-z].?\\*", concurrent=1))
    await store.put_limit(Limit(key="\u00e9", concurrent=1))
    keys = "%_[a-z].?\\1", "x_b.?\\1", "%_a.?\\1", "%_[a-z]", "e\u0301", "\u00e9"
    for key in keys:
        await enqueue(store, limited(f"{key} 1", key), limited(f"{key} 2", key))
    once, *twice, last = keys
    right = [f"{once} 1", *(f"{key} {n}" for key in twice for n in (1, 2)), f"{last} 1"]
    await claimed_of(store, *right, at=0)


@check("limits()", _NEEDS)
async def limits_are_sorted_by_key_and_come_back_as_they_were_put(store: Driver) -> None:
    expect(list(await store.limits()), [], "the limits of a new store")
    keys = ["b", "a*", "B", "a", "*", "\u00e9", "a-", "10", "9"]
    limits = [Limit(key=key, concurrent=n + 1) for n, key in enumerate(keys)]
    limits += [Limit(key="rate", per_second=5), Limit(key="both", per_second=7, concurrent=3)]
    for limit in limits:
        await store.put_limit(limit)
    right = sorted(limits, key=lambda limit: limit.key)
    expect(list(await store.limits()), right, "the limits")
    await store.put_limit(Limit(key="both", concurrent=4))
    right[right.index(limits[-1])] = Limit(key="both", concurrent=4)
    expect(list(await store.limits()), right, "the limits when one was put again")
    answers = [await store.drop_limit(key) for key in ("a", "nobody", "a")]
    expect(answers, [True, False, False], "the answers to drops")
    right.remove(Limit(key="a", concurrent=4))
    expect(list(await store.limits()), right, "the limits when one was dropped")


@check("I10", [*_NEEDS, Capability.INSPECT])
async def the_keys_of_a_job_come_back_as_they_were_given(store: Driver) -> None:
    many = tuple(sorted(f"key-{n}" for n in range(12)))
    given = [(), ("k",), ("a", "b"), ("%_*", "l" * 200, "\u00e9\u65e5"), many]
    await enqueue(store, *(new_job(f"job-{n}", limits=keys) for n, keys in enumerate(given)))
    seen = [(await stored(store, f"job-{n}")).limits for n in range(len(given))]
    expect(seen, given, "the keys that get() shows")
    expect([c.job.limits for c in await claim(store)], given, "those that the claims carry")
    page = await store.list(JobFilter(), None, 100)
    expect([job.limits for job in reversed(page.jobs)], given, "those that list() shows")


# --- limits that change -------------------------------------------------------------------------


@check("put_limit()", _NEEDS)
async def a_limit_counts_the_holds_that_were_there_before_it(store: Driver) -> None:
    await enqueue(store, *(limited(id) for id in "abcdef"))
    claims = [await claim_one(store, now=T0) for _ in range(3)]
    await store.put_limit(_TWO)
    await claimed_of(store, at=1)
    await _completed(store, claims[0], at=2)
    await claimed_of(store, at=2)
    await _completed(store, claims[1], at=3)
    await claimed_of(store, "d", at=3)
    await claimed_of(store, at=4)


@check("put_limit()", _NEEDS)
async def a_lowered_limit_lets_holds_go_on(store: Driver) -> None:
    await store.put_limit(Limit(key="k", concurrent=3))
    await enqueue(store, *(limited(id) for id in "abcde"))
    claims = await claimed_of(store, "a", "b", "c", at=0)
    await store.put_limit(_ONE)
    for claimed in claims:
        await claimed_of(store, at=1)
        await _completed(store, claimed, at=1)
    await claimed_of(store, "d", at=2)


@check("put_limit()", _NEEDS)
async def a_raised_or_dropped_limit_acts_from_the_next_claim_on(store: Driver) -> None:
    await store.put_limit(_ONE)
    await enqueue(store, *(limited(id) for id in "abcdefg"))
    await claimed_of(store, "a", at=0)
    await claimed_of(store, at=1)
    await store.put_limit(Limit(key="k", concurrent=3))
    await claimed_of(store, "b", "c", at=1)
    await claimed_of(store, at=2)
    expect(await store.drop_limit("k"), True, "the answer of drop_limit")
    await claimed_of(store, "d", "e", "f", "g", at=2)


@check("put_limit()", _NEEDS)
async def a_change_of_which_limit_governs_acts_from_the_next_claim_on(store: Driver) -> None:
    await store.put_limit(Limit(key="k", concurrent=1))
    await store.put_limit(Limit(key="*", concurrent=3))
    await enqueue(store, *(limited(id) for id in "abcdefg"))
    await claimed_of(store, "a", at=0)
    await claimed_of(store, at=1)
    await store.drop_limit("k")
    await claimed_of(store, "b", "c", at=1)
    await claimed_of(store, at=2)
    await store.put_limit(Limit(key="k*", concurrent=4))
    await claimed_of(store, "d", at=2)
    await claimed_of(store, at=3)
    await store.put_limit(Limit(key="k", concurrent=1))
    await store.drop_limit("k*")
    await store.drop_limit("*")
    await claimed_of(store, at=4)
