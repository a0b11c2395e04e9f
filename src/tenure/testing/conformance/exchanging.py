"""Checks of `exchange`: record, then claim, in one call."""

from tenure.driver import Capability, Driver, RecordItem
from tenure.outcomes import Completed, Retried
from tenure.testing.conformance.builders import (
    T0,
    after,
    counted,
    enqueue,
    failure,
    ids,
    new_job,
    request,
    started,
)
from tenure.testing.conformance.check import check, expect
from tenure.types import Hold, Recorded

_NEEDS = (Capability.EXCHANGE,)


@check("I14", _NEEDS)
async def an_exchange_records_before_it_claims(store: Driver) -> None:
    done, again = await started(store, "done"), await started(store, "again")
    await enqueue(store, new_job("next"))
    items: list[RecordItem] = [
        (done.hold, Completed(b"1")),
        (again.hold, Retried(0.0, failure())),
    ]
    answer = await store.exchange(items, request("again", "default"), now=after(1))
    expect(answer.recorded, (Recorded.APPLIED, Recorded.APPLIED), "the answers")
    expect((ids(answer.claims), answer.error), (["again", "next"], None), "claims and error")
    expect([c.attempt for c in answer.claims], [2, 1], "the attempts")
    expect(await counted(store, after(1)), {"completed": 1, "processing": 2}, "the counts")


@check("I5", _NEEDS)
async def an_exchange_records_where_there_is_nothing_to_claim(store: Driver) -> None:
    claimed = await started(store, "a")
    answer = await store.exchange([(claimed.hold, Completed())], request(), now=after(1))
    expect((answer.recorded, answer.claims), ((Recorded.APPLIED,), ()), "the exchange")
    expect(await counted(store, after(1)), {"completed": 1}, "the counts")


@check("exchange()", _NEEDS)
async def an_exchange_without_outcomes_claims(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    answer = await store.exchange([], request(), now=T0)
    expect((answer.recorded, ids(answer.claims)), ((), ["a"]), "the exchange")


@check("exchange()", _NEEDS)
async def an_exchange_without_free_slots_records_only(store: Driver) -> None:
    claimed = await started(store, "a")
    await enqueue(store, new_job("b"))
    items = [(claimed.hold, Completed())]
    answer = await store.exchange(items, request(limit=0), now=after(1))
    expect((answer.recorded, answer.claims), ((Recorded.APPLIED,), ()), "the exchange")
    expect(await counted(store, after(1)), {"completed": 1, "pending": 1}, "the counts")


@check("I12", _NEEDS)
async def a_fenced_outcome_does_not_stop_an_exchange(store: Driver) -> None:
    claimed = await started(store, "a")
    await enqueue(store, new_job("b"))
    items = [
        (Hold("a", claimed.hold.serial, "made up"), Completed()),
        (Hold("nobody", 1, "t"), Completed()),
        (claimed.hold, Completed()),
    ]
    answer = await store.exchange(items, request(), now=after(1))
    right = Recorded.FENCED, Recorded.UNKNOWN, Recorded.APPLIED
    expect((answer.recorded, ids(answer.claims)), (right, ["b"]), "the exchange")


@check("I14", _NEEDS)
async def a_repeated_exchange_is_answered_alike(store: Driver) -> None:
    claimed = await started(store, "a")
    await enqueue(store, *(new_job(id) for id in ("z", "y", "x")))
    items = [(claimed.hold, Completed(b"1"))]
    asked = request(limit=2, token="token")
    first = await store.exchange(items, asked, now=after(1))
    again = request(limit=2, token="token", again=True)
    second = await store.exchange(items, again, now=after(2))
    expect(second.recorded, (Recorded.REPEATED,), "the answers of the repeat")
    expect([c.hold for c in second.claims], [c.hold for c in first.claims], "its holds")
