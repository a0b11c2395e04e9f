"""Checks of `expired` and `reclaim`: the job of an expired hold comes back once, and no other."""

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from tenure.driver import Capability, Driver
from tenure.outcomes import Completed, Retried
from tenure.testing.conformance.builders import (
    LEASE,
    after,
    claim,
    claim_one,
    counted,
    enqueue,
    failure,
    ids,
    new_job,
    record,
    started,
)
from tenure.testing.conformance.check import check, expect
from tenure.types import Expired, Hold, Recorded

_NEEDS = (Capability.RECLAIM,)
LATE = after(LEASE * 10)


def _jobs(holds: Sequence[Hold]) -> list[str]:
    return [hold.job_id for hold in holds]


def _looked_at(expired: Expired) -> list[str]:
    return [entry.hold.job_id for entry in expired.holds]


@check("I6", _NEEDS)
async def a_lease_that_runs_is_not_reclaimed(store: Driver) -> None:
    claimed = await started(store, "a")
    now = after(LEASE - 1)
    expect(_looked_at(await store.expired(10, now=now)), [], "the expired holds")
    expect(_jobs(await store.reclaim(10, [0.0], now=now)), [], "the reclaimed holds")
    expect(_jobs(await store.reclaim(10, [0.0], only=[claimed.hold], now=now)), [], "by name")
    await record(store, claimed.hold, Completed(), now=now)


@check("I7", _NEEDS)
async def a_lease_that_ends_too_far_ahead_is_shown_and_ended_by_name(store: Driver) -> None:
    """The clock was set back: only who watches the hold can say whether its worker lives."""
    stopped, kept = [(await started(store, id)).hold for id in ("stopped", "kept")]
    now = after(-1)
    expect(sorted(_looked_at(await store.expired(10, now=now))), ["kept", "stopped"], "both")
    expect(len((await store.expired(1, now=now)).holds), 1, "with a limit of one")
    expect(_jobs(await store.reclaim(10, [0.0], now=now)), [], "what is reclaimed unasked")
    if Capability.EXTEND in store.capabilities:
        await store.extend([kept], LEASE, now=now)
        expect(_looked_at(await store.expired(10, now=now)), ["stopped"], "after an extension")
        expect(_jobs(await store.reclaim(10, [0.0], only=[kept], now=now)), [], "the extended one")
    expect(_jobs(await store.reclaim(10, [0.0], only=[stopped], now=now)), ["stopped"], "by name")
    again = await claim_one(store, "stopped", now=now)
    expect((again.attempt, again.stalls), (2, 1), "attempt and stalls of the next claim")


@check("I7", _NEEDS)
async def a_reclaimed_job_is_pending_with_one_stall_and_its_attempt(store: Driver) -> None:
    first = await started(store, "a")
    expect(list(await store.reclaim(10, [0.0], now=LATE)), [first.hold], "the reclaimed holds")
    expect(await counted(store, LATE), {"pending": 1}, "the counts")
    second = await claim_one(store, "a", now=LATE)
    expect((second.attempt, second.stalls), (2, 1), "attempt and stalls of the next claim")
    expect(second.job.stalls, 1, "the stalls of the job of the next claim")


@check("reclaim()", _NEEDS)
async def a_reclaimed_job_waits_by_its_row_of_stalls(store: Driver) -> None:
    delays = [0.0, 10.0, 60.0]
    now = 0.0
    await started(store, "a")
    for stalls, delay in enumerate([0.0, 10.0, 60.0, 60.0, 60.0]):
        now += LEASE + 1
        expect(_jobs(await store.reclaim(10, delays, now=after(now))), ["a"], "what is reclaimed")
        if delay:
            early = await claim(store, "a", now=after(now + delay - 1))
            expect(ids(early), [], f"what is claimed before {delay} s after stall {stalls + 1}")
        now += delay
        claimed = await claim_one(store, "a", now=after(now))
        expect(claimed.stalls, stalls + 1, "the stalls")


@check("reclaim()", _NEEDS)
async def a_reclaim_ends_at_most_its_limit(store: Driver) -> None:
    for id in "abcde":
        await started(store, id)
    rounds = [await store.reclaim(2, [0.0], now=LATE) for _ in range(4)]
    expect([len(holds) for holds in rounds], [2, 2, 1, 0], "the numbers of reclaimed holds")
    expect(sorted(_jobs([h for r in rounds for h in r])), list("abcde"), "the reclaimed jobs")


@check("reclaim()", _NEEDS)
async def a_reclaim_of_only_some_holds_leaves_the_others(store: Driver) -> None:
    a, b, c = [(await started(store, id)).hold for id in "abc"]
    long = (await started(store, "long", lease=LEASE * 100)).hold
    expect(list(await store.reclaim(10, [0.0], only=[], now=LATE)), [], "with none")
    others = [replace(a, token="made up"), replace(b, serial=b.serial + 1), long]
    expect(list(await store.reclaim(10, [0.0], only=others, now=LATE)), [], "with wrong ones")
    got = await store.reclaim(10, [0.0], only=[c, a, long], now=LATE)
    expect(sorted(_jobs(got)), ["a", "c"], "with two that have expired")
    right = {"processing": 2, "pending": 2}
    expect(await counted(store, LATE), right, "the counts")
    await record(store, b, Completed(), now=LATE)


@check("I14", _NEEDS)
async def a_repeated_reclaim_changes_nothing(store: Driver) -> None:
    hold = (await started(store, "a")).hold
    await store.reclaim(10, [30.0], only=[hold], now=LATE)
    for only in (None, [hold]):
        again = await store.reclaim(10, [90.0], only=only, now=after(LEASE * 10 + 5))
        expect(list(again), [], "the holds that the repeat ended")
    claimed = await claim_one(store, "a", now=after(LEASE * 10 + 30))
    expect(claimed.stalls, 1, "the stalls")


@check("I2", _NEEDS)
async def reclaims_at_once_end_each_hold_once(store: Driver) -> None:
    holds = [(await started(store, f"job-{n}")).hold for n in range(12)]
    rounds = await asyncio.gather(*(store.reclaim(5, [0.0], now=LATE) for _ in range(6)))
    got = [hold for ended in rounds for hold in ended]
    expect(sorted(got, key=repr), sorted(holds, key=repr), "the holds that six reclaims ended")


@check("I3", _NEEDS)
async def of_a_reclaim_and_a_record_at_once_one_wins(store: Driver) -> None:
    for number in range(10):
        id = f"job-{number}"
        hold = (await started(store, id)).hold
        ended, (answer,) = await asyncio.gather(
            store.reclaim(10, [0.0], now=LATE), store.record([(hold, Completed())], now=LATE)
        )
        won = {"completed": 1} if answer is Recorded.APPLIED else {"pending": 1}
        right = [] if answer is Recorded.APPLIED else [hold]
        expect(list(ended), right, f"the holds ended by the reclaim, the record says {answer}")
        expect(await counted(store, LATE, id), won, "the counts")


@check("I1", _NEEDS)
async def a_reclaim_touches_only_what_is_processing(store: Driver) -> None:
    done = await started(store, "done")
    await record(store, done.hold, Completed())
    retried = await started(store, "retried")
    await record(store, retried.hold, Retried(0.0, failure()))
    await enqueue(store, new_job("waiting"))
    expect(list(await store.reclaim(10, [0.0], now=LATE)), [], "the reclaimed holds")
    expect(_looked_at(await store.expired(10, now=LATE)), [], "the expired holds")
    expect((await claim_one(store, "retried", now=LATE)).stalls, 0, "stalls of the retried job")


@check("expired()", _NEEDS)
async def expired_lists_what_ran_out_longest_ago_first(store: Driver) -> None:
    leases = {"b": 20.0, "long": 1000.0, "c": 10.0, "a": 30.0}
    holds = {id: (await started(store, id, lease=lease)).hold for id, lease in leases.items()}
    looked = await store.expired(10, now=after(100))
    expect(looked.now, after(100), "the instant of the look")
    expect(_looked_at(looked), ["c", "b", "a"], "the expired holds")
    for entry in looked.holds:
        id = entry.hold.job_id
        expect(entry.hold, holds[id], f"the hold of {id!r}")
        expect((entry.until, entry.lease), (after(leases[id]), leases[id]), f"end, lease of {id!r}")
    expect(_looked_at(await store.expired(2, now=after(100))), ["c", "b"], "with a limit of 2")


@check("expired()", _NEEDS)
async def expired_changes_nothing(store: Driver) -> None:
    claimed = await started(store, "a")
    first = await store.expired(10, now=LATE)
    expect(await store.expired(10, now=LATE), first, "the second look")
    expect(await counted(store, LATE), {"processing": 1}, "the counts")
    await record(store, claimed.hold, Completed(), now=LATE)


@check("reclaim()", [Capability.RECLAIM, Capability.CONTROL])
async def a_wish_to_cancel_outlives_a_reclaim(store: Driver) -> None:
    await started(store, "a")
    await store.cancel(["a"], now=after(1))
    await store.reclaim(10, [0.0], now=LATE)
    claimed = await claim_one(store, "a", now=LATE)
    expect(claimed.job.cancel_requested, True, "cancel_requested of the next claim")


@check("I7", [Capability.RECLAIM, Capability.CONTROL])
async def a_paused_queue_still_records_and_reclaims(store: Driver) -> None:
    first = await started(store, "a")
    await started(store, "b")
    for queue in ("a", "b"):
        await store.pause(queue, True)
    await record(store, first.hold, Completed(), now=after(5))
    expect(_jobs(await store.reclaim(10, [0.0], now=LATE)), ["b"], "the reclaimed jobs")
