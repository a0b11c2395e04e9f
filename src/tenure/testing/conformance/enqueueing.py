"""Checks of `enqueue`, `open` and `close`: what was accepted is stored once, as it was given."""

from msgspec.structs import replace

from tenure.driver import Capability, Driver
from tenure.outcomes import Completed
from tenure.states import State
from tenure.testing.conformance.builders import (
    T0,
    after,
    claim,
    claim_one,
    counted,
    enqueue,
    ids,
    new_job,
    record,
    started,
    stored,
)
from tenure.testing.conformance.check import check, expect
from tenure.types import Enqueued, Move, Retention


@check("open()")
async def open_is_legal_when_already_open(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    await store.open()
    expect(ids(await claim(store)), ["a"], "the jobs claimed after a second open")


@check("close()")
async def close_is_legal_twice(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    await store.close()
    await store.close()


@check("I5")
async def an_enqueued_job_is_claimed_as_it_was_given(store: Driver) -> None:
    given = new_job(
        "a",
        name="send",
        queue="mail",
        payload=b'{"to":1}',
        priority=7,
        max_attempts=3,
        timeout=2.5,
        headers={"trace": "1"},
    )
    await enqueue(store, given)
    job = (await claim_one(store, "mail")).job
    for field in ("id", "name", "queue", "payload", "priority", "max_attempts", "timeout"):
        expect(getattr(job, field), getattr(given, field), f"the {field} of the claimed job")
    expect(dict(job.headers), {"trace": "1"}, "the headers of the claimed job")


@check("I1", [Capability.INSPECT])
async def a_new_job_is_pending_with_nothing_spent(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    job = await stored(store, "a")
    expect(job.state, State.PENDING, "the state of a new job")
    expect((job.attempt, job.stalls, job.serial), (0, 0, 0), "its attempt, stalls and serial")
    expect((job.run_at, job.created_at), (T0, T0), "its due time and the time of its creation")
    expect((job.max_attempts, job.timeout), (None, None), "the bounds that were not given")
    expect((job.finished_at, job.error), (None, None), "its end and error")
    expect((job.result, job.progress), (None, None), "its result and progress")
    expect(job.cancel_requested, False, "cancel_requested")


@check("enqueue()")
async def an_empty_batch_is_answered_with_nothing(store: Driver) -> None:
    expect(list(await store.enqueue([], now=T0)), [], "the answers of enqueue")
    expect(list(await store.record([], now=T0)), [], "the answers of record")
    expect(await counted(store), {}, "the counts")


@check("I15")
async def a_batch_with_a_duplicate_stores_nothing(store: Driver) -> None:
    await enqueue(store, new_job("old"))
    batch = [new_job("new-1"), new_job("old", payload=b"2"), new_job("new-2")]
    answers = await store.enqueue(batch, now=after(1))
    expect(answers[1], Enqueued.DUPLICATE, "the answer for the id with other content")
    expect(await counted(store, after(1)), {"pending": 1}, "the counts after the refused batch")
    claimed = await claim_one(store, now=after(1))
    expect((claimed.job.id, claimed.job.payload), ("old", b"null"), "the only job")
    await enqueue(store, new_job("new-1", payload=b"3"), now=after(2))


@check("I14")
async def a_job_enqueued_again_is_stored_once(store: Driver) -> None:
    await enqueue(store, new_job("a"), new_job("b"))
    await enqueue(store, new_job("b"), new_job("a"), now=after(5))
    expect(await counted(store, after(5)), {"pending": 2}, "the counts after the repeat")
    expect(ids(await claim(store, now=after(5))), ["a", "b"], "the jobs, in their first order")


@check("I14")
async def a_batch_of_repeats_and_new_jobs_stores_the_new_ones(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    await enqueue(store, new_job("b"), new_job("a"), new_job("c"))
    expect(ids(await claim(store)), ["a", "b", "c"], "the jobs, in the order of arrival")


@check("I14")
async def a_job_enqueued_again_while_it_runs_or_after_it_ended_stays_as_it_is(
    store: Driver,
) -> None:
    claimed = await started(store, "a")
    await enqueue(store, new_job("a", queue="a"), now=after(1))
    expect(await counted(store, after(1)), {"processing": 1}, "the counts while it runs")
    await record(store, claimed.hold, Completed(b"1"), now=after(2))
    await enqueue(store, new_job("a", queue="a"), now=after(3))
    expect(await counted(store, after(3)), {"completed": 1}, "the counts after it ended")


@check("I14")
async def an_id_with_other_content_is_a_duplicate(store: Driver) -> None:
    first = new_job("a", priority=1, max_attempts=2, timeout=3.0, headers={"h": "1"})
    await enqueue(store, first)
    for other in (
        replace(first, name="other"),
        replace(first, queue="other"),
        replace(first, payload=b"2"),
        replace(first, priority=2),
        replace(first, max_attempts=None),
        replace(first, timeout=4.0),
        replace(first, headers={"h": "2"}),
    ):
        answers = await store.enqueue([other], now=T0)
        expect(list(answers), [Enqueued.DUPLICATE], f"the answer to {other}")
    claimed = await claim_one(store)
    expect((claimed.job.name, claimed.job.payload), ("work", b"null"), "what is stored")
    expect(await counted(store), {"processing": 1}, "the counts")


@check("I14")
async def an_id_is_known_by_the_digest_that_came_with_its_job(store: Driver) -> None:
    # As where payloads are encrypted, each time differently.
    first = new_job("a", payload=b"1", content=b"12345678")
    await enqueue(store, first)
    await enqueue(store, replace(first, payload=b"2"))
    other = await store.enqueue([replace(first, content=b"87654321")], now=T0)
    expect(list(other), [Enqueued.DUPLICATE], "the answer for another digest")
    expect((await claim_one(store)).job.payload, b"1", "what is stored")


@check("I14", [Capability.DELAY])
async def an_id_with_another_due_time_is_a_duplicate(store: Driver) -> None:
    await enqueue(store, new_job("a", delay=10.0), new_job("b", at=after(10)))
    for other in (new_job("a", delay=20.0), new_job("a"), new_job("b", at=after(20))):
        answers = await store.enqueue([other], now=T0)
        expect(list(answers), [Enqueued.DUPLICATE], f"the answer to {other}")


@check("I14", [Capability.DELAY])
async def a_repeated_enqueue_leaves_the_due_time_of_the_first(store: Driver) -> None:
    await enqueue(store, new_job("a", delay=60.0))
    await enqueue(store, new_job("a", delay=60.0), now=after(30))
    expect(ids(await claim(store, now=after(59))), [], "the jobs due before the first due time")
    expect(ids(await claim(store, now=after(60))), ["a"], "the jobs due at the first due time")


@check("enqueue()", [Capability.DELAY, Capability.INSPECT])
async def a_delay_counts_from_the_now_of_the_store_and_at_is_absolute(store: Driver) -> None:
    jobs = new_job("delayed", delay=90.0), new_job("dated", at=after(200)), new_job("now")
    await enqueue(store, *jobs, now=after(100))
    for id, due in (("delayed", after(190)), ("dated", after(200)), ("now", after(100))):
        expect((await stored(store, id)).run_at, due, f"the due time of {id!r}")


@check("I14", [Capability.CONTROL])
async def a_deleted_job_does_not_come_back_within_a_minute(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    await store.delete(["a"], now=after(10))
    await enqueue(store, new_job("a"), now=after(69))
    expect(await counted(store, after(69)), {}, "the counts after the repeated dispatch")
    other = await store.enqueue([new_job("a", payload=b"2")], now=after(69))
    expect(list(other), [Enqueued.DUPLICATE], "the answer for other content")
    expect(ids(await claim(store, now=after(69))), [], "the claimed jobs")


@check("I14", [Capability.CONTROL])
async def a_moved_job_is_known_by_the_content_of_its_dispatch(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    await store.move([Move(job_id="a", queue="elsewhere", priority=5)], now=T0)
    await enqueue(store, new_job("a"), now=after(1))
    moved = await store.enqueue([new_job("a", queue="elsewhere", priority=5)], now=after(1))
    expect(list(moved), [Enqueued.DUPLICATE], "the answer for content it was moved to")
    expect(await counted(store, after(1)), {"pending": 1}, "the counts")


@check("I14", [Capability.PRUNE])
async def a_pruned_job_does_not_come_back_right_after(store: Driver) -> None:
    claimed = await started(store, "a")
    await record(store, claimed.hold, Completed())
    pruned = await store.prune(Retention(completed=100.0), 10, now=after(200))
    expect(pruned, 1, "the number of jobs pruned")
    await enqueue(store, new_job("a", queue="a"), now=after(201))
    expect(await counted(store, after(201)), {}, "the counts after the repeated dispatch")
