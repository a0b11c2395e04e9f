"""Checks of I14: a call repeated after its answer was lost does nothing more."""

from tenure.driver import Capability, Driver
from tenure.outcomes import Cancelled, Completed, Failed, Outcome, Released, Retried, Snoozed
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
    started,
)
from tenure.testing.conformance.check import check, expect, expect_that
from tenure.types import Answer, QueueLimit, Recorded


@check("I14")
async def a_repeated_claim_returns_the_same_holds(store: Driver) -> None:
    await enqueue(store, *(new_job(id) for id in "edcba"))
    first = await claim(store, token="t", limit=3)
    second = await claim(store, token="t", limit=3, again=True, now=after(5))
    expect([c.hold for c in second], [c.hold for c in first], "the holds of the repeat")
    expect([c.attempt for c in second], [1, 1, 1], "the attempts of the repeat")
    expect([c.job.payload for c in second], [b"null"] * 3, "the payloads of the repeat")
    expect(await counted(store), {"processing": 3, "pending": 2}, "the counts")
    expect(ids(await claim(store, now=after(5))), ["b", "a"], "the jobs left for others")


@check("I14")
async def a_repeated_claim_takes_only_up_to_its_limits(store: Driver) -> None:
    await enqueue(store, new_job("a1", queue="a"), new_job("b1", queue="b"))
    limits = QueueLimit("a", 2), QueueLimit("b", 3)
    first = await claim(store, *limits, token="t", limit=4)
    expect(ids(first), ["a1", "b1"], "the first claim")
    await enqueue(store, *(new_job(f"{q}{n}", queue=q) for q in "ab" for n in (2, 3, 4)))
    second = await claim(store, *limits, token="t", limit=4, again=True)
    got = [[id for id in ids(second) if id[0] == queue] for queue in "ab"]
    expect_that({"a1", "b1"} <= set(ids(second)), f"the repeat lost a job: {ids(second)}")
    expect_that(len(second) <= 4, f"the repeat passed its limit of 4: {ids(second)}")
    expect_that(len(got[0]) <= 2, f"the repeat passed the limit of 2 of a queue: {got[0]}")
    expect_that(len(got[1]) <= 3, f"the repeat passed the limit of 3 of a queue: {got[1]}")


@check("I14")
async def a_repeated_claim_returns_what_it_holds_before_any_new_job(store: Driver) -> None:
    await enqueue(store, new_job("b1", queue="b"), new_job("b2", queue="b"))
    first = await claim(store, "a", "b", token="t", limit=2)
    await enqueue(store, new_job("a1", queue="a"), new_job("a2", queue="a"))
    second = await claim(store, "a", "b", token="t", limit=2, again=True)
    expect([c.hold for c in second], [c.hold for c in first], "the holds of the repeat")
    expect(await counted(store, queue="a"), {"pending": 2}, "the counts of the other queue")


@check("I14")
async def a_repeated_claim_whose_first_call_never_came_through_claims(store: Driver) -> None:
    await enqueue(store, new_job("b"), new_job("a"))
    expect(ids(await claim(store, token="t", again=True)), ["b", "a"], "the claim")


@check("I14")
async def a_repeated_claim_leaves_settled_and_foreign_holds_alone(store: Driver) -> None:
    await enqueue(store, *(new_job(id) for id in "abc"))
    settled = await claim_one(store, token="t")
    expect(ids(await claim(store, token="t", limit=1)), ["b"], "another claim of the token")
    await claim_one(store, token="other")
    await record(store, settled.hold, Completed())
    expect(ids(await claim(store, token="t", again=True)), ["b"], "the claim")


@check("I14", [Capability.RECLAIM])
async def a_repeated_claim_does_not_return_what_was_reclaimed(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    await claim(store, token="t")
    await store.reclaim(10, [0.0], now=after(100))
    other = await claim_one(store, now=after(100))
    repeat = await claim(store, token="t", again=True, now=after(101))
    expect(ids(repeat), [], "the claim repeated after another worker got the job")
    await record(store, other.hold, Completed(), now=after(102))


@check("I14", [Capability.CONTROL])
async def a_repeated_claim_returns_its_holds_of_a_paused_queue(store: Driver) -> None:
    await enqueue(store, new_job("a"), new_job("b"))
    await claim(store, token="t", limit=1)
    await store.pause("default", True)
    expect(ids(await claim(store, token="t", again=True)), ["a"], "the claim")


@check("I14", [Capability.CONTROL])
async def a_repeated_claim_tells_of_the_wish_to_cancel(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    await claim(store, token="t")
    await store.cancel(["a"], now=after(1))
    claimed = await claim_one(store, token="t", again=True, now=after(2))
    expect(claimed.job.cancel_requested, True, "cancel_requested")


_OUTCOMES: tuple[Outcome, ...] = (
    Completed(b"1"),
    Completed(),
    Completed(b""),
    Retried(0.0, failure()),
    Failed(failure("\u2603")),
    Failed(failure(), started=False),
    Cancelled("asked"),
    Snoozed(0.0),
)


@check("I14")
async def an_outcome_recorded_again_is_repeated(store: Driver) -> None:
    for number, outcome in enumerate(_OUTCOMES):
        id = f"job-{number}"
        hold = (await started(store, id)).hold
        await record(store, hold, outcome, now=after(1))
        counts = await counted(store, after(1), id)
        for now in (after(1), after(3)):
            await record(store, hold, outcome, now=now, answer=Recorded.REPEATED)
        expect(await counted(store, after(1), id), counts, f"the counts after {outcome} again")


@check("I14", [Capability.RELEASE])
async def a_release_recorded_again_is_repeated(store: Driver) -> None:
    hold = (await started(store, "a")).hold
    await record(store, hold, Released("shutdown"))
    await record(store, hold, Released("shutdown"), answer=Recorded.REPEATED)
    await record(store, hold, Released("another reason"), answer=Recorded.FENCED)
    claimed = await claim_one(store, "a")
    expect((claimed.attempt, claimed.hold.serial - hold.serial), (1, 1), "attempt, serial's growth")


@check("I14", [Capability.DELAY])
async def a_repeated_retry_leaves_the_due_time_of_the_first(store: Driver) -> None:
    hold = (await started(store, "a")).hold
    outcome = Retried(30.0, failure())
    await record(store, hold, outcome, now=after(10))
    await record(store, hold, outcome, now=after(35), answer=Recorded.REPEATED)
    expect((await claim_one(store, "a", now=after(40))).attempt, 2, "the attempt")


@check("I14")
async def a_settled_hold_is_known_until_a_later_one_is_settled(store: Driver) -> None:
    first = (await started(store, "a")).hold
    outcome = Retried(0.0, failure())
    await record(store, first, outcome)
    second = await claim_one(store, "a")
    await record(store, first, outcome, answer=Recorded.REPEATED)
    await record(store, second.hold, Completed())
    await record(store, first, outcome, answer=Recorded.FENCED)
    await record(store, second.hold, Completed(), answer=Recorded.REPEATED)


@check("I14", [Capability.RECLAIM])
async def a_settled_hold_is_known_over_a_reclaim(store: Driver) -> None:
    first = (await started(store, "a")).hold
    outcome = Snoozed(0.0)
    await record(store, first, outcome)
    await claim_one(store, "a")
    await store.reclaim(10, [0.0], now=after(100))
    await record(store, first, outcome, now=after(101), answer=Recorded.REPEATED)


@check("I14")
async def a_batch_recorded_again_is_repeated(store: Driver) -> None:
    holds = [(await started(store, f"job-{n}")).hold for n in range(10)]
    batch = [(hold, Completed(b"%d" % n)) for n, hold in enumerate(holds)]
    await store.record(batch[:4], now=after(1))
    answers = await store.record(batch, now=after(2))
    expect(list(answers), [Recorded.REPEATED] * 4 + [Recorded.APPLIED] * 6, "the answers")
    expect(await counted(store, after(2)), {"completed": 10}, "the counts")


@check("I14", [Capability.CONTROL])
async def a_repeated_cancel_or_delete_does_nothing_more(store: Driver) -> None:
    await started(store, "running")
    await enqueue(store, new_job("waiting"), new_job("doomed"))
    first = await store.cancel(["running", "waiting"], now=after(1))
    expect(list(first), [Answer.REQUESTED, Answer.DONE], "cancel")
    second = await store.cancel(["running", "waiting"], now=after(2))
    expect(list(second), [Answer.REQUESTED, Answer.FINISHED], "cancel again")
    expect(list(await store.delete(["doomed"], now=after(3))), [Answer.DONE], "delete")
    expect(list(await store.delete(["doomed"], now=after(4))), [Answer.UNKNOWN], "delete again")
    right = {"processing": 1, "cancelled": 1}
    expect(await counted(store, after(4)), right, "the counts")


@check("I14", [Capability.CONTROL])
async def a_repeated_pause_is_one_pause(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    for paused in (False, True, True, False):
        await store.pause("default", paused)
    await store.pause("default", False)
    expect((await store.counts(now=T0)).paused, frozenset[str](), "the paused queues")
    expect(ids(await claim(store)), ["a"], "the claim")
