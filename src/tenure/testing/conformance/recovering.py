"""Checks of `lifeline` and `shorten`: only who is gone has its leases end earlier.

A store that cannot have a lifeline where it is answers None, and is asked no more.
"""

from tenure.driver import Capability, Driver
from tenure.outcomes import Completed
from tenure.testing.conformance.builders import (
    LEASE,
    after,
    claim_one,
    counted,
    enqueue,
    new_job,
    record,
)
from tenure.testing.conformance.check import check, expect, expect_that, refuse
from tenure.types import Claim, Hold, Kept

_NEEDS = (Capability.LIFELINE, Capability.RECLAIM)
_SOON = 10.0  # seconds within which the lease of a worker that is gone has to end


async def _held(store: Driver, worker: str, id: str) -> Claim:
    """Enqueue a job into a queue of its own, and let the worker claim it."""
    await enqueue(store, new_job(id, queue=id))
    return await claim_one(store, id, worker=worker)


async def _cut(store: Driver, *workers: str) -> list[Claim]:
    """Let each worker claim a job of its own name and be gone; empty where no lifeline can be."""
    claims: list[Claim] = []
    for worker in workers:
        lifeline = await store.lifeline(worker)
        if lifeline is None:
            return []
        claims.append(await _held(store, worker, worker))
        await lifeline.cut()
    return claims


async def _ends(store: Driver, at: float) -> dict[Hold, float]:
    """When the lease of each hold ends that has run out at that instant, in seconds after T0."""
    found = await store.expired(100, now=after(at))
    return {entry.hold: (entry.until - after(0)).total_seconds() for entry in found.holds}


@check("I7", _NEEDS)
async def the_leases_of_a_worker_that_is_gone_run_out_soon(store: Driver) -> None:
    claims = await _cut(store, "one", "two")
    if not claims:
        return
    left = await store.shorten(now=after(1))
    if left is None:
        refuse("shorten() answered None while two workers were gone")
    expect_that(0 <= left <= _SOON, f"shorten() answered {left:g} s, not 0 to {_SOON:g} s")
    holds = [claimed.hold for claimed in claims]
    expect(set(await _ends(store, 1 + left)), set(holds), "the expired holds then")
    ended = await store.reclaim(10, [0.0], now=after(1 + left))
    expect(set(ended), set(holds), "the reclaimed holds")
    expect(await counted(store, after(1 + left)), {"pending": 2}, "the counts")
    again = await claim_one(store, "one", now=after(1 + left))
    expect((again.attempt, again.stalls), (2, 1), "attempt and stalls of the next claim")
    expect(await store.shorten(now=after(2 + left)), None, "shorten() when all was reclaimed")


@check("I6", _NEEDS)
async def a_worker_that_lives_keeps_its_leases(store: Driver) -> None:
    living = await store.lifeline("living")
    kept = await _held(store, "living", "kept")
    if living is not None and not await _cut(store, "gone"):
        refuse("lifeline() answered None after it had given one")
    await store.shorten(now=after(1))
    expect_that(
        kept.hold not in await _ends(store, LEASE - 1),
        "the hold of a worker with a lifeline had run out before its lease",
    )
    if living is not None:
        await living.close()


@check("I6", _NEEDS)
async def a_worker_without_a_lifeline_is_never_taken_for_gone(store: Driver) -> None:
    await _held(store, "stranger", "kept")
    expect(await store.shorten(now=after(1)), None, "shorten()")
    expect(await _ends(store, LEASE - 1), {}, "the expired holds before the end of the lease")


@check("I6", _NEEDS)
async def a_worker_that_gave_its_lifeline_up_is_not_taken_for_gone(store: Driver) -> None:
    lifeline = await store.lifeline("leaving")
    await _held(store, "leaving", "kept")
    if lifeline is not None:
        await lifeline.close()
        await lifeline.close()
    expect(await store.shorten(now=after(1)), None, "shorten()")
    expect(await _ends(store, LEASE - 1), {}, "the expired holds before the end of the lease")


@check("shorten()", _NEEDS)
async def a_lease_never_ends_later_for_having_been_shortened(store: Driver) -> None:
    claims = await _cut(store, "gone")
    if not claims:
        return
    for instant in (LEASE - 1e-3, LEASE + 60):
        await store.shorten(now=after(instant))
    [end] = (await _ends(store, LEASE + 120)).values()
    expect_that(end <= LEASE, f"a lease of {LEASE:g} s ended after {end:g} s")


@check("I14", _NEEDS)
async def a_repeated_shorten_changes_nothing(store: Driver) -> None:
    if not await _cut(store, "gone"):
        return
    left = await store.shorten(now=after(1))
    before = await _ends(store, LEASE)
    again = await store.shorten(now=after(1))
    expect(again, left, "the second answer")
    expect(await _ends(store, LEASE), before, "the ends of the leases")


@check("I3", (*_NEEDS, Capability.EXTEND))
async def a_shortened_hold_is_current_until_it_is_reclaimed(store: Driver) -> None:
    claims = await _cut(store, "one", "two")
    if not claims:
        return
    one, two = (claimed.hold for claimed in claims)
    await store.shorten(now=after(1))
    expect(list(await store.extend([one], LEASE, now=after(2))), [Kept.KEPT], "extending it")
    expect_that(one not in await _ends(store, LEASE), "an extended hold had run out")
    await record(store, two, Completed(), now=after(LEASE))
