"""Checks of dump and restore where jobs have unique keys (I8) or limits."""

from tenure.driver import Capability, Driver
from tenure.moved import KeyHold, Restored
from tenure.outcomes import Completed
from tenure.standing import Limit
from tenure.states import State
from tenure.testing.conformance.builders import (
    T0,
    after,
    claim,
    claim_one,
    dispatch,
    enqueue,
    ids,
    new_job,
    record,
    stored,
)
from tenure.testing.conformance.check import check, expect
from tenure.testing.conformance.uniqueness import keyed, refused
from tenure.testing.conformance.whole_jobs import dumped, restore, restored, whole
from tenure.types import Enqueued, Held, UniqueKey

_UNIQUE = (Capability.RESTORE, Capability.UNIQUE)
_LIMITS = (Capability.RESTORE, Capability.LIMITS)
_K = UniqueKey(key="k")
_UNTIL_DONE = KeyHold()


async def _free(store: Driver, *, at: float, key: str = "k") -> None:
    """The key is free at that instant; then a new job has it."""
    answer = await dispatch(store, keyed(f"free at {at}", key), now=after(at))
    expect(answer, Enqueued.CREATED, f"the answer to a dispatch of {key!r} after {at} s")


# --- unique keys --------------------------------------------------------------------------------


@check("I8", _UNIQUE)
async def a_dump_tells_who_holds_a_unique_key_and_until_when(store: Driver) -> None:
    done, until = UniqueKey(key="done"), UniqueKey(key="until", period=60.0)
    begun = UniqueKey(key="begun", until="started")
    throttle = UniqueKey(key="throttle", period=60.0, mode="throttle")
    for unique in (done, until, begun, throttle):
        await enqueue(store, new_job(unique.key, queue=unique.key, unique=unique))
    for queue in ("begun", "throttle"):
        claimed = await claim_one(store, queue)
        await record(store, claimed.hold, Completed(), now=after(1))
    found = {each.job.id: each.key for each in await dumped(store, now=after(2))}
    dated = KeyHold(until=after(60))
    right = {"done": KeyHold(), "until": dated, "begun": None, "throttle": dated}
    expect(found, right, "the holds of keys")
    found = {each.job.id: each.key for each in await dumped(store, now=after(60))}
    right = {"done": KeyHold(), "until": None, "begun": None, "throttle": None}
    expect(found, right, "the holds at the end of the period")


@check("I8", _UNIQUE)
async def a_restored_job_holds_its_unique_key_until_it_is_done(store: Driver) -> None:
    await restored(store, whole("a", unique=_K, key=_UNTIL_DONE, queue="a"))
    await refused(store, "a", at=1)
    claimed = await claim_one(store, "a", now=after(2))
    expect(claimed.job.unique, _K, "the unique key in the claim")
    await refused(store, "a", at=3)
    await record(store, claimed.hold, Completed(), now=after(4))
    await _free(store, at=5)


@check("I8", _UNIQUE)
async def a_restored_job_frees_its_key_when_it_is_first_started(store: Driver) -> None:
    unique = UniqueKey(key="k", until="started")
    await restored(store, whole("a", unique=unique, key=_UNTIL_DONE, queue="a"))
    await refused(store, "a", at=1)
    await claim_one(store, "a", now=after(2))
    await _free(store, at=3)


@check("I8", _UNIQUE)
async def a_restored_key_is_held_until_the_instant_that_was_given(store: Driver) -> None:
    unique = UniqueKey(key="k", period=3600.0)
    await restored(store, whole("a", unique=unique, key=KeyHold(until=after(30))), now=after(1))
    await refused(store, "a", at=29.999999)
    await _free(store, at=30)


@check("I8", _UNIQUE)
async def a_restored_job_takes_no_key_that_it_does_not_hold_any_more(store: Driver) -> None:
    await enqueue(store, keyed("holder"))
    unique = UniqueKey(key="k", period=30.0)
    await restored(
        store,
        whole("over", unique=unique, key=KeyHold(until=after(5))),
        whole("begun", unique=UniqueKey(key="k", until="started"), serial=2),
        whole("done", unique=_K, state=State.COMPLETED, finished_at=T0),
        now=after(5),
    )
    await refused(store, "holder", at=6)


@check("I8", _UNIQUE)
async def a_restored_throttle_lasts_whatever_became_of_its_job(store: Driver) -> None:
    unique = UniqueKey(key="k", period=60.0, mode="throttle")
    key = KeyHold(until=after(60))
    await restored(store, whole("a", unique=unique, key=key, state=State.COMPLETED, finished_at=T0))
    await refused(store, "a", at=59.999999)
    await _free(store, at=60)


@check("I8", _UNIQUE)
async def a_key_that_another_job_holds_keeps_the_batch_out_and_names_it(store: Driver) -> None:
    await enqueue(store, keyed("holder"))
    batch = [
        whole("a"),
        whole("b", unique=UniqueKey(key="free"), key=_UNTIL_DONE),
        whole("c", unique=_K, key=_UNTIL_DONE),
    ]
    answers = await restore(store, *batch, now=after(1))
    right = [Restored.STORED, Restored.STORED, Held("holder")]
    expect(answers, right, "the answers of restore")
    expect([each.job.id for each in await dumped(store)], ["holder"], "the jobs")
    await _free(store, at=2, key="free")


@check("I8", _UNIQUE)
async def two_jobs_of_a_batch_cannot_hold_one_key(store: Driver) -> None:
    first = whole("b", unique=_K, key=_UNTIL_DONE)
    second = whole("a", unique=_K, key=_UNTIL_DONE)
    answers = await restore(store, first, second)
    expect(answers, [Restored.STORED, Held("b")], "the answers of restore")
    expect(await dumped(store), [], "the jobs")
    await restored(store, second)
    again = await restore(store, second, now=after(1))
    expect(again, [Restored.KNOWN], "the answer for the holder itself")


@check("I8", [*_UNIQUE, Capability.CONTROL, Capability.INSPECT])
async def a_restored_holder_takes_what_a_refused_dispatch_brings(store: Driver) -> None:
    unique = UniqueKey(key="k", mode="replace")
    await restored(store, whole("a", unique=unique, key=_UNTIL_DONE, payload=b"old"))
    answer = await dispatch(store, new_job("b", payload=b"new", unique=unique), now=after(1))
    expect(answer, Held("a"), "the answer to the dispatch")
    expect((await stored(store, "a")).payload, b"new", "the payload of the holder")
    await store.cancel(["a"], now=after(2))
    await _free(store, at=3)


# --- limits -------------------------------------------------------------------------------------


@check("restore()", _LIMITS)
async def restored_jobs_keep_to_the_limits_of_their_keys(store: Driver) -> None:
    await store.put_limit(Limit(key="api", concurrent=1))
    await enqueue(store, new_job("first", limits=("api",)))
    await restored(
        store,
        whole("second", limits=("api",)),
        whole("earlier", limits=("api",), run_at=after(-5)),
        whole("later", limits=("api",), run_at=after(50)),
        whole("free", limits=("other",)),
        whole("none"),
    )
    claims = await claim(store, now=after(10))
    expect(ids(claims), ["earlier", "free", "none"], "the first claim")
    expect(claims[0].job.limits, ("api",), "the keys in the claim")
    for at, following in ((11, ["first"]), (12, ["second"]), (51, ["later"])):
        held = next(claimed for claimed in claims if claimed.job.limits == ("api",))
        await record(store, held.hold, Completed(), now=after(at))
        claims = await claim(store, now=after(at))
        expect(ids(claims), following, f"the claim after {at} s")


@check("restore()", _LIMITS)
async def a_job_that_was_processing_counts_against_no_limit(store: Driver) -> None:
    await store.put_limit(Limit(key="api", concurrent=1))
    await restored(
        store,
        whole("a", limits=("api",), state=State.PROCESSING, attempt=1, serial=1),
        whole("b", limits=("api",), state=State.COMPLETED, finished_at=T0),
    )
    expect(ids(await claim(store, now=after(1))), ["a"], "the claim")
    expect(ids(await claim(store, now=after(2))), [], "a second claim")


@check("dump()", _LIMITS)
async def jobs_that_a_limit_keeps_back_are_dumped_in_their_place(store: Driver) -> None:
    await store.put_limit(Limit(key="api", concurrent=1))
    await enqueue(store, *(new_job(f"job-{n}", limits=("api",)) for n in range(4)))
    await claim(store)
    found = await dumped(store, 3)
    expect([each.job.id for each in found], [f"job-{n}" for n in range(4)], "the jobs")
    expect({each.job.limits for each in found}, {("api",)}, "their keys")
