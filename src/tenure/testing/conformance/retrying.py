"""Checks of `retry`, the manual one: a job that failed or was cancelled starts anew, once."""

from collections.abc import Sequence

from tenure.driver import Capability, Driver
from tenure.outcomes import Cancelled, Completed, Failed, Outcome, Retried
from tenure.states import State
from tenure.testing.conformance.builders import (
    LEASE,
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
    stored,
)
from tenure.testing.conformance.check import check, expect
from tenure.types import Answer, ManualRetry, Recorded

_NEEDS = (Capability.CONTROL,)
_FAILED = Failed(failure())


async def _retry(
    store: Driver, id: str, serial: int | None = None, *, at: float = 10.0
) -> Sequence[Answer]:
    return list(await store.retry([ManualRetry(id, serial)], now=after(at)))


@check("retry()", _NEEDS)
async def retry_answers_by_the_state_of_each_job(store: Driver) -> None:
    outcomes: dict[str, Outcome] = {
        "failed": _FAILED,
        "cancelled": Cancelled("asked"),
        "completed": Completed(),
    }
    for id, outcome in outcomes.items():
        await record(store, (await started(store, id)).hold, outcome)
    await started(store, "running")
    await enqueue(store, new_job("waiting"))
    right = {
        "running": Answer.RUNNING,
        "failed": Answer.DONE,
        "nobody": Answer.UNKNOWN,
        "completed": Answer.FINISHED,
        "waiting": Answer.LIVE,
        "cancelled": Answer.DONE,
    }
    answers = await store.retry([ManualRetry(id) for id in right], now=after(1))
    expect(dict(zip(right, answers, strict=True)), right, "the answers")
    counts = {"pending": 3, "processing": 1, "completed": 1}
    expect(await counted(store, after(1)), counts, "the counts")


@check("I4", _NEEDS)
async def a_retried_job_starts_anew_under_a_new_serial(store: Driver) -> None:
    claimed = await started(store, "a")
    await record(store, claimed.hold, Retried(0.0, failure()))
    claimed = await claim_one(store, "a")
    await record(store, claimed.hold, _FAILED)
    await _retry(store, "a")
    again = await claim_one(store, "a", now=after(10))
    expect((again.attempt, again.stalls), (1, 0), "attempt and stalls")
    expect(again.hold.serial - claimed.hold.serial, 1, "the growth of the serial")
    await record(store, claimed.hold, Completed(), now=after(11), answer=Recorded.FENCED)


@check("retry()", [Capability.CONTROL, Capability.INSPECT, Capability.RECLAIM])
async def a_retried_job_is_due_now_with_its_error(store: Driver) -> None:
    await started(store, "a")
    await store.reclaim(10, [0.0], now=after(LEASE * 2))
    claimed = await claim_one(store, "a", now=after(LEASE * 2))
    await record(store, claimed.hold, _FAILED, now=after(100))
    await _retry(store, "a", at=500.0)
    job = await stored(store, "a")
    expect((job.state, job.run_at), (State.PENDING, after(500)), "state and due time")
    expect((job.attempt, job.stalls), (0, 0), "attempt and stalls")
    expect((job.serial, job.error), (claimed.job.serial, failure()), "serial and error")
    expect(job.finished_at, None, "the instant of the end")


@check("retry()", [Capability.CONTROL, Capability.DELAY])
async def a_cancelled_scheduled_job_is_due_at_once_when_retried(store: Driver) -> None:
    await enqueue(store, new_job("a", delay=1000.0))
    await store.cancel(["a"], now=after(1))
    expect(await _retry(store, "a"), [Answer.DONE], "the answer")
    expect(ids(await claim(store, now=after(10))), ["a"], "the claim")


@check("I1", _NEEDS)
async def a_wish_to_cancel_does_not_outlive_a_retry(store: Driver) -> None:
    claimed = await started(store, "a")
    await store.cancel(["a"], now=T0)
    await record(store, claimed.hold, Retried(0.0, failure()))
    expect(await _retry(store, "a"), [Answer.DONE], "the answer")
    again = await claim_one(store, "a", now=after(10))
    expect(again.job.cancel_requested, False, "cancel_requested of the next claim")
    await record(store, again.hold, Retried(0.0, failure()), now=after(11))
    expect(await counted(store, after(11)), {"pending": 1}, "the counts after an ordinary retry")


@check("I14", _NEEDS)
async def a_settled_hold_is_known_after_a_retry(store: Driver) -> None:
    claimed = await started(store, "a")
    await record(store, claimed.hold, _FAILED)
    await _retry(store, "a")
    await record(store, claimed.hold, _FAILED, now=after(11), answer=Recorded.REPEATED)
    expect(await counted(store, after(11)), {"pending": 1}, "the counts")


@check("I14", _NEEDS)
async def a_repeated_retry_does_not_revive_a_job_that_ended_again(store: Driver) -> None:
    first = await started(store, "a")
    await record(store, first.hold, _FAILED)
    expect(await _retry(store, "a", first.job.serial), [Answer.DONE], "the first retry")
    second = await claim_one(store, "a", now=after(10))
    expect(await _retry(store, "a", first.job.serial), [Answer.DONE], "repeated while it runs")
    await record(store, second.hold, _FAILED, now=after(11))
    answers = await _retry(store, "a", first.job.serial, at=12.0)
    expect(answers, [Answer.DONE], "repeated after it failed again")
    expect(await counted(store, after(12)), {"failed": 1}, "the counts")
    expect(await _retry(store, "a", second.job.serial, at=13.0), [Answer.DONE], "its own serial")
    expect(await counted(store, after(13)), {"pending": 1}, "the counts after a new retry")
