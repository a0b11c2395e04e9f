"""Checks of `counts`: disjoint, exact, by queue."""

from tenure.driver import Capability, Driver
from tenure.outcomes import Cancelled, Completed, Failed, Retried
from tenure.testing.conformance.builders import (
    LEASE,
    T0,
    after,
    claim_one,
    counted,
    enqueue,
    failure,
    new_job,
    record,
    started,
)
from tenure.testing.conformance.check import check, expect
from tenure.types import Counts, Move


@check("counts()")
async def an_empty_store_counts_nothing(store: Driver) -> None:
    counts = await store.counts(now=T0)
    expect(counts, Counts(by_queue=counts.by_queue), "the counts of an empty store")
    expect(await counted(store, queue="default"), {}, "the counts of a queue")


@check("I1")
async def each_job_is_counted_in_exactly_one_state(store: Driver) -> None:
    right = {"completed": 3, "failed": 2, "cancelled": 1, "processing": 4, "pending": 5}
    completed, failed, cancelled = Completed(), Failed(failure()), Cancelled("asked")
    ends = [completed, completed, completed, failed, failed, cancelled, None, None, None, None]
    for number, outcome in enumerate(ends):
        claimed = await started(store, f"job-{number}", queue="q")
        if outcome is not None:
            await record(store, claimed.hold, outcome)
    await enqueue(store, *(new_job(f"waiting-{n}", queue="q") for n in range(5)))
    expect(await counted(store), right, "the counts")
    expect(await counted(store, queue="q"), right, "the counts of the queue")


@check("counts()")
async def each_queue_has_its_own_counts(store: Driver) -> None:
    await enqueue(store, *(new_job(f"a{n}", queue="a") for n in range(3)), new_job("b", queue="b"))
    await claim_one(store, "a")
    expect(await counted(store, queue="a"), {"pending": 2, "processing": 1}, "queue a")
    expect(await counted(store, queue="b"), {"pending": 1}, "queue b")
    expect(await counted(store), {"pending": 3, "processing": 1}, "the whole store")
    counts = await store.counts(now=T0)
    nested = [queue for queue, inner in counts.by_queue.items() if inner.by_queue]
    expect(nested, [], "the queues whose counts have a by_queue of their own")
    expect(counts.capped, False, "capped")


@check("counts()")
async def a_job_moves_from_count_to_count(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    expect(await counted(store), {"pending": 1}, "enqueued")
    for number in (1, 2):
        claimed = await claim_one(store)
        expect(await counted(store), {"processing": 1}, f"claimed, attempt {number}")
        await record(store, claimed.hold, Retried(0.0, failure()))
        expect(await counted(store), {"pending": 1}, f"retried, attempt {number}")
    claimed = await claim_one(store)
    expect(await counted(store, after(LEASE * 9)), {"processing": 1}, "expired")
    await record(store, claimed.hold, Completed())
    expect(await counted(store), {"completed": 1}, "completed")


@check("counts()", [Capability.DELAY])
async def a_job_is_scheduled_until_it_is_due_and_pending_from_then_on(store: Driver) -> None:
    await enqueue(store, new_job("a", delay=60.0), new_job("b", at=after(90)), new_job("c"))
    claimed = await claim_one(store)
    await record(store, claimed.hold, Retried(30.0, failure()))
    for now, scheduled, pending in ((29, 3, 0), (30, 2, 1), (60, 1, 2), (90, 0, 3)):
        numbers = {"scheduled": scheduled, "pending": pending}
        right = {name: number for name, number in numbers.items() if number}
        expect(await counted(store, after(now)), right, f"the counts after {now} s")
        expect(await counted(store, after(now), "default"), right, f"of the queue after {now} s")


@check("counts()", [Capability.CONTROL])
async def the_jobs_of_a_paused_queue_are_counted_as_before(store: Driver) -> None:
    await enqueue(store, new_job("a"), new_job("b", queue="other"))
    await store.pause("default", True)
    expect((await store.counts(now=T0)).paused, frozenset({"default"}), "the paused queues")
    expect(await counted(store), {"pending": 2}, "the counts")
    expect(await counted(store, queue="default"), {"pending": 1}, "the counts of the queue")


@check("counts()", [Capability.CONTROL])
async def deleted_and_moved_jobs_leave_their_counts(store: Driver) -> None:
    await enqueue(store, *(new_job(id) for id in "abc"))
    claimed = await claim_one(store)
    await record(store, claimed.hold, Failed(failure()))
    await store.cancel(["b"], now=after(1))
    expect(await counted(store), {"failed": 1, "cancelled": 1, "pending": 1}, "before")
    await store.delete(["a", "c"], now=after(2))
    expect(await counted(store, after(2)), {"cancelled": 1}, "after two were deleted")
    expect(await counted(store, after(2), "default"), {"cancelled": 1}, "of the queue")
    await enqueue(store, new_job("d"), now=after(3))
    await store.move([Move(job_id="d", queue="other")], now=after(4))
    expect(await counted(store, after(4), "default"), {"cancelled": 1}, "of the old queue")
    expect(await counted(store, after(4), "other"), {"pending": 1}, "of the new queue")
