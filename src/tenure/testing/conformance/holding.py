"""Checks of I8: keys that a job holds until its start, or for a period, and that it takes anew."""

from collections.abc import Sequence

from tenure.driver import Capability, Driver
from tenure.outcomes import Completed, Failed, Retried
from tenure.testing.conformance.builders import (
    LEASE,
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
    request,
    started,
)
from tenure.testing.conformance.check import check, expect, expect_that
from tenure.testing.conformance.uniqueness import keyed, refused
from tenure.types import Answer, Enqueued, JobFilter, ManualRetry, UniqueKey

_NEEDS = (Capability.UNIQUE,)
_CONTROL = (Capability.UNIQUE, Capability.CONTROL)
_STARTED = UniqueKey(key="k", until="started")
_PERIOD = UniqueKey(key="k", period=10.0)


# --- until the start, for a period --------------------------------------------------------------


@check("I8", _NEEDS)
async def a_key_until_the_start_is_free_from_the_first_claim_on(store: Driver) -> None:
    await enqueue(store, new_job("a", queue="a", unique=_STARTED))
    await refused(store, "a", at=1)
    claimed = await claim_one(store, "a", now=after(2))
    await enqueue(store, keyed("b"), now=after(2))
    await record(store, claimed.hold, Retried(0.0, failure()), now=after(3))
    await refused(store, "b", at=3)
    claimed = await claim_one(store, "a", now=after(4))
    await refused(store, "b", at=4)
    await record(store, claimed.hold, Completed(), now=after(5))
    await refused(store, "b", at=5)


@check("I8", [*_NEEDS, Capability.RECLAIM])
async def a_key_until_the_start_is_not_taken_again_by_a_job_that_waits_again(
    store: Driver,
) -> None:
    await started(store, "a", unique=_STARTED)
    await store.reclaim(10, [0.0], now=after(LEASE))
    expect_that(
        await dispatch(store, keyed("b"), now=after(31)) == Enqueued.CREATED,
        "a reclaimed job holds its key again, though it was to hold it until its start",
    )
    claimed = await claim_one(store, "a", now=after(32))
    await record(store, claimed.hold, Retried(0.0, failure()), now=after(33))
    await refused(store, "b", at=34)


@check("I8", [*_NEEDS, Capability.EXCHANGE])
async def an_exchange_frees_the_keys_of_what_it_ends_and_of_what_it_starts(store: Driver) -> None:
    done = await started(store, "a", unique=UniqueKey(key="k"))
    await enqueue(store, new_job("b", unique=UniqueKey(key="m", until="started")))
    answer = await store.exchange([(done.hold, Completed())], request(), now=after(1))
    expect(ids(answer.claims), ["b"], "the claims of the exchange")
    await enqueue(store, keyed("c"), keyed("d", "m"), now=after(1))


@check("I8", _NEEDS)
async def a_key_is_free_from_the_last_instant_of_its_period_on(store: Driver) -> None:
    await enqueue(store, new_job("a", unique=_PERIOD))
    await refused(store, "a", at=9.999)
    await enqueue(store, keyed("b"), now=after(10))
    await refused(store, "b", at=10)
    expect(ids(await claim(store, now=after(11))), ["a", "b"], "the claim of both")


@check("I8", _NEEDS)
async def a_period_holds_no_key_beyond_the_end_of_its_job(store: Driver) -> None:
    claimed = await started(store, "a", unique=_PERIOD)
    await refused(store, "a", at=1)
    await record(store, claimed.hold, Completed(), now=after(2))
    await enqueue(store, keyed("b"), now=after(2))


@check("I8", _NEEDS)
async def the_end_of_a_former_holder_leaves_the_key_to_the_present_one(store: Driver) -> None:
    former = await started(store, "a", unique=_PERIOD)
    await enqueue(store, keyed("b", queue="b"), now=after(10))
    await record(store, former.hold, Completed(), now=after(11))
    await refused(store, "b", at=11)
    present = await claim_one(store, "b", now=after(12))
    await record(store, present.hold, Completed(), now=after(13))
    await enqueue(store, keyed("c"), now=after(13))


@check("I8", _CONTROL)
async def the_removal_of_a_former_holder_leaves_the_key_to_the_present_one(store: Driver) -> None:
    for number, id in enumerate(("a", "b", "c", "d")):
        job = new_job(id, queue=id, unique=_PERIOD)
        await enqueue(store, job, now=after(number * 10))
    await store.cancel(["a"], now=after(31))
    await store.delete(["b"], now=after(32))
    expect(await store.purge(JobFilter(queue="c"), 10, now=after(33)), 1, "the number purged")
    await refused(store, "d", at=34)
    await store.delete(["d"], now=after(35))
    await enqueue(store, keyed("e"), now=after(35))


# --- manual retries -----------------------------------------------------------------------------


async def _retry(store: Driver, *retries: str, at: float) -> Sequence[Answer]:
    return list(await store.retry([ManualRetry(id) for id in retries], now=after(at)))


async def _failed(store: Driver, id: str, unique: UniqueKey, at: float = 0.0) -> None:
    claimed = await started(store, id, unique=unique, now=after(at))
    await record(store, claimed.hold, Failed(failure()), now=after(at))


@check("I8", _CONTROL)
async def a_retry_whose_key_another_job_holds_changes_nothing(store: Driver) -> None:
    await _failed(store, "a", UniqueKey(key="k"))
    await enqueue(store, keyed("b"), now=after(1))
    expect(await _retry(store, "a", at=2), [Answer.HELD], "the answer while it is held")
    expect(await counted(store, after(2)), {"failed": 1, "pending": 1}, "the counts")
    claimed = await claim_one(store, now=after(3))
    expect(await _retry(store, "a", at=3), [Answer.HELD], "the answer while the holder runs")
    await record(store, claimed.hold, Completed(), now=after(4))
    expect(await _retry(store, "a", at=5), [Answer.DONE], "the answer when the holder has ended")
    await refused(store, "a", at=6)
    expect(await _retry(store, "b", "a", at=7), [Answer.FINISHED, Answer.LIVE], "of both")


@check("I8", _CONTROL)
async def a_retried_job_holds_its_key_anew(store: Driver) -> None:
    await _failed(store, "a", UniqueKey(key="k"))
    await enqueue(store, keyed("b", queue="b"), now=after(1))
    await store.cancel(["b"], now=after(2))
    right = [Answer.DONE, Answer.HELD]
    expect(await _retry(store, "a", "b", at=3), right, "retries of two jobs of one key")
    await refused(store, "a", at=4)
    claimed = await claim_one(store, "a", now=after(5))
    await record(store, claimed.hold, Completed(), now=after(6))
    expect(await _retry(store, "b", at=7), [Answer.DONE], "the second one's retry")
    await refused(store, "b", at=8)


@check("I8", _CONTROL)
async def a_retried_job_holds_its_key_for_another_period_or_until_another_start(
    store: Driver,
) -> None:
    await _failed(store, "a", _PERIOD)
    expect(await _retry(store, "a", at=100), [Answer.DONE], "the retry")
    await refused(store, "a", at=109.999)
    await enqueue(store, keyed("b"), now=after(110))
    until_started = UniqueKey(key="m", until="started")
    await _failed(store, "c", until_started)
    expect(await _retry(store, "c", at=1), [Answer.DONE], "the retry")
    await refused(store, "c", key="m", at=2)
    await claim_one(store, "c", now=after(3))
    await enqueue(store, keyed("d", "m"), now=after(3))


@check("I14", _CONTROL)
async def a_repeated_retry_is_answered_alike_when_its_key_is_held_by_then(store: Driver) -> None:
    await _failed(store, "a", UniqueKey(key="k"))
    item = ManualRetry("a", 1)
    expect(list(await store.retry([item], now=after(1))), [Answer.DONE], "the first retry")
    claimed = await claim_one(store, "a", now=after(2))
    await record(store, claimed.hold, Failed(failure()), now=after(3))
    await enqueue(store, keyed("b"), now=after(4))
    expect(list(await store.retry([item], now=after(5))), [Answer.DONE], "the repeat")
    expect(await counted(store, after(5)), {"failed": 1, "pending": 1}, "the counts")
    await refused(store, "b", at=6)
