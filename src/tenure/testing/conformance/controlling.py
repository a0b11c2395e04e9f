"""Checks of `cancel`, `delete`, `move`, `purge` and `pause`: every answer, and what it leaves."""

from tenure.driver import Capability, Driver
from tenure.outcomes import Completed, Failed
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
from tenure.types import Answer, Enqueued, JobFilter, ManualRetry, Move

_NEEDS = (Capability.CONTROL,)


@check("cancel()", _NEEDS)
async def cancel_answers_by_the_state_of_each_job(store: Driver) -> None:
    await started(store, "running")
    done = await started(store, "done")
    await record(store, done.hold, Completed())
    await enqueue(store, new_job("waiting"))
    answers = await store.cancel(["running", "nobody", "waiting", "done"], now=after(1))
    right = [Answer.REQUESTED, Answer.UNKNOWN, Answer.DONE, Answer.FINISHED]
    expect(list(answers), right, "the answers")
    counts = {"processing": 1, "completed": 1, "cancelled": 1}
    expect(await counted(store, after(1)), counts, "the counts")


@check("I1", _NEEDS)
async def a_cancelled_waiting_job_is_never_claimed(store: Driver) -> None:
    await enqueue(store, new_job("a"), new_job("b"))
    await store.cancel(["a"], now=T0)
    expect(ids(await claim(store, now=after(1e6))), ["b"], "the claim")


@check("cancel()", [Capability.CONTROL, Capability.DELAY, Capability.INSPECT])
async def a_scheduled_job_is_cancelled_at_once(store: Driver) -> None:
    await enqueue(store, new_job("a", delay=60.0))
    expect(list(await store.cancel(["a"], now=after(5))), [Answer.DONE], "the answer")
    job = await stored(store, "a")
    expect((job.state, job.finished_at), (State.CANCELLED, after(5)), "state and end")
    expect(ids(await claim(store, now=after(60))), [], "the claim at its due time")


@check("cancel()", [Capability.CONTROL, Capability.INSPECT])
async def a_wish_to_cancel_leaves_the_running_attempt(store: Driver) -> None:
    claimed = await started(store, "a")
    await store.cancel(["a"], now=after(1))
    job = await stored(store, "a")
    expect((job.state, job.cancel_requested), (State.PROCESSING, True), "state and wish")
    await record(store, claimed.hold, Completed(), now=after(2))


@check("cancel()", [Capability.CONTROL, Capability.RECLAIM, Capability.INSPECT])
async def a_wish_to_cancel_is_gone_when_the_reclaimed_job_was_cancelled(store: Driver) -> None:
    await started(store, "a")
    await store.cancel(["a"], now=after(1))
    await store.reclaim(10, [0.0], now=after(LEASE))
    expect(list(await store.cancel(["a"], now=after(31))), [Answer.DONE], "the answer")
    job = await stored(store, "a")
    expect((job.state, job.cancel_requested), (State.CANCELLED, False), "state and wish")
    await store.retry([ManualRetry("a")], now=after(32))
    again = await claim_one(store, "a", now=after(32))
    expect(again.job.cancel_requested, False, "cancel_requested of the next claim")


@check("cancel()", _NEEDS)
async def a_control_verb_leaves_nothing_behind_for_an_unknown_id(store: Driver) -> None:
    expect(list(await store.cancel(["a"], now=T0)), [Answer.UNKNOWN], "cancel")
    expect(list(await store.delete(["a"], now=T0)), [Answer.UNKNOWN], "delete")
    expect(list(await store.move([Move(job_id="a", priority=1)], now=T0)), [Answer.UNKNOWN], "move")
    expect(await counted(store), {}, "the counts")
    await enqueue(store, new_job("a"))
    claimed = await claim_one(store)
    expect((claimed.job.priority, claimed.job.cancel_requested), (0, False), "the job of that id")


@check("delete()", _NEEDS)
async def delete_answers_by_the_state_of_each_job(store: Driver) -> None:
    running = await started(store, "running")
    done = await started(store, "done")
    await record(store, done.hold, Completed())
    await enqueue(store, new_job("waiting"))
    answers = await store.delete(["nobody", "waiting", "running", "done"], now=after(1))
    right = [Answer.UNKNOWN, Answer.DONE, Answer.RUNNING, Answer.DONE]
    expect(list(answers), right, "the answers")
    expect(await counted(store, after(1)), {"processing": 1}, "the counts")
    expect(ids(await claim(store, now=after(1))), [], "the claim of the deleted waiting job")
    await record(store, running.hold, Completed(), now=after(2))


@check("move()", _NEEDS)
async def move_answers_by_the_state_of_each_job(store: Driver) -> None:
    await started(store, "running")
    done = await started(store, "done")
    await record(store, done.hold, Completed())
    await enqueue(store, new_job("waiting"))
    names = "running", "done", "nobody", "waiting"
    answers = await store.move([Move(job_id=id, queue="x") for id in names], now=after(1))
    right = [Answer.RUNNING, Answer.FINISHED, Answer.UNKNOWN, Answer.DONE]
    expect(list(answers), right, "the answers")
    expect(ids(await claim(store, now=after(1))), [], "what is left in the old queue")
    expect(ids(await claim(store, "x", now=after(1))), ["waiting"], "what is in the new queue")


@check("I11", [Capability.CONTROL, Capability.DELAY])
async def a_move_changes_the_place_of_a_job(store: Driver) -> None:
    await enqueue(store, *(new_job(id) for id in "abc"))
    await store.move([Move(job_id="c", priority=1)], now=after(1))
    await store.move([Move(job_id="b", at=after(-60))], now=after(1))
    expect(ids(await claim(store, now=after(2))), ["c", "b", "a"], "the claim")


@check("move()", [Capability.CONTROL, Capability.DELAY])
async def a_move_changes_only_what_it_names(store: Driver) -> None:
    await enqueue(store, new_job("a", priority=3, delay=60.0))
    await store.move([Move(job_id="a", at=after(10))], now=after(1))
    expect(ids(await claim(store, now=after(9))), [], "the claim before the new due time")
    claimed = await claim_one(store, now=after(10))
    expect((claimed.job.queue, claimed.job.priority), ("default", 3), "queue and priority")
    expect(claimed.job.run_at, after(10), "the due time")


@check("I14", _NEEDS)
async def a_move_with_an_older_serial_changes_nothing(store: Driver) -> None:
    claimed = await started(store, "a")
    await record(store, claimed.hold, Failed(failure()))
    await store.retry([ManualRetry("a")], now=after(1))
    stale = Move(job_id="a", queue="x", serial=claimed.job.serial - 1)
    expect(list(await store.move([stale], now=after(2))), [Answer.LIVE], "an older serial")
    expect(ids(await claim(store, "x", now=after(2))), [], "the jobs of the other queue")
    right = Move(job_id="a", queue="x", serial=claimed.job.serial)
    expect(list(await store.move([right], now=after(3))), [Answer.DONE], "its own serial")
    expect(ids(await claim(store, "x", now=after(3))), ["a"], "the jobs of the other queue")


@check("purge()", _NEEDS)
async def a_purge_deletes_what_matches_and_is_not_processing(store: Driver) -> None:
    running = await started(store, "r", queue="x")
    await enqueue(store, *(new_job(f"x{n}", queue="x") for n in range(3)), new_job("y", queue="y"))
    expect(await store.purge(JobFilter(queue="x"), 100, now=after(1)), 3, "the number deleted")
    expect(await counted(store, after(1)), {"processing": 1, "pending": 1}, "the counts")
    await record(store, running.hold, Completed(), now=after(2))
    expect(await store.purge(JobFilter(), 100, now=after(3)), 2, "deleted without a filter")
    expect(await counted(store, after(3)), {}, "the counts at the end")


@check("purge()", _NEEDS)
async def a_purge_filters_by_state_and_name_and_stops_at_its_limit(store: Driver) -> None:
    for number in range(3):
        claimed = await started(store, f"failed-{number}", name="bad")
        await record(store, claimed.hold, Failed(failure()))
    await enqueue(store, new_job("a", name="bad"), new_job("b"))
    failed = JobFilter(state=State.FAILED, name="bad")
    counts = [await store.purge(failed, 2, now=after(1)) for _ in range(3)]
    expect(counts, [2, 1, 0], "the numbers deleted with a limit of 2")
    other = JobFilter(state=State.FAILED, name="work")
    expect(await store.purge(other, 10, now=after(1)), 0, "the number deleted of another name")
    expect(await store.purge(JobFilter(name="bad"), 10, now=after(1)), 1, "by name alone")
    expect(ids(await claim(store, now=after(1))), ["b"], "what is left")


@check("I14", _NEEDS)
async def a_purged_job_does_not_come_back_within_a_minute(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    await store.purge(JobFilter(), 10, now=after(1))
    await enqueue(store, new_job("a"), now=after(60))
    expect(await counted(store, after(60)), {}, "the counts after the repeated dispatch")
    other = await store.enqueue([new_job("a", priority=1)], now=after(60))
    expect(list(other), [Enqueued.DUPLICATE], "the answer for other content")


@check("pause()", _NEEDS)
async def a_queue_is_paused_before_it_has_any_job(store: Driver) -> None:
    await store.pause("later", True)
    expect((await store.counts(now=T0)).paused, frozenset({"later"}), "the paused queues")
    await enqueue(store, new_job("a", queue="later"))
    expect(ids(await claim(store, "later")), [], "the claim")
    expect(await counted(store, queue="later"), {"pending": 1}, "the counts")
