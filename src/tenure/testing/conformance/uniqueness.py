"""Checks of I8: a unique key is held by one job that has not ended, or by nobody.

Keys until the start, for a period and of manual retries are in `holding.py`; what a refused
dispatch does to the holder, and throttles, in `refusing.py`.
"""

import asyncio

from tenure.driver import Capability, Driver
from tenure.outcomes import Completed, Failed, Outcome, Released, Retried, Snoozed
from tenure.testing.conformance.builders import (
    LEASE,
    T0,
    after,
    claim,
    claim_one,
    counted,
    dispatch,
    enqueue,
    failure,
    ids,
    new_job,
    record,
    started,
    stored,
)
from tenure.testing.conformance.check import check, expect
from tenure.testing.conformance.recording import ENDS
from tenure.types import (
    Answer,
    Enqueued,
    Held,
    JobFilter,
    Move,
    NewJob,
    Recorded,
    Retention,
    UniqueKey,
)

__all__ = ["keyed", "refused"]

_NEEDS = (Capability.UNIQUE,)
_CONTROL = (Capability.UNIQUE, Capability.CONTROL)
_K = UniqueKey(key="k")


def keyed(id: str, key: str = "k", *, queue: str = "default") -> NewJob:
    """A job that holds a key until it is done."""
    return new_job(id, queue=queue, unique=UniqueKey(key=key))


async def refused(store: Driver, holder: str, *, at: float, key: str = "k") -> None:
    """The key is held at that instant, by that job: another dispatch is refused."""
    answer = await dispatch(store, keyed("refused", key), now=after(at))
    expect(answer, Held(holder), f"the answer to a dispatch of {key!r} after {at} s")


# --- who holds a key ----------------------------------------------------------------------------


@check("I8", _NEEDS)
async def a_key_that_is_held_refuses_another_job(store: Driver) -> None:
    await enqueue(store, keyed("a"))
    await refused(store, "a", at=1)
    await refused(store, "a", at=1e6)
    expect(await counted(store, after(1)), {"pending": 1}, "the counts")
    expect(ids(await claim(store, now=after(1))), ["a"], "the claim")


@check("I8", [*_NEEDS, Capability.INSPECT])
async def a_refused_job_leaves_nothing_behind(store: Driver) -> None:
    await enqueue(store, keyed("a"))
    before = await stored(store, "a")
    await refused(store, "a", at=1)
    expect(await store.get("refused"), None, "the refused job")
    expect(await stored(store, "a"), before, "the holder")
    await enqueue(store, new_job("refused", payload=b"2"), now=after(2))


@check("I8", _NEEDS)
async def a_key_is_one_for_all_queues_and_names(store: Driver) -> None:
    await enqueue(store, new_job("a", name="one", queue="x", unique=_K))
    other = new_job("b", name="two", queue="y", unique=_K)
    expect(await dispatch(store, other), Held("a"), "the answer for another queue and name")


@check("I8", _NEEDS)
async def keys_are_told_apart_exactly(store: Driver) -> None:
    keys = ["k", "K", "k ", " k", "kk", "k*", "%", "_", "\u00e9", "e\u0301", "\u65e5\u672c"]
    keys += ["l" * 511 + "1", "l" * 511 + "2", "l" * 511]
    for number, key in enumerate(keys):
        await enqueue(store, keyed(f"job-{number}", key))
    for number, key in enumerate(keys):
        await refused(store, f"job-{number}", at=1, key=key)


@check("I8", _NEEDS)
async def of_one_batch_the_first_job_of_a_key_holds_it(store: Driver) -> None:
    batch = [new_job("z"), keyed("y"), keyed("x"), keyed("w", "other"), new_job("v"), keyed("u")]
    answers = await store.enqueue(batch, now=T0)
    new = Enqueued.CREATED
    expect(list(answers), [new, new, Held("y"), new, new, Held("y")], "the answers")
    expect(ids(await claim(store)), ["z", "y", "w", "v"], "the claim, in the order of the batch")


@check("I8", _NEEDS)
async def of_several_dispatches_at_once_one_gets_the_key(store: Driver) -> None:
    for number in range(5):
        key = f"k{number}"
        jobs = [keyed(f"{n}-{number}", key) for n in range(6)]
        answers = await asyncio.gather(*(dispatch(store, job) for job in jobs))
        created = [j.id for j, a in zip(jobs, answers, strict=True) if a == Enqueued.CREATED]
        expect(len(created), 1, "how many of six dispatches at once were accepted")
        held = [answer for answer in answers if answer != Enqueued.CREATED]
        expect(held, 5 * [Held(created[0])], "the answers to the others")
    expect(await counted(store), {"pending": 5}, "the counts")


@check("I14", _NEEDS)
async def a_known_id_comes_before_its_key(store: Driver) -> None:
    await enqueue(store, keyed("a", queue="q"))
    await enqueue(store, keyed("a", queue="q"), now=after(1))
    both = await store.enqueue([keyed("b"), keyed("a", queue="q")], now=after(1))
    expect(list(both), [Held("a"), Enqueued.CREATED], "a new job and a repeat of the holder")
    claimed = await claim_one(store, "q", now=after(1))
    await record(store, claimed.hold, Completed(), now=after(2))
    await enqueue(store, keyed("c"), now=after(3))
    repeat = await dispatch(store, keyed("a", queue="q"), now=after(4))
    expect(repeat, Enqueued.CREATED, "the answer to a repeat whose key is another's by now")
    other = await dispatch(store, keyed("a", queue="other"), now=after(4))
    expect(other, Enqueued.DUPLICATE, "the answer to other content under its id")
    expect(await counted(store, after(4)), {"completed": 1, "pending": 1}, "the counts")
    await refused(store, "c", at=5)


@check("I14", _CONTROL)
async def a_deleted_id_is_known_before_its_key(store: Driver) -> None:
    await enqueue(store, keyed("a"))
    await store.delete(["a"], now=after(1))
    await enqueue(store, keyed("a"), now=after(2))
    expect(await counted(store, after(2)), {}, "the counts after a repeat of the deleted job")
    await enqueue(store, keyed("b"), now=after(3))
    await enqueue(store, keyed("a"), now=after(4))
    await refused(store, "b", at=5)


@check("I15", [*_NEEDS, Capability.DELAY])
async def beside_a_duplicate_no_key_is_taken_and_no_holder_changed(store: Driver) -> None:
    await enqueue(store, keyed("a"), new_job("old"))
    replacing = UniqueKey(key="k", mode="replace")
    batch = [
        new_job("b", payload=b"2", delay=60.0, unique=replacing),
        keyed("c", "other"),
        keyed("d", "other"),
        new_job("old", payload=b"2"),
        keyed("a"),
    ]
    answers = await store.enqueue(batch, now=after(1))
    new = Enqueued.CREATED
    expect(list(answers), [Held("a"), new, new, Enqueued.DUPLICATE, new], "the answers")
    expect(await counted(store, after(1)), {"pending": 2}, "the counts")
    claims = await claim(store, now=after(1))
    expect([c.job.payload for c in claims], [b"null", b"null"], "the payloads of what is due")
    await enqueue(store, keyed("d", "other"), now=after(2))


@check("I10", [*_NEEDS, Capability.INSPECT])
async def a_unique_key_comes_back_as_it_was_given(store: Driver) -> None:
    given = [
        None,
        UniqueKey(key="k"),
        UniqueKey(key="\u65e5 %_*", until="started", period=0.25),
        UniqueKey(key="replaced", mode="replace", max_wait=3600.0),
        UniqueKey(key="debounced", mode="debounce", max_wait=0.125, period=1e8),
        UniqueKey(key="throttled", mode="throttle", period=86400.0),
        UniqueKey(key="l" * 512),
    ]
    await enqueue(store, *(new_job(f"job-{n}", unique=u) for n, u in enumerate(given)))
    seen = [(await stored(store, f"job-{n}")).unique for n in range(len(given))]
    expect(seen, given, "the unique keys that get() shows")
    expect([c.job.unique for c in await claim(store)], given, "those that the claims carry")
    page = await store.list(JobFilter(), None, 100)
    expect([job.unique for job in reversed(page.jobs)], given, "those that list() shows")


# --- from when on nobody holds it ---------------------------------------------------------------


@check("I8", _NEEDS)
async def a_key_is_free_in_the_moment_in_which_its_job_ends(store: Driver) -> None:
    for number, outcome in enumerate(ENDS):
        id = f"job-{number}"
        await enqueue(store, keyed(id, queue=id))
        claimed = await claim_one(store, id)
        await refused(store, id, at=1)
        await record(store, claimed.hold, outcome, now=after(2))
    await enqueue(store, keyed("next"), now=after(2))


@check("I8", _NEEDS)
async def a_key_stays_with_a_job_that_waits_for_another_attempt(store: Driver) -> None:
    outcomes: tuple[Outcome, ...] = (Retried(0.0, failure()), Snoozed(0.0))
    await enqueue(store, keyed("a"))
    for number, outcome in enumerate(outcomes):
        claimed = await claim_one(store, now=after(number))
        await record(store, claimed.hold, outcome, now=after(number))
        await refused(store, "a", at=number)
    claimed = await claim_one(store, now=after(5))
    await refused(store, "a", at=5)
    await record(store, claimed.hold, Completed(), now=after(6))
    await enqueue(store, keyed("next"), now=after(6))


@check("I8", [*_NEEDS, Capability.RELEASE])
async def a_key_stays_with_a_released_job(store: Driver) -> None:
    claimed = await started(store, "a", unique=_K)
    await record(store, claimed.hold, Released("shutdown"), now=after(1))
    await refused(store, "a", at=1)


@check("I8", [*_NEEDS, Capability.RECLAIM])
async def a_key_stays_with_a_reclaimed_job(store: Driver) -> None:
    lost = await started(store, "a", unique=_K)
    await refused(store, "a", at=LEASE * 2)
    await store.reclaim(10, [0.0], now=after(LEASE * 2))
    await refused(store, "a", at=61)
    await record(store, lost.hold, Completed(), now=after(62), answer=Recorded.FENCED)
    await refused(store, "a", at=63)
    again = await claim_one(store, "a", now=after(64))
    await record(store, again.hold, Completed(), now=after(65))
    await enqueue(store, keyed("next"), now=after(65))


@check("I8", _CONTROL)
async def a_key_is_free_when_its_waiting_job_is_cancelled_or_deleted(store: Driver) -> None:
    await enqueue(store, keyed("a"))
    await store.cancel(["a"], now=after(1))
    await enqueue(store, keyed("b"), now=after(1))
    await refused(store, "b", at=1)
    await store.delete(["b"], now=after(2))
    await enqueue(store, keyed("c"), now=after(2))
    await store.purge(JobFilter(), 10, now=after(3))
    await enqueue(store, keyed("d"), now=after(3))


@check("I8", [*_CONTROL, Capability.RECLAIM])
async def a_wish_to_cancel_frees_the_key_when_it_is_fulfilled(store: Driver) -> None:
    first = await started(store, "a", unique=_K)
    await store.cancel(["a"], now=after(1))
    await refused(store, "a", at=1)
    await record(store, first.hold, Retried(0.0, failure()), now=after(2))
    second = await started(store, "b", unique=_K, now=after(2))
    await store.cancel(["b"], now=after(3))
    await store.reclaim(10, [0.0], now=after(LEASE * 2))
    await refused(store, "b", at=LEASE * 2)
    expect(list(await store.cancel(["b"], now=after(61))), [Answer.DONE], "the second wish")
    await enqueue(store, keyed("c"), now=after(61))
    await record(store, second.hold, Completed(), now=after(62), answer=Recorded.FENCED)
    await refused(store, "c", at=63)


@check("I8", _CONTROL)
async def a_key_goes_with_its_job_to_another_queue(store: Driver) -> None:
    await enqueue(store, keyed("a"))
    await store.move([Move(job_id="a", queue="x", priority=3)], now=after(1))
    await refused(store, "a", at=1)
    claimed = await claim_one(store, "x", now=after(2))
    await record(store, claimed.hold, Completed(), now=after(3))
    await enqueue(store, keyed("b"), now=after(3))


@check("I8", _NEEDS)
async def a_repeated_outcome_frees_no_key_of_another(store: Driver) -> None:
    claimed = await started(store, "a", unique=_K)
    await record(store, claimed.hold, Completed(), now=after(1))
    await enqueue(store, keyed("b"), now=after(2))
    await record(store, claimed.hold, Completed(), now=after(3), answer=Recorded.REPEATED)
    await record(store, claimed.hold, Failed(failure()), now=after(3), answer=Recorded.FENCED)
    await refused(store, "b", at=4)


@check("I8", _CONTROL)
async def nothing_done_to_an_ended_job_frees_a_key_of_another(store: Driver) -> None:
    for id in ("a", "b"):
        claimed = await started(store, id, unique=_K)
        await record(store, claimed.hold, Completed())
    await enqueue(store, keyed("c"), now=after(1))
    expect(list(await store.cancel(["a"], now=after(2))), [Answer.FINISHED], "cancel")
    await refused(store, "c", at=2)
    expect(list(await store.delete(["a"], now=after(3))), [Answer.DONE], "delete")
    await refused(store, "c", at=3)
    expect(await store.purge(JobFilter(queue="b"), 10, now=after(4)), 1, "purge")
    await refused(store, "c", at=4)


@check("I8", [*_NEEDS, Capability.PRUNE])
async def a_prune_frees_no_key_of_another(store: Driver) -> None:
    claimed = await started(store, "a", unique=_K)
    await record(store, claimed.hold, Completed())
    await enqueue(store, keyed("b"), now=after(1))
    nothing = Retention(completed=0.0, failed=0.0, cancelled=0.0)
    expect(await store.prune(nothing, 10, now=after(1e6)), 1, "the number pruned")
    await refused(store, "b", at=1e6)
