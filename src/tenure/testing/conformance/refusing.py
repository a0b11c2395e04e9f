"""Checks of I8: what a refused dispatch does to the holder (replace, debounce), and throttles."""

from datetime import datetime
from typing import Literal

from msgspec.structs import replace

from tenure.driver import Capability, Driver
from tenure.outcomes import Completed, Retried
from tenure.testing.conformance.builders import (
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
from tenure.testing.conformance.uniqueness import keyed, refused
from tenure.types import (
    Answer,
    Enqueued,
    Held,
    Job,
    JobFilter,
    ManualRetry,
    Retention,
    UniqueKey,
)

_NEEDS = (Capability.UNIQUE,)
_CONTROL = (Capability.UNIQUE, Capability.CONTROL)
_LOOKING = (Capability.UNIQUE, Capability.DELAY, Capability.INSPECT)
_THROTTLE = UniqueKey(key="k", mode="throttle", period=10.0)

_Moving = Literal["replace", "debounce"]


# --- throttle -----------------------------------------------------------------------------------


@check("I8", _NEEDS)
async def a_throttle_refuses_for_its_period_though_its_job_has_ended(store: Driver) -> None:
    claimed = await started(store, "a", unique=_THROTTLE)
    await refused(store, "a", at=1)
    await record(store, claimed.hold, Completed(), now=after(2))
    await refused(store, "a", at=2)
    await refused(store, "a", at=9.999)
    await enqueue(store, new_job("b", unique=_THROTTLE), now=after(10))
    await refused(store, "b", at=19.999)
    await enqueue(store, keyed("c"), now=after(20))


@check("I8", _CONTROL)
async def a_throttle_refuses_for_its_period_though_its_job_is_gone(store: Driver) -> None:
    keys = "cancelled", "deleted", "purged"
    for key in keys:
        job = new_job(key, queue=key, unique=replace(_THROTTLE, key=key))
        await enqueue(store, job)
    await store.cancel(["cancelled"], now=after(1))
    await store.delete(["deleted"], now=after(1))
    await store.purge(JobFilter(queue="purged"), 10, now=after(1))
    for key in keys:
        await refused(store, key, key=key, at=9.999)
        await enqueue(store, keyed(f"after-{key}", key), now=after(10))
        await refused(store, f"after-{key}", key=key, at=1e6)


@check("I8", [*_NEEDS, Capability.PRUNE])
async def a_throttle_outlasts_the_retention_of_its_job(store: Driver) -> None:
    claimed = await started(store, "a", unique=replace(_THROTTLE, period=1000.0))
    await record(store, claimed.hold, Completed())
    nothing = Retention(completed=0.0, failed=0.0, cancelled=0.0)
    for at in (100, 999):
        await store.prune(nothing, 10, now=after(at))
        await refused(store, "a", at=at)
    expect(await counted(store, after(999)), {}, "the counts")
    await enqueue(store, keyed("b"), now=after(1000))


@check("I8", _NEEDS)
async def a_throttled_dispatch_leaves_the_holder_as_it_is(store: Driver) -> None:
    await enqueue(store, keyed("a"))
    other = new_job("b", payload=b"2", unique=_THROTTLE)
    expect(await dispatch(store, other, now=after(1)), Held("a"), "the answer")
    claimed = await claim_one(store, now=after(1))
    expect(claimed.job.payload, b"null", "the payload of the holder")
    await record(store, claimed.hold, Completed(), now=after(2))
    await enqueue(store, keyed("c"), now=after(2))


@check("retry()", _CONTROL)
async def a_throttle_is_not_asked_by_a_retry(store: Driver) -> None:
    await enqueue(store, new_job("a", queue="a", unique=_THROTTLE))
    await store.cancel(["a"], now=after(1))
    expect(list(await store.retry([ManualRetry("a")], now=after(5))), [Answer.DONE], "retry")
    await refused(store, "a", at=9.999)
    await enqueue(store, keyed("b"), now=after(10))
    await store.cancel(["a"], now=after(11))
    await refused(store, "b", at=11)
    expect(list(await store.retry([ManualRetry("a")], now=after(12))), [Answer.DONE], "retry")
    await refused(store, "b", at=13)


# --- replace and debounce -----------------------------------------------------------------------


async def _refused(
    store: Driver,
    mode: _Moving,
    *,
    at: float,
    payload: bytes = b"2",
    delay: float | None = None,
    due: datetime | None = None,
    max_wait: float | None = None,
    name: str = "work",
) -> None:
    """Dispatch another job of the key in that mode, which is refused for `a`."""
    unique = UniqueKey(key="k", mode=mode, max_wait=max_wait)
    other = new_job("b", name=name, payload=payload, delay=delay, at=due, unique=unique)
    expect(await dispatch(store, other, now=after(at)), Held("a"), f"the answer after {at} s")


async def _holder(store: Driver) -> tuple[datetime, bytes]:
    """When the holder is due, and its payload."""
    job = await stored(store, "a")
    return job.run_at, job.payload


def _rest(job: Job[bytes]) -> Job[bytes]:
    """The job but for what a refused dispatch may change."""
    return replace(job, payload=b"", run_at=T0, updated_at=T0)


@check("I8", _LOOKING)
async def a_replacing_dispatch_changes_payload_and_due_time_alone(store: Driver) -> None:
    job = new_job("a", queue="q", priority=3, max_attempts=5, timeout=2.0, headers={"h": "1"})
    await enqueue(store, replace(job, delay=60.0, unique=UniqueKey(key="k", period=1e6)))
    before = await stored(store, "a")
    await _refused(store, "replace", at=5, payload=b"two", delay=20.0)
    expect(await _holder(store), (after(25), b"two"), "due time and payload")
    expect(_rest(await stored(store, "a")), _rest(before), "all else of the holder")
    expect(ids(await claim(store, "q", now=after(24.999))), [], "the claim before it is due")
    claimed = await claim_one(store, "q", now=after(25))
    expect(claimed.job.payload, b"two", "the payload that the claim carries")
    expect(await store.get("b"), None, "the refused job")


@check("I8", _LOOKING)
async def the_last_of_several_replacing_dispatches_counts(store: Driver) -> None:
    await enqueue(store, replace(keyed("a"), delay=60.0))
    await _refused(store, "replace", at=1, payload=b"2", delay=100.0)
    expect(await _holder(store), (after(101), b"2"), "due later")
    await _refused(store, "replace", at=2, payload=b"3", due=after(30.000001))
    expect(await _holder(store), (after(30.000001), b"3"), "due at an instant")
    await _refused(store, "replace", at=3, payload=b"")
    expect(await _holder(store), (after(3), b""), "due at once")
    expect(ids(await claim(store, now=after(3))), ["a"], "the claim")


@check("I8", _NEEDS)
async def a_job_of_the_same_batch_is_replaced(store: Driver) -> None:
    unique = UniqueKey(key="k", mode="replace")
    batch = [new_job(id, payload=id.encode(), unique=unique) for id in ("a", "b", "c")]
    answers = await store.enqueue(batch, now=T0)
    expect(list(answers), [Enqueued.CREATED, Held("a"), Held("a")], "the answers")
    expect([c.job.payload for c in await claim(store)], [b"c"], "the payload of the only job")


@check("I14", _NEEDS)
async def a_replaced_job_is_known_by_the_content_of_its_dispatch(store: Driver) -> None:
    await enqueue(store, keyed("a"))
    await _refused(store, "replace", at=1)
    await enqueue(store, keyed("a"), now=after(2))
    as_replaced = replace(keyed("a"), payload=b"2")
    answer = await dispatch(store, as_replaced, now=after(2))
    expect(answer, Enqueued.DUPLICATE, "the answer to the new content under the old id")
    expect((await claim_one(store, now=after(3))).job.payload, b"2", "the payload")


@check("I8", _NEEDS)
async def a_processing_holder_is_not_replaced(store: Driver) -> None:
    claimed = await started(store, "a", unique=UniqueKey(key="k"))
    await _refused(store, "replace", at=1)
    await record(store, claimed.hold, Retried(0.0, failure()), now=after(2))
    claimed = await claim_one(store, "a", now=after(3))
    expect(claimed.job.payload, b"null", "the payload of the next attempt")


@check("I8", _LOOKING)
async def a_holder_that_waits_for_another_attempt_is_replaced(store: Driver) -> None:
    claimed = await started(store, "a", unique=UniqueKey(key="k"))
    await record(store, claimed.hold, Retried(60.0, failure()))
    await _refused(store, "replace", at=1, delay=9.0)
    expect(await _holder(store), (after(10), b"2"), "due time and payload")
    again = await claim_one(store, "a", now=after(10))
    expect((again.attempt, again.job.payload), (2, b"2"), "attempt and payload of the next claim")


@check("I8", _LOOKING)
async def a_holder_of_another_name_is_left_as_it_is(store: Driver) -> None:
    await enqueue(store, replace(keyed("a"), delay=5.0))
    before = await stored(store, "a")
    await _refused(store, "replace", at=1, name="other", delay=60.0)
    await _refused(store, "debounce", at=1, name="other", delay=60.0)
    expect(await stored(store, "a"), before, "the holder")


@check("I8", _LOOKING)
async def the_mode_of_the_refused_dispatch_counts_and_not_that_of_the_holder(
    store: Driver,
) -> None:
    unique = UniqueKey(key="k", mode="replace", max_wait=1.0)
    await enqueue(store, new_job("a", delay=5.0, unique=unique))
    before = await stored(store, "a")
    await refused(store, "a", at=1)
    expect(await stored(store, "a"), before, "the holder after a dispatch that keeps")
    await _refused(store, "debounce", at=1, delay=60.0)
    expect(await _holder(store), (after(61), b"null"), "after one that debounces")


@check("I8", _LOOKING)
async def a_debouncing_dispatch_moves_the_due_time_later_only(store: Driver) -> None:
    await enqueue(store, replace(keyed("a"), delay=10.0))
    before = await stored(store, "a")
    for at, delay, due in ((1, 20.0, 21), (2, 5.0, 21), (3, None, 21), (4, 17.5, 21.5)):
        await _refused(store, "debounce", at=at, delay=delay)
        expect(await _holder(store), (after(due), b"null"), f"due time and payload after {at} s")
    expect(_rest(await stored(store, "a")), _rest(replace(before, payload=b"")), "all else")
    expect(ids(await claim(store, now=after(21.25))), [], "the claim before the new due time")
    expect(ids(await claim(store, now=after(21.5))), ["a"], "the claim at it")


@check("I8", _LOOKING)
async def a_holder_is_moved_to_its_dispatch_and_the_longest_wait_at_most(store: Driver) -> None:
    await enqueue(store, replace(keyed("a"), delay=10.0), now=after(0))
    for at, delay, due in ((5, 15.0, 20), (6, 24.0, 30), (20, 60.0, 30), (29, 60.0, 30)):
        await _refused(store, "debounce", at=at, delay=delay, max_wait=30.0)
        expect((await _holder(store))[0], after(due), f"the due time after {at} s")
    await _refused(store, "debounce", at=29, delay=60.0, max_wait=5.0)
    expect((await _holder(store))[0], after(30), "the due time: never earlier")
    await _refused(store, "replace", at=29, delay=60.0, max_wait=40.0)
    expect((await _holder(store))[0], after(40), "the due time of a replaced one")
    await _refused(store, "replace", at=29, delay=60.0, max_wait=30.0)
    expect((await _holder(store))[0], after(30), "the due time of one that is replaced again")


@check("I8", _LOOKING)
async def a_key_that_is_held_no_more_is_neither_replaced_nor_debounced(store: Driver) -> None:
    await enqueue(store, new_job("old", delay=60.0, unique=UniqueKey(key="k", period=10.0)))
    before = await stored(store, "old")
    replacing = UniqueKey(key="k", mode="replace")
    await enqueue(store, new_job("a", payload=b"1", delay=60.0, unique=replacing), now=after(10))
    await _refused(store, "replace", at=11)
    expect(await stored(store, "old"), before, "the former holder")
    expect(await _holder(store), (after(11), b"2"), "the present one")
