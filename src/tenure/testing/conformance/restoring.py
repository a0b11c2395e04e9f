"""Checks of restore: whole jobs arrive in another store as they were.

What is about unique keys and limits is in `moving_keys.py`.
"""

from tenure.driver import Capability, Driver
from tenure.moved import Restored, at_rest
from tenure.outcomes import Cancelled, Completed, Failed, Retried
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
    stored,
)
from tenure.testing.conformance.check import check, expect
from tenure.testing.conformance.whole_jobs import (
    NEEDS,
    SEEN,
    dumped,
    in_each_state,
    over,
    past_attempt,
    restore,
    restored,
    whole,
)
from tenure.types import (
    Answer,
    Hold,
    Kept,
    ManualRetry,
    Recorded,
    Retention,
    content_digest,
)

_MOST = 100  # attempts in a history


@check("I10", SEEN)
async def a_whole_job_arrives_as_it_was_in_each_state(store: Driver) -> None:
    given = in_each_state()
    await restored(store, *given, now=after(500))
    right = [at_rest(each) for each in given]
    for each in right:
        expect(await stored(store, each.job.id), each.job, f"the job {each.job.id!r}")
    expect(await dumped(store, 4), right, "the dump of what was restored")


@check("restore()", [*SEEN, Capability.HISTORY])
async def a_history_arrives_and_goes_on(store: Driver) -> None:
    past = tuple(past_attempt(n, n, f"{n}") for n in range(1, _MOST + 1))
    odd = (past_attempt(1, 3), past_attempt(1, 5, ""))
    await restored(
        store,
        whole("long", history=past, serial=_MOST, attempt=_MOST, queue="long"),
        whole("odd", history=odd, serial=6, attempt=2),
        whole("none"),
    )
    expect(list(await store.history("long")), list(past), "the long history")
    expect(list(await store.history("odd")), list(odd), "the history with odd texts")
    expect(list(await store.history("none")), [], "the history of a job without one")
    claimed = await claim_one(store, "long")
    await record(store, claimed.hold, Retried(0.0, failure()), now=after(1))
    history = list(await store.history("long"))
    expect((len(history), history[:-1]), (_MOST, list(past[1:])), "the history after an attempt")
    expect(history[-1].attempt, _MOST + 1, "the newest attempt")


@check("I2 I3", [*SEEN, Capability.EXTEND])
async def a_job_that_was_processing_waits_and_its_worker_is_fenced(store: Driver) -> None:
    given = whole("a", state=State.PROCESSING, attempt=2, serial=5, stalls=1, run_at=after(-9))
    await restored(store, given)
    job = await stored(store, "a")
    seen = job.state, job.serial, job.attempt, job.stalls, job.run_at
    expect(seen, (State.PENDING, 6, 1, 1, after(-9)), "the job")
    late = Hold("a", 5, "its token")
    await record(store, late, Completed(b"late"), answer=Recorded.FENCED)
    expect(list(await store.extend([late], LEASE, now=T0)), [Kept.LOST], "extend by its worker")
    claimed = await claim_one(store)
    begun = claimed.hold.serial, claimed.attempt, claimed.stalls
    expect(begun, (7, 2, 1), "serial, attempt and stalls of the next claim")
    await record(store, late, Failed(failure()), answer=Recorded.FENCED)
    await record(store, claimed.hold, Completed())


@check("restore()", SEEN)
async def a_wish_to_cancel_arrives(store: Driver) -> None:
    await restored(
        store,
        whole("a", state=State.PROCESSING, attempt=1, serial=1, cancel_requested=True),
    )
    claimed = await claim_one(store)
    expect(claimed.job.cancel_requested, True, "the wish in the next claim")
    await record(store, claimed.hold, Cancelled("asked", started=False), now=after(1))
    job = await stored(store, "a")
    expect((job.state, job.attempt), (State.CANCELLED, 0), "the job")


@check("I11", NEEDS)
async def restored_jobs_are_claimed_by_priority_due_time_and_arrival(store: Driver) -> None:
    await enqueue(store, new_job("first"))
    await restored(
        store,
        whole("9"),
        whole("10"),
        whole("later", run_at=after(2)),
        whole("urgent", priority=5, run_at=after(3)),
        whole("earlier", run_at=after(-1)),
        whole("elsewhere", queue="other"),
    )
    await enqueue(store, new_job("last"))
    claims = await claim(store, now=after(5))
    right = ["urgent", "earlier", "first", "9", "10", "last", "later"]
    expect(ids(claims), right, "the order of claims")


@check("restore()", [*NEEDS, Capability.NEXT_DUE])
async def a_restored_job_that_is_due_later_waits_for_its_time(store: Driver) -> None:
    await restored(store, whole("a", run_at=after(60)))
    expect(ids(await claim(store, now=after(59.999999))), [], "the jobs before its time")
    due = await store.next_due(["default"], now=T0)
    expect(due, after(60), "the next due time")
    expect(ids(await claim(store, now=after(60))), ["a"], "the jobs at its time")


@check("I14", SEEN)
async def a_job_that_is_restored_again_is_known_and_left_as_it_is(store: Driver) -> None:
    given = [whole("a"), over("b", state=State.FAILED, error=failure())]
    await restored(store, *given)
    claimed = await claim_one(store, now=after(1))
    await record(store, claimed.hold, Completed(b"1"), now=after(2))
    before = await dumped(store)
    answers = await restore(store, *given, whole("c"), now=after(3))
    right = [Restored.KNOWN, Restored.KNOWN, Restored.STORED]
    expect(answers, right, "the answers for the second time")
    expect((await dumped(store))[:2], before, "the jobs that were there")


@check("I14", NEEDS)
async def a_dispatch_is_known_by_its_content_after_a_move(store: Driver) -> None:
    job = new_job("a", payload=b"[1]", priority=3)
    await restored(store, over("a", content=content_digest(job), state=State.COMPLETED))
    await enqueue(store, job)
    expect(await counted(store), {"completed": 1}, "the jobs after the repeated dispatch")


@check("restore()", NEEDS)
async def another_job_under_the_same_id_keeps_the_whole_batch_out(store: Driver) -> None:
    await enqueue(store, new_job("taken"))
    other = whole("taken", content=b"another!")
    answers = await restore(store, whole("a"), other, whole("b"), now=after(1))
    right = [Restored.STORED, Restored.DUPLICATE, Restored.STORED]
    expect(answers, right, "the answers of restore")
    expect([each.job.id for each in await dumped(store)], ["taken"], "the jobs that are stored")


@check("I14", [*NEEDS, Capability.CONTROL])
async def a_job_that_was_deleted_a_moment_ago_is_not_brought_back(store: Driver) -> None:
    await restored(store, whole("a"))
    await store.delete(["a"], now=after(1))
    expect(await restore(store, whole("a"), now=after(60)), [Restored.KNOWN], "within a minute")
    other = whole("a", content=b"another!")
    answers = await restore(store, other, now=after(60))
    expect(answers, [Restored.DUPLICATE], "other content within a minute")
    expect(await counted(store), {}, "the jobs")
    await restored(store, whole("a"), now=after(120))


@check("counts()", NEEDS)
async def restored_jobs_are_counted_in_their_states(store: Driver) -> None:
    await restored(store, *in_each_state())
    right = {
        **{"pending": 3, "scheduled": 1, "blocked": 1},
        **{"completed": 2, "failed": 1, "cancelled": 1},
    }
    expect(await counted(store, now=after(60)), right, "the counts")
    expect(await counted(store, now=after(60), queue="default"), right, "those of the queue")


@check("restore()", [*NEEDS, Capability.PRUNE])
async def retention_counts_from_the_end_that_a_job_had(store: Driver) -> None:
    await restored(
        store,
        whole("old", state=State.COMPLETED, finished_at=after(-100)),
        whole("new", state=State.COMPLETED, finished_at=after(-50)),
        whole("failed", state=State.FAILED, finished_at=after(-100)),
        now=after(100),
    )
    age = Retention(completed=200.0, failed=None, cancelled=None)
    expect(await store.prune(age, 10, now=after(125)), 1, "the number pruned by age")
    left = [each.job.id for each in await dumped(store)]
    expect(left, ["new", "failed"], "the jobs that are left")


@check("restore()", [*NEEDS, Capability.PRUNE])
async def retention_counts_the_bytes_of_restored_jobs(store: Driver) -> None:
    await restored(
        store,
        *(
            whole(
                id,
                state=State.COMPLETED,
                finished_at=after(at),
                payload=b"x" * 60,
                result=b"y" * 40,
            )
            for id, at in (("second", -90), ("first", -100), ("third", -80))
        ),
    )
    most = Retention(completed=None, completed_bytes=200)
    expect(await store.prune(most, 10, now=after(100)), 1, "the number pruned by size")
    left = [each.job.id for each in await dumped(store)]
    expect(left, ["second", "third"], "the jobs that are left")


@check("restore()", [*SEEN, Capability.CONTROL])
async def a_restored_job_can_be_retried_cancelled_and_deleted(store: Driver) -> None:
    await restored(
        store,
        over("failed", state=State.FAILED, error=failure()),
        whole("waits"),
        over("done", state=State.COMPLETED),
    )
    expect(list(await store.retry([ManualRetry("failed", 4)], now=after(1))), ["done"], "retry")
    job = await stored(store, "failed")
    seen = job.state, job.attempt, job.serial, job.finished_at
    expect(seen, (State.PENDING, 0, 4, None), "the retried job")
    expect(list(await store.cancel(["waits"], now=after(1))), [Answer.DONE], "cancel")
    expect(list(await store.delete(["done"], now=after(1))), [Answer.DONE], "delete")
    expect(await counted(store, now=after(1)), {"pending": 1, "cancelled": 1}, "the counts")


@check("restore()", NEEDS)
async def a_batch_of_nothing_stores_nothing(store: Driver) -> None:
    expect(await restore(store), [], "the answers")
    expect(await counted(store), {}, "the counts")
