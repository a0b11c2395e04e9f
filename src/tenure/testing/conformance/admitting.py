"""Checks of the jobs that a full key holds back: each has its place, and none is forgotten.

The freed places of a key go to its waiting jobs in the order of claims (I11), whatever else becomes
of those that wait: they are cancelled, deleted, moved, paused, put off.
"""

from msgspec.structs import replace

from tenure.driver import Capability, Driver
from tenure.outcomes import Cancelled, Completed, Failed, Retried, Snoozed
from tenure.standing import Limit
from tenure.states import State
from tenure.testing.conformance.builders import (
    after,
    claim,
    counted,
    enqueue,
    failure,
    ids,
    new_job,
    record,
)
from tenure.testing.conformance.check import check, expect
from tenure.testing.conformance.limiting import claimed_of, limited
from tenure.testing.conformance.random_limits import play
from tenure.types import Answer, Claim, Held, JobFilter, ManualRetry, Move, NewJob, UniqueKey

_NEEDS = (Capability.LIMITS,)
_CONTROL = (Capability.LIMITS, Capability.CONTROL)
_ONE = Limit(key="k", concurrent=1)
_TWO = Limit(key="k", concurrent=2)


async def _full(store: Driver, *waiting: NewJob) -> Claim:
    """Give the only place of `k` away; the jobs wait behind it, and a claim has seen them."""
    await store.put_limit(_ONE)
    await enqueue(store, limited("first", queue="first"))
    (running,) = await claimed_of(store, "first", queue="first", at=0)
    await enqueue(store, *waiting)
    queues = sorted({job.queue for job in waiting})
    expect(ids(await claim(store, *queues)), [], "the claim while the key is full")
    return running


async def _in_turn(store: Driver, running: Claim, *right: str, at: float) -> None:
    """End what runs and claim the next, until all these came, one by one; then nothing is left."""
    for id in right:
        await record(store, running.hold, Completed(), now=after(at))
        (running,) = await claimed_of(store, id, at=at)
    await record(store, running.hold, Completed(), now=after(at))
    await claimed_of(store, at=at)


# --- order --------------------------------------------------------------------------------------


@check("I11", _NEEDS)
async def jobs_with_and_without_limits_keep_one_order(store: Driver) -> None:
    await store.put_limit(Limit(key="k", concurrent=100))
    await store.put_limit(Limit(key="m", concurrent=100))
    names = ("k9", "k8", "u7", "m6", "k5", "both4", "u3", "m2", "k1")
    keys = {"k": ("k",), "m": ("m",), "b": ("k", "m"), "u": ()}
    jobs = [new_job(name, limits=keys[name[0]]) for name in names]
    await enqueue(store, *jobs, *(replace(job, id=f"+{job.id}", priority=1) for job in jobs))
    first = await claim(store, limit=4)
    expect(ids(first), ["+k9", "+k8", "+u7", "+m6"], "a claim of four")
    await claimed_of(store, *(f"+{name}" for name in names[4:]), *names, at=1)


@check("I11", [*_NEEDS, Capability.DELAY])
async def limited_jobs_that_are_due_earlier_go_first(store: Driver) -> None:
    await store.put_limit(Limit(key="k", concurrent=3))
    jobs = [
        replace(limited("c"), delay=3.0),
        replace(limited("a"), delay=1.0),
        new_job("u", delay=2.0),
        replace(limited("d", priority=-1), delay=0.5),
        replace(limited("b"), at=after(1.5)),
    ]
    await enqueue(store, *jobs)
    claims = await claimed_of(store, "a", "b", "u", "c", at=10)
    await record(store, claims[0].hold, Completed(), now=after(11))
    await claimed_of(store, "d", at=11)


@check("I11", _NEEDS)
async def freed_places_go_by_priority_and_then_by_arrival(store: Driver) -> None:
    keys = {"z": ("k",), "y": ("k", "m"), "x": ("k",), "w": ("k", "m"), "v": ("k",)}
    jobs = [limited(id, *names, priority=int(id == "w")) for id, names in keys.items()]
    running = await _full(store, *jobs)
    await enqueue(store, limited("t", priority=2), limited("s"), now=after(1))
    await _in_turn(store, running, "t", "w", "z", "y", "x", "v", "s", at=2)


@check("I11", _NEEDS)
async def several_places_freed_at_once_are_taken_in_order(store: Driver) -> None:
    await store.put_limit(Limit(key="k", concurrent=3))
    await enqueue(store, *(limited(f"first-{n}") for n in range(3)))
    first = await claimed_of(store, "first-0", "first-1", "first-2", at=0)
    keys = ("k", "a"), ("k",), ("b", "k"), ("k", "a"), ("k",)
    await enqueue(store, *(limited(f"{9 - n}", *names) for n, names in enumerate(keys)))
    await enqueue(store, new_job("u"))
    await claimed_of(store, "u", at=1)
    done = [(claimed.hold, Completed()) for claimed in first]
    await store.record(done, now=after(2))
    second = await claimed_of(store, "9", "8", "7", at=2)
    done = [(claimed.hold, Completed()) for claimed in second]
    await store.record(done, now=after(3))
    await claimed_of(store, "6", "5", at=3)


# --- what else becomes of those that wait -------------------------------------------------------


@check("I1", [*_CONTROL, Capability.INSPECT])
async def jobs_that_a_limit_holds_back_are_pending_like_any_other(store: Driver) -> None:
    await _full(store, *(limited(f"job-{n}") for n in range(4)))
    right = {"pending": 4}
    expect(await counted(store, after(1), "default"), right, "the counts of the queue")
    page = await store.list(JobFilter(state=State.PENDING), None, 10)
    listed = [job.id for job in page.jobs]
    expect(listed, ["job-3", "job-2", "job-1", "job-0"], "the jobs that list() shows")
    expect(await store.purge(JobFilter(queue="default"), 10, now=after(1)), 4, "the purge")
    expect(await counted(store, after(1)), {"processing": 1}, "the counts after it")


@check("claim()", _CONTROL)
async def a_cancelled_or_deleted_job_leaves_its_turn_to_the_next(store: Driver) -> None:
    running = await _full(store, *(limited(id) for id in "abcdef"))
    await store.cancel(["a"], now=after(1))
    await store.delete(["b"], now=after(1))
    await store.delete(["e"], now=after(1))
    await _in_turn(store, running, "c", "d", "f", at=2)


@check("claim()", _CONTROL)
async def a_job_removed_while_its_key_has_room_leaves_its_turn_to_the_next(store: Driver) -> None:
    running = await _full(store, *(limited(id) for id in "abcd"), limited("e", "k", "m"))
    await record(store, running.hold, Completed(), now=after(1))
    await store.cancel(["a"], now=after(1))
    await store.delete(["b"], now=after(1))
    await store.purge(JobFilter(state=State.CANCELLED), 10, now=after(1))
    (running,) = await claimed_of(store, "c", at=1)
    await record(store, running.hold, Completed(), now=after(2))
    await store.delete(["d"], now=after(2))
    await claimed_of(store, "e", at=2)


@check("claim()", [*_CONTROL, Capability.DELAY])
async def a_moved_job_leaves_its_turn_to_the_next_and_has_one_where_it_went(
    store: Driver,
) -> None:
    running = await _full(store, *(limited(id) for id in "abcdef"))
    moves = (
        Move(job_id="a", queue="x"),
        Move(job_id="b", at=after(100)),
        Move(job_id="e", priority=1),
        Move(job_id="d", at=after(-5)),
    )
    await store.move(moves, now=after(1))
    await _in_turn(store, running, "e", "d", "c", "f", at=2)
    (running,) = await claimed_of(store, "a", queue="x", at=3)
    await claimed_of(store, at=100)
    await record(store, running.hold, Completed(), now=after(100))
    await claimed_of(store, "b", at=100)


@check("claim()", [*_CONTROL, Capability.DELAY])
async def a_job_moved_out_of_reach_while_its_key_has_room_frees_the_turn(store: Driver) -> None:
    running = await _full(store, *(limited(id) for id in "ab"), limited("c", "k", "m"))
    await record(store, running.hold, Completed(), now=after(1))
    await store.move([Move(job_id="a", at=after(50)), Move(job_id="b", queue="x")], now=after(1))
    (running,) = await claimed_of(store, "c", at=1)
    await record(store, running.hold, Completed(), now=after(2))
    await claimed_of(store, "b", queue="x", at=2)
    await claimed_of(store, at=50)


@check("claim()", _CONTROL)
async def an_ended_job_that_is_retried_has_a_turn_again(store: Driver) -> None:
    running = await _full(store, *(limited(id) for id in "abcd"))
    await store.cancel(["a"], now=after(1))
    await record(store, running.hold, Completed(), now=after(1))
    (running,) = await claimed_of(store, "b", at=1)
    await record(store, running.hold, Failed(failure()), now=after(2))
    (running,) = await claimed_of(store, "c", at=2)
    retries = [ManualRetry("b"), ManualRetry("a")]
    expect(list(await store.retry(retries, now=after(3))), 2 * [Answer.DONE], "the retries")
    await claimed_of(store, at=3)
    await record(store, running.hold, Completed(), now=after(4))
    (running,) = await claimed_of(store, "d", at=4)
    await record(store, running.hold, Cancelled("asked"), now=after(5))
    (running,) = await claimed_of(store, "a", at=5)
    await record(store, running.hold, Completed(), now=after(6))
    await claimed_of(store, "b", at=6)


@check("claim()", [*_NEEDS, Capability.DELAY])
async def a_job_that_is_put_off_leaves_its_turn_to_the_next(store: Driver) -> None:
    running = await _full(store, *(limited(id) for id in "abc"))
    await record(store, running.hold, Completed(), now=after(1))
    (running,) = await claimed_of(store, "a", at=1)
    await record(store, running.hold, Retried(50.0, failure()), now=after(2))
    (running,) = await claimed_of(store, "b", at=2)
    await record(store, running.hold, Snoozed(20.0), now=after(3))
    (running,) = await claimed_of(store, "c", at=3)
    await claimed_of(store, at=22)
    await record(store, running.hold, Completed(), now=after(22))
    await claimed_of(store, at=22.999)
    (running,) = await claimed_of(store, "b", at=23)
    await claimed_of(store, at=52)
    await record(store, running.hold, Completed(), now=after(53))
    await claimed_of(store, "a", at=53)


@check("claim()", [*_NEEDS, Capability.DELAY])
async def a_scheduled_job_of_a_key_holds_back_none_that_is_due(store: Driver) -> None:
    await store.put_limit(_TWO)
    later = replace(limited("later", priority=9), delay=60.0)
    await enqueue(store, later, limited("a"), replace(limited("b"), delay=5.0))
    (running,) = await claimed_of(store, "a", at=0)
    (other,) = await claimed_of(store, "b", at=5)
    await claimed_of(store, at=60)
    await enqueue(store, limited("c"), now=after(61))
    await record(store, other.hold, Completed(), now=after(61))
    await claimed_of(store, "later", at=61)
    await record(store, running.hold, Completed(), now=after(62))
    await claimed_of(store, "c", at=62)


@check("claim()", [*_NEEDS, Capability.UNIQUE, Capability.DELAY])
async def a_job_that_a_dispatch_put_off_leaves_its_turn_to_the_next(store: Driver) -> None:
    unique = UniqueKey(key="u", mode="replace")
    running = await _full(store, replace(limited("a"), unique=unique), limited("b"), limited("c"))
    for at, delay in ((1, 100.0), (2, 200.0)):
        other = replace(limited("d"), delay=delay, unique=unique)
        expect(list(await store.enqueue([other], now=after(at))), [Held("a")], "the answer")
    await record(store, running.hold, Completed(), now=after(3))
    (running,) = await claimed_of(store, "b", at=3)
    sooner = replace(limited("d"), payload=b"2", unique=unique)
    await store.enqueue([sooner], now=after(4))
    await record(store, running.hold, Completed(), now=after(5))
    (running,) = await claimed_of(store, "c", at=5)
    await record(store, running.hold, Completed(), now=after(6))
    (last,) = await claimed_of(store, "a", at=6)
    expect(last.job.payload, b"2", "the payload of the last")


@check("claim()", _CONTROL)
async def a_paused_queue_swallows_no_place(store: Driver) -> None:
    jobs = [limited(f"{queue}{n}", queue=queue) for n in range(2) for queue in ("p", "q")]
    running = await _full(store, *jobs)
    await store.pause("p", True)
    await record(store, running.hold, Completed(), now=after(1))
    claims = await claim(store, "p", "q", now=after(1))
    expect(ids(claims), ["q0"], "the claim from both queues")
    await store.pause("p", False)
    await record(store, claims[0].hold, Completed(), now=after(2))
    claims = await claim(store, "p", "q", now=after(2))
    expect(ids(claims), ["p0"], "the claim after the resume")


@check("claim()", _NEEDS)
async def a_queue_that_nobody_serves_swallows_no_place(store: Driver) -> None:
    await store.put_limit(_TWO)
    jobs = [limited(f"{queue}{n}", queue=queue) for n in range(4) for queue in ("p", "q")]
    await enqueue(store, *jobs)
    running = await claimed_of(store, "p0", "p1", queue="p", at=0)
    expect(ids(await claim(store, "q", "p", now=after(1))), [], "while the key is full")
    done = [(claimed.hold, Completed()) for claimed in running]
    await store.record(done, now=after(2))
    running = await claimed_of(store, "q0", "q1", queue="q", at=2)
    await record(store, running[0].hold, Completed(), now=after(3))
    await claimed_of(store, "q2", queue="q", at=3)
    await record(store, running[1].hold, Completed(), now=after(4))
    await claimed_of(store, "p2", queue="p", at=4)


@check("claim()", _NEEDS)
async def many_sets_of_keys_share_the_places_of_one(store: Driver) -> None:
    running = await _full(store, *(limited(f"{n:02}", "k", f"own-{n}") for n in range(30)))
    await store.put_limit(Limit(key="own-*", concurrent=1))
    await _in_turn(store, running, *(f"{n:02}" for n in range(30)), at=1)


@check("claim()", _NEEDS)
async def a_job_held_back_by_one_key_leaves_the_places_of_its_others(store: Driver) -> None:
    await store.put_limit(_ONE)
    await store.put_limit(Limit(key="m", concurrent=1))
    await enqueue(store, limited("of-k", "k"), limited("of-m", "m"))
    of_k, of_m = await claimed_of(store, "of-k", "of-m", at=0)
    await enqueue(store, limited("a", "k", "m"), limited("b", "k"), limited("c", "m"))
    await claimed_of(store, at=1)
    await record(store, of_k.hold, Completed(), now=after(2))
    (of_k,) = await claimed_of(store, "b", at=2)
    await record(store, of_m.hold, Completed(), now=after(3))
    (of_m,) = await claimed_of(store, "c", at=3)
    await record(store, of_k.hold, Completed(), now=after(4))
    await claimed_of(store, at=4)
    await record(store, of_m.hold, Completed(), now=after(5))
    await claimed_of(store, "a", at=5)


# --- anything at all ----------------------------------------------------------------------------

_EVERYTHING = (
    Capability.LIMITS,
    Capability.CONTROL,
    Capability.DELAY,
    Capability.RELEASE,
    Capability.RECLAIM,
)


@check("I11", _EVERYTHING)
async def whatever_happens_to_limited_jobs_each_claim_is_right_and_none_is_forgotten(
    store: Driver,
) -> None:
    await play(store, seed=1, steps=300)


@check("next_due()", [*_EVERYTHING, Capability.NEXT_DUE])
async def whatever_happens_to_limited_jobs_next_due_is_never_too_late(store: Driver) -> None:
    await play(store, seed=2, steps=150, asking=True)
