"""Checks of I16: when all has ended and was pruned, nothing of it is left that a call could meet.

What a store keeps inside is its own affair; here is what its answers can show.
"""

from tenure.driver import Capability, Driver
from tenure.outcomes import Cancelled, Completed, Failed, Outcome, Retried
from tenure.standing import Limit, NewSchedule
from tenure.testing.conformance.builders import (
    T0,
    after,
    claim,
    claim_one,
    counted,
    enqueue,
    failure,
    ids,
    new_job,
    record,
)
from tenure.testing.conformance.check import check, expect
from tenure.testing.conformance.limiting import limited
from tenure.testing.conformance.uniqueness import keyed
from tenure.types import Held, Retention, UniqueKey

_LATE = 1e6
_LATER = _LATE + 60.0  # ids of pruned jobs are known no more
_NOTHING = Retention(completed=0.0, failed=0.0, cancelled=0.0)
_OUTCOMES: tuple[Outcome, ...] = (Completed(), Failed(failure()), Cancelled("asked"))


async def _prune(store: Driver) -> None:
    """Prune in steps until nothing goes any more."""
    while await store.prune(_NOTHING, 2, now=after(_LATE)):
        pass
    expect(await counted(store, after(_LATE)), {}, "the counts when all was pruned")


@check("I16", [Capability.UNIQUE, Capability.PRUNE])
async def no_key_is_left_when_all_jobs_were_pruned(store: Driver) -> None:
    uniques = {
        "done": UniqueKey(key="done"),
        "started": UniqueKey(key="started", until="started"),
        "period": UniqueKey(key="period", period=60.0),
        "throttle": UniqueKey(key="throttle", mode="throttle", period=60.0),
    }
    jobs = [new_job(key, unique=unique) for key, unique in uniques.items()]
    await enqueue(store, *jobs)
    for number, claimed in enumerate(await claim(store)):
        await record(store, claimed.hold, _OUTCOMES[number % 3], now=after(1))
    await _prune(store)
    await enqueue(store, *(keyed(f"new-{key}", key) for key in uniques), now=after(_LATE))
    answers = await store.enqueue(jobs, now=after(_LATER))
    right = [Held(f"new-{key}") for key in uniques]
    expect(list(answers), right, "the answers to new jobs under the former ids")


@check("I16", [Capability.LIMITS, Capability.PRUNE, Capability.RECLAIM])
async def no_place_of_a_limit_is_left_taken_when_all_jobs_were_pruned(store: Driver) -> None:
    limits = Limit(key="k", concurrent=2), Limit(key="m-*", concurrent=1)
    for limit in limits:
        await store.put_limit(limit)
    await enqueue(store, *(limited(f"{n:02}", "k", f"m-{n % 3}") for n in range(12)))
    served = 0
    for number in range(40):
        now = after(number * 10)
        for claimed in await claim(store, now=now, lease=1.0):
            if number % 4:
                await record(store, claimed.hold, _OUTCOMES[number % 3], now=now)
                served += 1
        await store.reclaim(10, [0.0], now=after(number * 10 + 5))
    expect(served, 12, "how many jobs were served")
    await _prune(store)
    jobs = [limited(id, "k", f"m-{id}") for id in ("x", "y", "z")]
    await enqueue(store, *jobs, now=after(_LATE))
    expect(ids(await claim(store, now=after(_LATE))), ["x", "y"], "a claim of three new jobs")
    expect([await store.drop_limit(limit.key) for limit in limits], [True, True], "the drops")
    expect(list(await store.limits()), [], "the limits when they were dropped")


@check("I16", [Capability.HISTORY, Capability.PRUNE])
async def no_history_is_left_when_all_jobs_were_pruned(store: Driver) -> None:
    names = [f"job-{n}" for n in range(5)]
    await enqueue(store, *(new_job(id, queue=id) for id in names))
    for number, id in enumerate(names):
        for outcome in (Retried(0.0, failure()), _OUTCOMES[number % 3]):
            claimed = await claim_one(store, id)
            await record(store, claimed.hold, outcome)
    await _prune(store)
    expect([len(await store.history(id)) for id in names], 5 * [0], "what the histories have")
    await enqueue(store, *(new_job(id) for id in names), now=after(_LATER))
    expect([len(await store.history(id)) for id in names], 5 * [0], "those of new jobs")


@check("I16", [Capability.SCHEDULES])
async def no_schedule_is_left_when_all_were_dropped(store: Driver) -> None:
    new = [NewSchedule(id=id, revision=f"of {id}", definition=b"d") for id in ("s", "t")]
    await store.put_schedules(new, now=T0)
    await store.pause_schedule("s", True, now=T0)
    expect(list(await store.drop_schedules(["s", "t"])), [True, True], "the answers")
    expect(tuple((await store.schedules(now=T0)).items), (), "the schedules")
    await store.put_schedules(new, now=after(60))
    seen = [(s.last, s.paused) for s in (await store.schedules(now=T0)).items]
    expect(seen, 2 * [(after(60), False)], "last and paused of new ones under their ids")
