"""Checks of I3: a write under a hold that is not current changes nothing."""

import asyncio

from msgspec.structs import replace

from tenure.driver import Capability, Driver
from tenure.outcomes import Cancelled, Completed, Failed, Outcome, Retried, Snoozed
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
    stored,
)
from tenure.testing.conformance.check import check, expect
from tenure.types import Answer, Claim, Hold, Kept, Move, Recorded


async def _is_current(store: Driver, claimed: Claim) -> None:
    """The job still runs under that claim, whose outcome is applied."""
    expect(await counted(store, queue=claimed.job.queue), {"processing": 1}, "the counts")
    await record(store, claimed.hold, Completed(b"right"))


@check("I3")
async def record_with_another_token_changes_nothing(store: Driver) -> None:
    claimed = await started(store, "a")
    other = Hold("a", claimed.hold.serial, claimed.hold.token[::-1] + "x")
    await record(store, other, Completed(b"wrong"), answer=Recorded.FENCED)
    await _is_current(store, claimed)


@check("I3")
async def record_with_another_serial_changes_nothing(store: Driver) -> None:
    claimed = await started(store, "a")
    for serial in (claimed.hold.serial - 1, claimed.hold.serial + 1):
        other = Hold("a", serial, claimed.hold.token)
        await record(store, other, Completed(b"wrong"), answer=Recorded.FENCED)
    await _is_current(store, claimed)


@check("I3")
async def record_with_an_older_hold_changes_nothing(store: Driver) -> None:
    first = await started(store, "a")
    await record(store, first.hold, Snoozed(0.0))
    second = await claim_one(store, "a")
    await record(store, first.hold, Completed(b"wrong"), answer=Recorded.FENCED)
    await _is_current(store, second)


@check("I3")
async def record_with_an_older_hold_of_the_same_token_changes_nothing(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    first = await claim_one(store, token="t")
    await record(store, first.hold, Snoozed(0.0))
    second = await claim_one(store, token="t")
    await record(store, first.hold, Completed(b"wrong"), answer=Recorded.FENCED)
    await _is_current(store, second)


@check("I3")
async def a_settled_hold_takes_no_other_outcome(store: Driver) -> None:
    others: list[Outcome] = [
        Completed(b"2"),
        Completed(),
        Failed(failure()),
        Cancelled("asked"),
        Retried(0.0, failure()),
        Snoozed(0.0),
    ]
    claimed = await started(store, "a")
    await record(store, claimed.hold, Completed(b"1"))
    for other in others:
        await record(store, claimed.hold, other, answer=Recorded.FENCED)
    expect(await counted(store), {"completed": 1}, "the counts")


@check("I3")
async def a_hold_of_a_job_that_waits_is_fenced(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    for serial in (0, 1):
        await record(store, Hold("a", serial, "t"), Completed(), answer=Recorded.FENCED)
        await record(store, Hold("a", serial, ""), Completed(), answer=Recorded.FENCED)
    expect(ids(await claim(store)), ["a"], "the claim")


@check("record()")
async def a_hold_of_no_job_is_unknown_and_leaves_nothing_behind(store: Driver) -> None:
    await record(store, Hold("a", 1, "t"), Completed(), answer=Recorded.UNKNOWN)
    expect(await counted(store), {}, "the counts")
    await enqueue(store, new_job("a"))
    expect((await claim_one(store)).attempt, 1, "the attempt of a job enqueued under that id")


@check("record()", [Capability.CONTROL])
async def a_hold_of_a_deleted_job_is_unknown(store: Driver) -> None:
    claimed = await started(store, "a")
    await record(store, claimed.hold, Retried(0.0, failure()))
    await store.delete(["a"], now=after(1))
    await record(store, claimed.hold, Completed(), now=after(2), answer=Recorded.UNKNOWN)
    expect(await counted(store), {}, "the counts")


@check("I3", [Capability.RECLAIM])
async def a_reclaimed_hold_is_fenced_before_and_after_the_next_claim(store: Driver) -> None:
    first = await started(store, "a")
    await store.reclaim(10, [0.0], now=after(LEASE * 2))
    await record(store, first.hold, Completed(), now=after(61), answer=Recorded.FENCED)
    expect(await counted(store, after(61)), {"pending": 1}, "the counts before the next claim")
    second = await claim_one(store, "a", now=after(62))
    await record(store, first.hold, Completed(), now=after(63), answer=Recorded.FENCED)
    await _is_current(store, second)


@check("I3", [Capability.RECLAIM])
async def a_reclaim_takes_a_serial_of_its_own(store: Driver) -> None:
    first = await started(store, "a")
    await store.reclaim(10, [0.0], now=after(LEASE * 2))
    second = await claim_one(store, "a", now=after(LEASE * 2))
    growth = second.hold.serial - first.hold.serial
    expect(growth, 2, "the growth of the serial over a reclaim and a claim")
    between = replace(first.hold, serial=first.hold.serial + 1)
    await record(store, between, Completed(), now=after(61), answer=Recorded.FENCED)
    await _is_current(store, second)


@check("I3")
async def of_two_outcomes_recorded_at_once_one_is_applied(store: Driver) -> None:
    for number in range(10):
        hold = (await started(store, f"job-{number}")).hold
        outcomes: list[Outcome] = [Completed(b"1"), Failed(failure()), Cancelled("asked")]
        calls = [store.record([(hold, outcome)], now=after(1)) for outcome in outcomes]
        answers = [answer for (answer,) in await asyncio.gather(*calls)]
        right = ["applied", "fenced", "fenced"]
        expect(sorted(answer.value for answer in answers), right, "the three answers")
        winner = ("completed", "failed", "cancelled")[answers.index(Recorded.APPLIED)]
        expect(await counted(store, queue=f"job-{number}"), {winner: 1}, "the counts")


@check("I3 I14")
async def an_outcome_recorded_twice_at_once_is_applied_once(store: Driver) -> None:
    hold = (await started(store, "a")).hold
    calls = [store.record([(hold, Retried(0.0, failure()))], now=after(1)) for _ in range(4)]
    answers = [answer.value for (answer,) in await asyncio.gather(*calls)]
    expect(sorted(answers), ["applied"] + 3 * ["repeated"], "the four answers")


@check("I3", [Capability.PROGRESS, Capability.INSPECT])
async def progress_is_stored_under_the_current_hold_only(store: Driver) -> None:
    claimed = await started(store, "a")
    expect(await store.progress(claimed.hold, b"1", now=after(1)), Recorded.APPLIED, "progress")
    other = replace(claimed.hold, serial=claimed.hold.serial + 1)
    expect(await store.progress(other, b"2", now=after(2)), Recorded.FENCED, "another serial")
    other = replace(claimed.hold, token="made up")
    expect(await store.progress(other, b"3", now=after(2)), Recorded.FENCED, "another token")
    other = replace(claimed.hold, job_id="nobody")
    expect(await store.progress(other, b"4", now=after(2)), Recorded.UNKNOWN, "no such job")
    expect((await stored(store, "a")).progress, b"1", "the progress stored")
    await record(store, claimed.hold, Completed(), now=after(3))
    expect(await store.progress(claimed.hold, b"5", now=after(4)), Recorded.FENCED, "too late")
    expect((await stored(store, "a")).progress, b"1", "the progress stored after the end")


@check("I1", [Capability.EXTEND, Capability.RECLAIM, Capability.CONTROL, Capability.INSPECT])
async def a_job_that_has_ended_is_changed_by_nothing(store: Driver) -> None:
    for id, outcome in (("a", Completed(b"1")), ("b", Failed(failure())), ("c", Cancelled("x"))):
        hold = (await started(store, id)).hold
        await record(store, hold, outcome, now=after(1))
        before = await stored(store, id)
        later = after(LEASE * 10)
        await record(store, hold, Retried(0.0, failure()), now=later, answer=Recorded.FENCED)
        expect(list(await store.extend([hold], 60.0, now=later)), [Kept.LOST], "extend")
        expect(list(await store.reclaim(10, [0.0], now=later)), [], "reclaim")
        expect(list(await store.reclaim(10, [0.0], only=[hold], now=later)), [], "reclaim only")
        moved = await store.move([Move(job_id=id, queue="x", priority=1)], now=later)
        expect(list(moved), [Answer.FINISHED], "move")
        expect(list(await store.cancel([id], now=later)), [Answer.FINISHED], "cancel")
        expect(await stored(store, id), before, f"the job {id!r} afterwards")
