"""Checks of `extend`: a lease lasts as long as it is extended, a lost hold never returns."""

from msgspec.structs import replace

from tenure.driver import Capability, Driver
from tenure.outcomes import Completed
from tenure.testing.conformance.builders import (
    LEASE,
    after,
    claim,
    claim_one,
    counted,
    record,
    started,
)
from tenure.testing.conformance.check import check, expect
from tenure.types import Hold, Kept

_NEEDS = Capability.EXTEND, Capability.RECLAIM


async def _reclaimed(store: Driver, now: float) -> list[str]:
    """Reclaim what has expired that many seconds after the start; return the job ids, sorted."""
    return sorted(hold.job_id for hold in await store.reclaim(100, [0.0], now=after(now)))


@check("I6", _NEEDS)
async def an_extended_lease_ends_that_long_after_the_extension(store: Driver) -> None:
    hold = (await started(store, "a", lease=30.0)).hold
    expect(list(await store.extend([hold], 30.0, now=after(20))), [Kept.KEPT], "extend")
    expect(await _reclaimed(store, 49), [], "what is reclaimed before the new end")
    expect(await _reclaimed(store, 51), ["a"], "what is reclaimed after the new end")


@check("extend()", _NEEDS)
async def an_extension_may_move_the_end_backwards(store: Driver) -> None:
    hold = (await started(store, "a", lease=1000.0)).hold
    expect(list(await store.extend([hold], 10.0, now=after(5))), [Kept.KEPT], "extend")
    expect(await _reclaimed(store, 14), [], "what is reclaimed before the new end")
    expect(await _reclaimed(store, 16), ["a"], "what is reclaimed after the new end")


@check("I6", _NEEDS)
async def an_expired_hold_that_nobody_reclaimed_is_extended(store: Driver) -> None:
    hold = (await started(store, "a", lease=10.0)).hold
    expect(list(await store.extend([hold], 10.0, now=after(100))), [Kept.KEPT], "extend")
    expect(await _reclaimed(store, 105), [], "what is reclaimed after the extension")
    await record(store, hold, Completed(), now=after(106))


@check("I3", _NEEDS)
async def a_reclaimed_hold_is_lost_and_not_revived(store: Driver) -> None:
    first = await started(store, "a", lease=10.0)
    expect(await _reclaimed(store, 20), ["a"], "what is reclaimed")
    expect(list(await store.extend([first.hold], 500.0, now=after(21))), [Kept.LOST], "waiting")
    expect(await counted(store, after(21)), {"pending": 1}, "the counts after it was lost")
    second = await claim_one(store, "a", now=after(22), lease=10.0)
    lost = await store.extend([first.hold], 500.0, now=after(23))
    expect(list(lost), [Kept.LOST], "claimed by another")
    expect(await _reclaimed(store, 40), ["a"], "what is reclaimed at the end of the second lease")
    lost = await store.extend([second.hold], 500.0, now=after(41))
    expect(list(lost), [Kept.LOST], "the second hold")


@check("I3", _NEEDS)
async def an_extension_with_another_token_or_serial_changes_nothing(store: Driver) -> None:
    hold = (await started(store, "a", lease=10.0)).hold
    others = [
        replace(hold, token="made up"),
        replace(hold, serial=hold.serial + 1),
        replace(hold, serial=hold.serial - 1),
        Hold("nobody", hold.serial, hold.token),
    ]
    expect(list(await store.extend(others, 500.0, now=after(5))), [Kept.LOST] * 4, "extend")
    expect(await _reclaimed(store, 11), ["a"], "what is reclaimed at the end of the lease")


@check("extend()", _NEEDS)
async def each_hold_of_a_batch_is_answered_by_itself(store: Driver) -> None:
    holds = [(await started(store, id)).hold for id in ("a", "b", "c")]
    await record(store, holds[1], Completed())
    answers = await store.extend(holds, 100.0, now=after(10))
    expect(list(answers), [Kept.KEPT, Kept.LOST, Kept.KEPT], "the answers")
    expect(list(await store.extend([], 100.0, now=after(10))), [], "the answers to nothing")
    expect(await _reclaimed(store, 109), [], "what is reclaimed before the new end")
    expect(await _reclaimed(store, 111), ["a", "c"], "what is reclaimed after the new end")


@check("extend()", [*_NEEDS, Capability.CONTROL])
async def an_extension_tells_of_the_wish_to_cancel_and_holds(store: Driver) -> None:
    hold = (await started(store, "a", lease=10.0)).hold
    await store.cancel(["a"], now=after(1))
    for now in (5, 6):
        answers = await store.extend([hold], 100.0, now=after(now))
        expect(list(answers), [Kept.CANCEL_REQUESTED], "the answers after the wish to cancel")
    expect(await _reclaimed(store, 100), [], "what is reclaimed before the new end")


@check("I14", _NEEDS)
async def a_repeated_extension_is_answered_alike(store: Driver) -> None:
    hold = (await started(store, "a", lease=10.0)).hold
    for _ in range(2):
        expect(list(await store.extend([hold], 20.0, now=after(5))), [Kept.KEPT], "extend")
    expect(await _reclaimed(store, 24), [], "what is reclaimed before the new end")
    expect(await _reclaimed(store, 26), ["a"], "what is reclaimed after the new end")


@check("I6", [Capability.RECLAIM])
async def each_lease_has_its_own_length(store: Driver) -> None:
    await started(store, "short", lease=10.0)
    await started(store, "long", lease=1000.0)
    await started(store, "middle", lease=100.0)
    expect(await _reclaimed(store, 11), ["short"], "what is reclaimed after 11 s")
    expect(await _reclaimed(store, 101), ["middle"], "what is reclaimed after 101 s")
    expect(await _reclaimed(store, 999), [], "what is reclaimed after 999 s")
    expect(await _reclaimed(store, 1001), ["long"], "what is reclaimed after 1001 s")


@check("I4", [Capability.EXTEND])
async def an_extension_spends_neither_attempt_nor_serial(store: Driver) -> None:
    first = await started(store, "a")
    await store.extend([first.hold], LEASE, now=after(LEASE * 3))
    await record(store, first.hold, Completed(), now=after(LEASE * 3))
    expect(list(await claim(store, "a", now=after(LEASE * 9))), [], "the claim afterwards")
