"""Checks of schedules: an instant fires at most once (I13), whoever is first.

What recurs is of no interest to a store, so the definitions here are any bytes.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from tenure.driver import Capability, Driver
from tenure.outcomes import Completed
from tenure.standing import Fired, NewSchedule, ScheduleRecord, Tick
from tenure.testing.conformance.builders import (
    T0,
    after,
    claim,
    claim_one,
    counted,
    enqueue,
    ids,
    new_job,
    record,
)
from tenure.testing.conformance.check import check, expect, refuse
from tenure.testing.conformance.uniqueness import refused
from tenure.types import NewJob, UniqueKey

_NEEDS = (Capability.SCHEDULES,)


async def _put(
    store: Driver, id: str = "s", revision: str = "r1", definition: bytes = b"d1", at: float = 0
) -> None:
    new = NewSchedule(id=id, revision=revision, definition=definition)
    await store.put_schedules([new], now=after(at))


async def _scheduled(store: Driver, id: str = "s") -> ScheduleRecord:
    """The schedule, which must be there."""
    for found in (await store.schedules(now=T0)).items:
        if found.id == id:
            return found
    refuse(f"schedules(): expected {id!r} among them")


def _tick(
    previous: float | datetime,
    instant: float | datetime,
    job: NewJob | None = None,
    *,
    id: str = "s",
    revision: str = "r1",
) -> Tick:
    return Tick(
        schedule_id=id,
        revision=revision,
        previous=previous if isinstance(previous, datetime) else after(previous),
        instant=instant if isinstance(instant, datetime) else after(instant),
        job=job,
    )


async def _fire(store: Driver, *ticks: Tick, at: float) -> Sequence[Fired]:
    return list(await store.fire(ticks, now=after(at)))


# --- put, drop, look ----------------------------------------------------------------------------


@check("schedules()", _NEEDS)
async def a_schedule_comes_back_as_it_was_stored(store: Driver) -> None:
    empty = await store.schedules(now=after(1.000001))
    expect((empty.now, tuple(empty.items)), (after(1.000001), ()), "the schedules of a new store")
    definition = b'\x00\xff{"cron":"\xc3\xa9"}'
    await _put(store, "s", "r1", definition, at=2.345678)
    found = await store.schedules(now=after(60))
    right = ScheduleRecord(
        id="s",
        revision="r1",
        definition=definition,
        created_at=after(2.345678),
        last=after(2.345678),
        paused=False,
    )
    expect((found.now, list(found.items)), (after(60), [right]), "the schedules")


@check("schedules()", _NEEDS)
async def schedules_are_sorted_by_id(store: Driver) -> None:
    names = ["b", "a", "B", "a-1", "a1", "\u00e9", "Z", "10", "9"]
    new = [NewSchedule(id=id, revision=f"of {id}", definition=id.encode()) for id in names]
    await store.put_schedules(new, now=T0)
    items = (await store.schedules(now=T0)).items
    expect([item.id for item in items], sorted(names), "the ids")
    right = [f"of {id}" for id in sorted(names)]
    expect([item.revision for item in items], right, "the revisions, by id")


@check("put_schedules()", _NEEDS)
async def a_schedule_put_again_with_its_definition_stays_as_it_is(store: Driver) -> None:
    await _put(store)
    await _fire(store, _tick(0, 10), at=10)
    before = await _scheduled(store)
    await _put(store, revision="r2", at=60)
    expect(await _scheduled(store), before, "the schedule")
    expect(await _fire(store, _tick(10, 20), at=60), [Fired.FIRED], "its next tick")


@check("I13", _NEEDS)
async def a_schedule_with_another_definition_has_the_ticks_after_now(store: Driver) -> None:
    await _put(store)
    await _fire(store, _tick(0, 10), at=10)
    await _put(store, revision="r2", definition=b"d2", at=61.5)
    found = await _scheduled(store)
    expect((found.revision, found.definition), ("r2", b"d2"), "revision and definition")
    expect((found.created_at, found.last), (after(61.5), after(61.5)), "created_at and last")
    old = [_tick(10, 20), _tick(10, 20, revision="r2"), _tick(61.5, 62)]
    expect(await _fire(store, *old, at=70), 3 * [Fired.LOST], "ticks of the old definition")
    expect(await _fire(store, _tick(61.5, 62, revision="r2"), at=70), [Fired.FIRED], "a new one")


@check("put_schedules()", _NEEDS)
async def schedules_of_one_batch_are_judged_one_by_one(store: Driver) -> None:
    await _put(store, "same", "r1", b"d")
    await _put(store, "changed", "r1", b"d")
    await store.put_schedules([], now=after(1))
    batch = [
        NewSchedule(id="changed", revision="r2", definition=b"D"),
        NewSchedule(id="same", revision="r2", definition=b"d"),
        NewSchedule(id="new", revision="r2", definition=b"d"),
    ]
    await store.put_schedules(batch, now=after(5))
    items = (await store.schedules(now=T0)).items
    seen = {item.id: (item.revision, item.last) for item in items}
    right = {"changed": ("r2", after(5)), "new": ("r2", after(5)), "same": ("r1", after(0))}
    expect(seen, right, "revision and last tick of each")


@check("drop_schedules()", _NEEDS)
async def a_dropped_schedule_is_gone_and_its_jobs_stay(store: Driver) -> None:
    await _put(store)
    await _put(store, "other")
    await _fire(store, _tick(0, 10, new_job("a")), at=10)
    answers = await store.drop_schedules(["nobody", "s", "s"])
    expect(list(answers), [False, True, False], "the answers")
    expect([item.id for item in (await store.schedules(now=T0)).items], ["other"], "the ids")
    expect(await _fire(store, _tick(10, 20, new_job("b")), at=20), [Fired.LOST], "its next tick")
    expect(ids(await claim(store, now=after(20))), ["a"], "the claim")


@check("I13", _NEEDS)
async def a_schedule_dropped_and_put_again_is_a_new_one(store: Driver) -> None:
    await _put(store)
    await _fire(store, _tick(0, 10), at=10)
    await store.drop_schedules(["s"])
    await _put(store, revision="r2", at=50)
    found = await _scheduled(store)
    seen = found.revision, found.created_at, found.last, found.paused
    expect(seen, ("r2", after(50), after(50), False), "the schedule")
    old = _tick(10, 20), _tick(50, 60), _tick(10, 20, revision="r2")
    expect(await _fire(store, *old, at=60), 3 * [Fired.LOST], "ticks of the former one")
    expect(await _fire(store, _tick(50, 60, revision="r2"), at=60), [Fired.FIRED], "its tick")


# --- fire ---------------------------------------------------------------------------------------


@check("I13", _NEEDS)
async def an_instant_fires_once(store: Driver) -> None:
    await _put(store)
    tick = _tick(0, 10, new_job("a"))
    expect(await _fire(store, tick, at=10), [Fired.FIRED], "the first call")
    expect(await _fire(store, tick, at=10), [Fired.LOST], "the second call")
    expect(await _fire(store, replace(tick, job=new_job("b")), at=11), [Fired.LOST], "the third")
    claimed = await claim_one(store, now=after(11))
    await record(store, claimed.hold, Completed(), now=after(12))
    expect(await _fire(store, tick, at=1e6), [Fired.LOST], "a call after the job's end")
    expect(await counted(store, after(1e6)), {"completed": 1}, "the counts")
    expect((await _scheduled(store)).last, after(10), "the last tick")


@check("I13", _NEEDS)
async def of_several_calls_at_once_one_fires_an_instant(store: Driver) -> None:
    await _put(store)
    for number in range(5):
        tick = _tick(number * 10, number * 10 + 10)
        jobs = [new_job(f"{number}-{caller}") for caller in range(6)]
        calls = [_fire(store, replace(tick, job=job), at=100) for job in jobs]
        answers = [answer.value for (answer,) in await asyncio.gather(*calls)]
        expect(sorted(answers), ["fired"] + 5 * ["lost"], "the six answers")
    expect(await counted(store, after(100)), {"pending": 5}, "the counts")


@check("I13", _NEEDS)
async def a_tick_with_another_revision_or_previous_instant_changes_nothing(store: Driver) -> None:
    await _put(store, at=0.000002)
    right = _tick(0.000002, 10)
    job = new_job("a")
    for what, wrong in (
        ("another revision", replace(right, revision="r2")),
        ("an earlier previous instant", replace(right, previous=after(0.000001))),
        ("a later previous instant", replace(right, previous=after(0.000003))),
        ("another schedule", replace(right, schedule_id="t")),
        ("the id in capitals", replace(right, schedule_id="S")),
    ):
        expect(await _fire(store, replace(wrong, job=job), at=10), [Fired.LOST], what)
    expect(await counted(store, after(10)), {}, "the counts")
    expect((await _scheduled(store)).last, after(0.000002), "the last tick")
    expect(await _fire(store, right, at=10), [Fired.FIRED], "the right one")


@check("I13", _NEEDS)
async def a_tick_is_early_until_its_instant(store: Driver) -> None:
    await _put(store)
    tick = _tick(0, 10.000001, new_job("a"))
    expect(await _fire(store, tick, at=1), [Fired.EARLY], "long before")
    expect(await _fire(store, tick, at=10), [Fired.EARLY], "a microsecond before")
    expect(await counted(store, after(10)), {}, "the counts")
    expect((await _scheduled(store)).last, after(0), "the last tick")
    expect(await _fire(store, tick, at=10.000001), [Fired.FIRED], "at its instant")
    expect((await _scheduled(store)).last, after(10.000001), "the last tick, to the microsecond")


@check("fire()", _NEEDS)
async def an_instant_may_pass_without_a_job(store: Driver) -> None:
    await _put(store)
    expect(await _fire(store, _tick(0, 10), at=30), [Fired.FIRED], "the answer")
    expect(await counted(store, after(30)), {}, "the counts")
    skipped = _tick(0, 10, new_job("a")), _tick(0, 20, new_job("b"))
    expect(await _fire(store, *skipped, at=30), 2 * [Fired.LOST], "what it has passed")
    expect(await _fire(store, _tick(10, 20, new_job("c")), at=30), [Fired.FIRED], "the next")
    expect(ids(await claim(store, now=after(30))), ["c"], "the claim")


@check("fire()", _NEEDS)
async def the_job_of_a_tick_is_enqueued_as_it_was_given(store: Driver) -> None:
    await _put(store)
    await enqueue(store, new_job("first", queue="q"), now=after(11))
    job = new_job("a", name="n", queue="q", payload=b"1", max_attempts=3, headers={"h": "1"})
    await _fire(store, _tick(0, 10, job), at=12)
    await enqueue(store, new_job("last", queue="q"), now=after(13))
    claims = await claim(store, "q", now=after(13))
    expect(ids(claims), ["first", "a", "last"], "the claim, by due time")
    seen = claims[1].job
    expect((seen.created_at, seen.run_at), (after(12), after(12)), "created_at and due time")
    expect((seen.name, seen.payload, seen.max_attempts), ("n", b"1", 3), "what was given")
    expect(dict(seen.headers), {"h": "1"}, "the headers")


@check("fire()", [*_NEEDS, Capability.DELAY])
async def the_job_of_a_tick_has_its_own_due_time(store: Driver) -> None:
    await _put(store)
    ticks = (
        _tick(0, 10, new_job("a", at=after(10))),
        _tick(10, 20, new_job("b", delay=60.0)),
    )
    expect(await _fire(store, *ticks, at=30), 2 * [Fired.FIRED], "the answers")
    expect(await counted(store, after(30)), {"pending": 1, "scheduled": 1}, "the counts")
    claimed = await claim_one(store, now=after(30))
    expect((claimed.job.id, claimed.job.run_at), ("a", after(10)), "the job that is due")
    expect(ids(await claim(store, now=after(90))), ["b"], "the claim a minute later")


@check("fire()", _NEEDS)
async def ticks_of_one_batch_are_judged_in_their_order(store: Driver) -> None:
    await _put(store)
    await _put(store, "t")
    expect(await _fire(store, at=0), [], "the answers to no tick")
    answers = await _fire(
        store,
        _tick(0, 10, new_job("z")),
        _tick(0, 10, new_job("lost")),
        _tick(10, 20, new_job("y")),
        _tick(0, 5, new_job("x"), id="t"),
        _tick(20, 99, new_job("early")),
        _tick(30, 40, new_job("gap")),
        _tick(20, 30, new_job("w")),
        at=60,
    )
    right = ["fired", "lost", "fired", "fired", "early", "lost", "fired"]
    expect([answer.value for answer in answers], right, "the answers")
    expect(ids(await claim(store, now=after(60))), ["z", "y", "x", "w"], "the claim")
    expect((await _scheduled(store)).last, after(30), "the last tick of one schedule")
    expect((await _scheduled(store, "t")).last, after(5), "that of the other")


@check("I14", _NEEDS)
async def a_known_id_lets_the_instant_pass(store: Driver) -> None:
    await _put(store)
    await enqueue(store, new_job("a"), new_job("b"))
    ticks = _tick(0, 10, new_job("a")), _tick(10, 20, new_job("b", payload=b"2"))
    expect(await _fire(store, *ticks, at=20), 2 * [Fired.FIRED], "the answers")
    claims = await claim(store, now=after(20))
    expect([c.job.payload for c in claims], [b"null", b"null"], "the payloads of the two jobs")
    expect((await _scheduled(store)).last, after(20), "the last tick")


@check("I8", [*_NEEDS, Capability.UNIQUE])
async def a_held_key_lets_the_instant_pass(store: Driver) -> None:
    await _put(store)
    key = UniqueKey(key="k")
    jobs = [new_job(f"job-{n}", payload=b"%d" % n, unique=key) for n in range(3)]
    ticks = [_tick(n * 10, n * 10 + 10, job) for n, job in enumerate(jobs[:2])]
    expect(await _fire(store, *ticks, at=20), 2 * [Fired.FIRED], "the answers")
    expect(await counted(store, after(20)), {"pending": 1}, "the counts")
    await refused(store, "job-0", at=21)
    replacing = replace(jobs[2], unique=replace(key, mode="replace"))
    expect(await _fire(store, _tick(20, 30, replacing), at=30), [Fired.FIRED], "the answer")
    claimed = await claim_one(store, now=after(30))
    expect((claimed.job.id, claimed.job.payload), ("job-0", b"2"), "the holder, replaced")
    await record(store, claimed.hold, Completed(), now=after(31))
    expect(await _fire(store, _tick(30, 40, jobs[1]), at=40), [Fired.FIRED], "the answer")
    await refused(store, "job-1", at=41)


@check("I8", [*_NEEDS, Capability.UNIQUE])
async def an_instant_that_does_not_pass_leaves_the_holder_of_its_key_alone(store: Driver) -> None:
    """Also where another instant of the call has come to the same key."""
    await _put(store)
    await _put(store, "t")
    key = UniqueKey(key="k", mode="replace")
    jobs = [new_job(f"job-{n}", payload=b"%d" % n, unique=key) for n in range(3)]
    answers = await _fire(
        store, _tick(0, 10, jobs[0]), _tick(5, 10, jobs[1], id="t"), _tick(10, 99, jobs[2]), at=20
    )
    expect(answers, [Fired.FIRED, Fired.LOST, Fired.EARLY], "the answers")
    claimed = await claim_one(store, now=after(20))
    expect((claimed.job.id, claimed.job.payload), ("job-0", b"0"), "the holder, as it was fired")


# --- pause --------------------------------------------------------------------------------------


@check("pause_schedule()", _NEEDS)
async def a_paused_schedule_fires_nothing_and_drops_what_falls_into_the_pause(
    store: Driver,
) -> None:
    await _put(store)
    expect(await store.pause_schedule("s", True, now=after(5)), True, "the answer")
    expect((await _scheduled(store)).paused, True, "paused")
    expect(await _fire(store, _tick(0, 10, new_job("a")), at=10), [Fired.LOST], "while it is")
    await store.pause_schedule("s", True, now=after(20))
    expect((await _scheduled(store)).last, after(0), "the last tick while it is paused")
    expect(await store.pause_schedule("s", False, now=after(33.25)), True, "the answer")
    found = await _scheduled(store)
    expect((found.paused, found.last), (False, after(33.25)), "paused and last after the resume")
    old = _tick(0, 10, new_job("b")), _tick(0, 40, new_job("c"))
    expect(await _fire(store, *old, at=40), 2 * [Fired.LOST], "ticks from before the pause")
    expect(await _fire(store, _tick(33.25, 40), at=40), [Fired.FIRED], "the first one after")
    expect(await counted(store, after(40)), {}, "the counts")


@check("pause_schedule()", _NEEDS)
async def resuming_a_schedule_that_is_not_paused_changes_nothing(store: Driver) -> None:
    await _put(store)
    before = await _scheduled(store)
    expect(await store.pause_schedule("s", False, now=after(60)), True, "the answer")
    expect(await _scheduled(store), before, "the schedule")
    expect(await store.pause_schedule("nobody", False, now=T0), False, "for an unknown one")
    expect(await store.pause_schedule("nobody", True, now=T0), False, "for an unknown one")
    expect([item.id for item in (await store.schedules(now=T0)).items], ["s"], "the ids")


@check("put_schedules()", _NEEDS)
async def a_paused_schedule_stays_paused_with_another_definition(store: Driver) -> None:
    await _put(store)
    await store.pause_schedule("s", True, now=after(5))
    await _put(store, at=6)
    await _put(store, revision="r2", definition=b"d2", at=10)
    found = await _scheduled(store)
    seen = found.revision, found.paused, found.last
    expect(seen, ("r2", True, after(10)), "revision, paused and last")
    tick = _tick(10, 20, revision="r2")
    expect(await _fire(store, tick, at=20), [Fired.LOST], "its tick")
    await store.pause_schedule("s", False, now=after(25))
    expect(await _fire(store, _tick(25, 30, revision="r2"), at=30), [Fired.FIRED], "the next")
