"""Checks of `history`: the attempts that did not complete a job, each once, and no more of them."""

from collections.abc import Sequence

from tenure.driver import Capability, Driver
from tenure.history import PastAttempt
from tenure.outcomes import Cancelled, Completed, Failed, Outcome, Released, Retried, Snoozed
from tenure.testing.conformance.builders import (
    LEASE,
    after,
    claim_one,
    enqueue,
    failure,
    new_job,
    record,
    started,
)
from tenure.testing.conformance.check import check, expect
from tenure.types import Answer, Claim, JobFilter, ManualRetry, Recorded, Retention

_NEEDS = (Capability.HISTORY,)
_CONTROL = (Capability.HISTORY, Capability.CONTROL)
_RETRIED = Retried(0.0, failure())
_NEWEST = 100


async def _kept(store: Driver, id: str) -> list[tuple[int, str]]:
    """Attempt and outcome of what the history has, oldest first."""
    return [(past.attempt, past.outcome) for past in await store.history(id)]


async def _past(store: Driver, id: str, number: int) -> Sequence[PastAttempt]:
    """The history, which must be of so many attempts."""
    history = await store.history(id)
    expect(len(history), number, f"how many attempts the history of {id!r} has")
    return history


async def _tried(store: Driver, id: str, outcome: Outcome, *, at: float, queue: str = "a") -> Claim:
    """Claim the only job of the queue and record the outcome, both at that instant."""
    claimed = await claim_one(store, queue, now=after(at))
    expect(claimed.job.id, id, f"the job claimed after {at} s")
    await record(store, claimed.hold, outcome, now=after(at))
    return claimed


@check("history()", _NEEDS)
async def a_job_without_a_past_has_no_history(store: Driver) -> None:
    expect(list(await store.history("nobody")), [], "the history of an unknown job")
    await enqueue(store, new_job("a"))
    expect(list(await store.history("a")), [], "the history of a job that waits")
    claimed = await claim_one(store)
    expect(list(await store.history("a")), [], "the history of a job that runs")
    await record(store, claimed.hold, Completed(), now=after(1))
    expect(list(await store.history("a")), [], "the history of a job that completed at once")


@check("history()", _NEEDS)
async def a_retried_attempt_is_kept_with_its_claim_and_its_end(store: Driver) -> None:
    await enqueue(store, new_job("a", queue="a"))
    claimed = await claim_one(store, "a", now=after(2.25), worker="its worker")
    outcome = Retried(0.0, failure("broke \u00e9\u65e5", kind="timeout", attempt=7))
    await record(store, claimed.hold, outcome, now=after(3.000001))
    right = PastAttempt(
        attempt=1,
        serial=claimed.hold.serial,
        outcome="retried",
        started_at=after(2.25),
        ended_at=after(3.000001),
        worker="its worker",
        kind="timeout",
        message="broke \u00e9\u65e5",
    )
    expect(list(await store.history("a")), [right], "the history")


@check("history()", _NEEDS)
async def a_failed_and_a_cancelled_attempt_are_kept(store: Driver) -> None:
    outcomes: dict[str, Outcome] = {
        "failed": Failed(failure("for good", kind="panic")),
        "cancelled": Cancelled("was asked to"),
    }
    for id, outcome in outcomes.items():
        claimed = await started(store, id)
        await record(store, claimed.hold, outcome, now=after(5))
        (past,) = await _past(store, id, 1)
        seen = past.attempt, past.serial, past.started_at, past.ended_at, past.worker
        right = 1, claimed.hold.serial, after(0), after(5), "worker-1"
        expect(seen, right, f"the attempt of the {id} job")
        text = ("panic", "for good") if id == "failed" else ("", "was asked to")
        expect((past.outcome, past.kind, past.message), (id, *text), f"how the {id} job ended")


@check("history()", [*_NEEDS, Capability.RECLAIM])
async def an_attempt_whose_lease_ran_out_is_kept_as_stalled(store: Driver) -> None:
    await started(store, "a")
    await store.reclaim(10, [0.0], now=after(LEASE))
    await claim_one(store, "a", now=after(40), worker="another")
    await store.reclaim(10, [0.0], now=after(200))
    first, second = await _past(store, "a", 2)
    seen = first.attempt, first.outcome, first.kind, first.worker
    expect(seen, (1, "stalled", "stalled", "worker-1"), "the first attempt")
    expect((first.started_at, first.ended_at), (after(0), after(LEASE)), "its claim and end")
    expect((second.attempt, second.outcome, second.worker), (2, "stalled", "another"), "the next")
    expect((second.started_at, second.ended_at), (after(40), after(200)), "its claim and end")
    expect(second.serial - first.serial, 2, "the growth of the serial")


@check("history()", _NEEDS)
async def an_attempt_that_completed_or_was_given_back_is_not_kept(store: Driver) -> None:
    await enqueue(store, new_job("a", queue="a"))
    await _tried(store, "a", Snoozed(0.0), at=1)
    await _tried(store, "a", _RETRIED, at=2)
    await _tried(store, "a", Completed(), at=3)
    expect(await _kept(store, "a"), [(1, "retried")], "the history")
    for id, outcome in (
        ("failed", Failed(failure(), started=False)),
        ("cancelled", Cancelled("asked", started=False)),
    ):
        await record(store, (await started(store, id)).hold, outcome)
        expect(list(await store.history(id)), [], f"the history of the {id} job")


@check("history()", [*_NEEDS, Capability.RELEASE])
async def a_released_attempt_is_not_kept(store: Driver) -> None:
    await enqueue(store, new_job("a", queue="a"))
    await _tried(store, "a", Released("shutdown"), at=1)
    await _tried(store, "a", Released("unknown", 0.0), at=2)
    await _tried(store, "a", _RETRIED, at=3)
    expect(await _kept(store, "a"), [(1, "retried")], "the history")


@check("history()", _NEEDS)
async def a_message_is_cut_to_a_thousand_characters(store: Driver) -> None:
    texts = {"plain": "x" * 5000, "wide": "\u65e5" * 1001, "astral": "\U0001f600" * 1500}
    texts |= {"fits": "\u00e9" * 1000, "empty": ""}
    for id, text in texts.items():
        await enqueue(store, new_job(id, queue=id))
        await _tried(store, id, Retried(0.0, failure(text)), at=1, queue=id)
        await _tried(store, id, Cancelled(text), at=2, queue=id)
        kept = [past.message for past in await store.history(id)]
        expect(kept, 2 * [text[:1000]], f"the messages of the {id} text")


@check("I14", [*_NEEDS, Capability.RECLAIM])
async def a_repeated_or_fenced_outcome_adds_nothing_to_the_history(store: Driver) -> None:
    first = await started(store, "a")
    await record(store, first.hold, _RETRIED, now=after(1))
    await record(store, first.hold, _RETRIED, now=after(2), answer=Recorded.REPEATED)
    expect(await _kept(store, "a"), [(1, "retried")], "the history after the repeat")
    second = await claim_one(store, "a", now=after(3))
    await store.reclaim(10, [0.0], now=after(100))
    await store.reclaim(10, [0.0], now=after(101))
    await record(store, second.hold, _RETRIED, now=after(102), answer=Recorded.FENCED)
    right = [(1, "retried"), (2, "stalled")]
    expect(await _kept(store, "a"), right, "the history after the late outcome")


@check("I16", _NEEDS)
async def the_newest_hundred_attempts_are_kept_oldest_first(store: Driver) -> None:
    await enqueue(store, new_job("a", queue="a"), new_job("b", queue="b"))
    await _tried(store, "b", _RETRIED, at=0, queue="b")
    for number in range(1, _NEWEST + 4):
        await _tried(store, "a", _RETRIED, at=number)
    right = [(number, "retried") for number in range(4, _NEWEST + 4)]
    expect(await _kept(store, "a"), right, "the history")
    ends = [past.ended_at for past in await store.history("a")]
    expect(ends, [after(number) for number in range(4, _NEWEST + 4)], "the ends")
    expect(await _kept(store, "b"), [(1, "retried")], "the history of the other job")


@check("I16", [*_NEEDS, Capability.RECLAIM])
async def stalled_attempts_count_among_the_newest_hundred(store: Driver) -> None:
    await enqueue(store, new_job("a", queue="a"))
    for number in range(_NEWEST):
        await _tried(store, "a", _RETRIED, at=number)
    await claim_one(store, "a", now=after(500))
    await store.reclaim(10, [0.0], now=after(1000))
    history = await _kept(store, "a")
    expect(len(history), _NEWEST, "how many attempts are kept")
    expect((history[0], history[-1]), ((2, "retried"), (101, "stalled")), "first and last")


@check("history()", _CONTROL)
async def a_history_survives_a_manual_retry(store: Driver) -> None:
    claimed = await started(store, "a")
    await record(store, claimed.hold, Failed(failure()), now=after(1))
    expect(list(await store.retry([ManualRetry("a")], now=after(2))), [Answer.DONE], "retry")
    await _tried(store, "a", _RETRIED, at=3)
    expect(await _kept(store, "a"), [(1, "failed"), (1, "retried")], "the history")
    first, second = await _past(store, "a", 2)
    expect(second.serial - first.serial, 1, "the growth of the serial over the retry")


@check("history()", _CONTROL)
async def an_attempt_that_failed_under_a_wish_to_cancel_is_kept_as_it_ended(
    store: Driver,
) -> None:
    claimed = await started(store, "a")
    await store.cancel(["a"], now=after(1))
    await record(store, claimed.hold, _RETRIED, now=after(2))
    expect(await _kept(store, "a"), [(1, "retried")], "the history")
    await enqueue(store, new_job("b"))
    await store.cancel(["b"], now=after(1))
    expect(await _kept(store, "b"), [], "the history of a job cancelled while it waited")


@check("I16", _CONTROL)
async def a_history_goes_with_its_job(store: Driver) -> None:
    for id in ("deleted", "purged", "kept"):
        await enqueue(store, new_job(id, queue=id))
        await _tried(store, id, _RETRIED, at=1, queue=id)
    await store.delete(["deleted"], now=after(2))
    await store.purge(JobFilter(queue="purged"), 10, now=after(2))
    for id in ("deleted", "purged"):
        expect(list(await store.history(id)), [], f"the history of the {id} job")
        await enqueue(store, new_job(id, queue=id), now=after(100))
        expect(list(await store.history(id)), [], f"that of a new job under the id of {id}")
    expect(await _kept(store, "kept"), [(1, "retried")], "the history of the job that is there")


@check("I16", [*_NEEDS, Capability.PRUNE])
async def a_history_is_pruned_with_its_job(store: Driver) -> None:
    claimed = await started(store, "a")
    await record(store, claimed.hold, Failed(failure()))
    nothing = Retention(completed=0.0, failed=0.0, cancelled=0.0)
    await store.prune(nothing, 10, now=after(59))
    expect(await _kept(store, "a"), [(1, "failed")], "the history of a job that ended just now")
    expect(await store.prune(nothing, 10, now=after(100)), 1, "the number pruned")
    expect(list(await store.history("a")), [], "the history of the pruned job")
