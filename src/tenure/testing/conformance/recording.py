"""Checks of `record`: what each outcome makes of its job."""

from tenure.driver import Capability, Driver, RecordItem
from tenure.outcomes import (
    Cancelled,
    Completed,
    Failed,
    Outcome,
    Released,
    Retried,
    Snoozed,
    settle,
)
from tenure.states import TERMINAL, State
from tenure.testing.conformance.builders import (
    LEASE,
    after,
    claim,
    claim_one,
    counted,
    failure,
    ids,
    record,
    started,
    stored,
)
from tenure.testing.conformance.check import check, expect
from tenure.types import Answer, Claim, Hold, Recorded

ENDS: tuple[Outcome, ...] = (
    Completed(b"1"),
    Completed(),
    Failed(failure()),
    Failed(failure(), started=False),
    Cancelled("asked"),
    Cancelled("asked", started=False),
)


@check("I1")
async def a_job_that_has_ended_is_counted_as_such_and_never_claimed(store: Driver) -> None:
    for number, outcome in enumerate(ENDS):
        claimed = await started(store, f"job-{number}")
        await record(store, claimed.hold, outcome)
    expect(await counted(store), {"completed": 2, "failed": 2, "cancelled": 2}, "the counts")
    queues = [f"job-{number}" for number in range(len(ENDS))]
    expect(ids(await claim(store, *queues, now=after(1e6))), [], "the jobs claimed later")


@check("I1", [Capability.INSPECT])
async def an_end_is_stored_with_its_attempt_and_instant(store: Driver) -> None:
    for number, outcome in enumerate(ENDS):
        claimed = await started(store, f"job-{number}")
        await record(store, claimed.hold, outcome, now=after(7))
        job = await stored(store, f"job-{number}")
        right = settle(outcome, attempt=1, stalls=0, cancel_requested=False)
        expect((job.state, job.attempt), (right.state, right.attempt), f"the job after {outcome}")
        expect(job.finished_at, after(7), f"the instant of the end after {outcome}")


@check("record()", [Capability.INSPECT])
async def a_completion_stores_its_result_and_clears_the_error(store: Driver) -> None:
    claimed = await started(store, "a")
    await record(store, claimed.hold, Retried(0.0, failure()))
    claimed = await claim_one(store, "a")
    await record(store, claimed.hold, Completed(b"[1]"))
    job = await stored(store, "a")
    expect((job.result, job.error), (b"[1]", None), "the result and the error")


@check("record()", [Capability.INSPECT])
async def a_failure_is_stored_as_the_error(store: Driver) -> None:
    claimed = await started(store, "a")
    await record(store, claimed.hold, Retried(0.0, failure("first")))
    expect((await stored(store, "a")).error, failure("first"), "the error while a retry waits")
    claimed = await claim_one(store, "a")
    expect(claimed.job.error, failure("first"), "the error that the next claim shows")
    last = failure("last", kind="timeout", attempt=2)
    await record(store, claimed.hold, Failed(last))
    job = await stored(store, "a")
    expect((job.error, job.result), (last, None), "the error and the result at the end")


@check("I4", [Capability.DELAY])
async def a_retried_job_waits_its_delay_and_keeps_its_attempt(store: Driver) -> None:
    claimed = await started(store, "a")
    await record(store, claimed.hold, Retried(30.0, failure()), now=after(10))
    expect(await counted(store, after(39)), {"scheduled": 1}, "the counts before its time")
    expect(ids(await claim(store, "a", now=after(39))), [], "the jobs claimed before its time")
    expect((await claim_one(store, "a", now=after(40))).attempt, 2, "the next attempt")


@check("I4", [Capability.DELAY])
async def a_snoozed_job_waits_its_delay_and_gets_its_start_back(store: Driver) -> None:
    claimed = await started(store, "a")
    await record(store, claimed.hold, Snoozed(30.0), now=after(10))
    expect(ids(await claim(store, "a", now=after(39))), [], "the jobs claimed before its time")
    expect((await claim_one(store, "a", now=after(40))).attempt, 1, "the next attempt")


@check("I4", [Capability.RELEASE])
async def a_released_job_gets_its_start_back(store: Driver) -> None:
    claimed = await started(store, "a")
    await record(store, claimed.hold, Released("shutdown"), now=after(5))
    expect(await counted(store, after(5)), {"pending": 1}, "the counts")
    expect((await claim_one(store, "a", now=after(5))).attempt, 1, "the next attempt")


async def _stalled_twice(store: Driver, id: str) -> Claim:
    """Claim the job for the third time, at 200 s, after two leases in a row have run out."""
    await started(store, id)
    await store.reclaim(100, [0.0], now=after(90))
    await claim_one(store, id, now=after(90))
    await store.reclaim(100, [0.0], now=after(200))
    claimed = await claim_one(store, id, now=after(200))
    expect((claimed.stalls, claimed.attempt), (2, 3), "stalls and attempt after two stalls")
    return claimed


@check("I4", [Capability.RECLAIM])
async def a_retry_and_a_snooze_end_the_row_of_stalls(store: Driver) -> None:
    for id, outcome in (("retried", Retried(0.0, failure())), ("snoozed", Snoozed(0.0))):
        claimed = await _stalled_twice(store, id)
        await record(store, claimed.hold, outcome, now=after(201))
        again = await claim_one(store, id, now=after(201))
        expect(again.stalls, 0, f"the stalls after {id}")
        await record(store, again.hold, Completed(), now=after(201))


@check("I4", [Capability.RECLAIM, Capability.RELEASE])
async def a_release_keeps_the_row_of_stalls(store: Driver) -> None:
    claimed = await _stalled_twice(store, "a")
    await record(store, claimed.hold, Released("shutdown"), now=after(201))
    again = await claim_one(store, "a", now=after(201))
    expect((again.stalls, again.attempt), (2, 3), "stalls and attempt after the release")


@check("I4", [Capability.RECLAIM, Capability.INSPECT])
async def an_end_ends_the_row_of_stalls(store: Driver) -> None:
    outcomes: tuple[Outcome, ...] = Completed(), Failed(failure()), Cancelled("asked")
    for number, outcome in enumerate(outcomes):
        claimed = await _stalled_twice(store, f"job-{number}")
        await record(store, claimed.hold, outcome, now=after(201))
        job = await stored(store, f"job-{number}")
        expect((job.stalls, job.attempt), (0, 3), f"stalls and attempt after {outcome}")


@check("I12")
async def a_batch_answers_each_item_by_itself(store: Driver) -> None:
    first, second, third = [await started(store, id) for id in ("a", "b", "c")]
    await record(store, third.hold, Completed(b"3"))
    items: list[RecordItem] = [
        (Hold("nobody", 1, first.hold.token), Completed()),
        (first.hold, Completed(b"1")),
        (Hold("b", second.hold.serial, "made up"), Completed(b"x")),
        (third.hold, Completed(b"3")),
    ]
    right = [Recorded.UNKNOWN, Recorded.APPLIED, Recorded.FENCED, Recorded.REPEATED]
    expect(list(await store.record(items, now=after(1))), right, "the answers")
    expect(await counted(store), {"completed": 2, "processing": 1}, "the counts")


@check("record()")
async def a_batch_applies_every_kind_of_outcome(store: Driver) -> None:
    outcomes: list[Outcome] = [
        Completed(b"1"),
        Retried(0.0, failure()),
        Failed(failure()),
        Cancelled("asked"),
        Snoozed(0.0),
        *(Completed(b"%d" % n) for n in range(20)),
    ]
    holds = [(await started(store, f"job-{n}")).hold for n in range(len(outcomes))]
    answers = await store.record(list(zip(holds, outcomes, strict=True)), now=after(1))
    expect(list(answers), [Recorded.APPLIED] * len(holds), "the answers")
    right = {"pending": 2, "completed": 21, "failed": 1, "cancelled": 1}
    expect(await counted(store, after(1)), right, "the counts")


@check("I7")
async def an_outcome_under_an_expired_hold_is_applied(store: Driver) -> None:
    claimed = await started(store, "a")
    await record(store, claimed.hold, Completed(b"1"), now=after(LEASE * 10))
    expect(await counted(store, after(LEASE * 10)), {"completed": 1}, "the counts")


async def _asked_to_cancel(store: Driver, id: str, outcome: Outcome) -> str:
    """Record the outcome for a running job that was asked to cancel; return where it is counted."""
    claimed = await started(store, id)
    expect(list(await store.cancel([id], now=after(1))), [Answer.REQUESTED], "the cancel")
    await record(store, claimed.hold, outcome, now=after(2))
    counts = await counted(store, after(2), id)
    return " ".join(counts)


@check("I1", [Capability.CONTROL])
async def a_job_asked_to_cancel_is_cancelled_instead_of_retried(store: Driver) -> None:
    for id, outcome in (("retried", Retried(0.0, failure())), ("snoozed", Snoozed(0.0))):
        expect(await _asked_to_cancel(store, id, outcome), State.CANCELLED, f"the {id} job")
    expect(ids(await claim(store, "retried", "snoozed", now=after(1e6))), [], "what is claimed")


@check("I1", [Capability.CONTROL, Capability.RELEASE])
async def a_job_asked_to_cancel_is_cancelled_instead_of_released(store: Driver) -> None:
    state = await _asked_to_cancel(store, "a", Released("shutdown"))
    expect(state, State.CANCELLED, "the released job")


@check("I1", [Capability.CONTROL])
async def a_completion_or_failure_stands_against_the_wish_to_cancel(store: Driver) -> None:
    for number, outcome in enumerate(ENDS):
        state = await _asked_to_cancel(store, f"job-{number}", outcome)
        right = settle(outcome, attempt=1, stalls=0, cancel_requested=True).state
        expect(state, right, f"the job after {outcome}")


@check("I4", [Capability.CONTROL, Capability.INSPECT, Capability.RELEASE, Capability.DELAY])
async def a_job_cancelled_by_wish_has_the_attempt_of_its_outcome(store: Driver) -> None:
    outcomes: tuple[Outcome, ...] = Retried(5.0, failure()), Snoozed(5.0), Released("shutdown")
    for number, outcome in enumerate(outcomes):
        await _asked_to_cancel(store, f"job-{number}", outcome)
        job = await stored(store, f"job-{number}")
        right = settle(outcome, attempt=1, stalls=0, cancel_requested=True)
        expect((job.state, job.attempt), (right.state, right.attempt), f"after {outcome}")
        expect(job.state in TERMINAL and job.finished_at, after(2), "the instant of the end")
