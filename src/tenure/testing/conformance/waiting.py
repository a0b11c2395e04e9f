"""Checks of `next_due`, `wait`, the keeper's handle, presence and use from other threads."""

import asyncio
import threading
from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from tenure.driver import Capability, Driver
from tenure.outcomes import Completed, Retried
from tenure.presence import WorkerInfo
from tenure.standing import Limit
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
    request,
    started,
)
from tenure.testing.conformance.check import check, expect, expect_that, refuse
from tenure.types import Claim, Kept

_PATIENCE = 20.0  # how long a broken store may hang before its check fails; no check waits for it
_NEXT_DUE = Capability.NEXT_DUE, Capability.DELAY
_OLDEST_DUE = Capability.OLDEST_DUE, Capability.DELAY


@check("next_due()", _NEXT_DUE)
async def next_due_is_the_earliest_instant_later_than_now(store: Driver) -> None:
    expect(await store.next_due(["default"], now=T0), None, "next_due of an empty store")
    await enqueue(store, new_job("a", delay=60.0, priority=9), new_job("b", delay=30.0))
    await enqueue(store, new_job("c", queue="other", delay=10.0), new_job("due"))
    for queues, now, right in (
        (["default"], 0, after(30)),
        (["default", "other"], 0, after(10)),
        (["default", "other"], 10, after(30)),
        (["default"], 30, after(60)),
        (["default", "other"], 60, None),
        (["elsewhere"], 0, None),
        (list[str](), 0, None),
    ):
        due = await store.next_due(queues, now=after(now))
        expect(due, right, f"next_due of {queues} after {now} s")


@check("next_due()", _NEXT_DUE)
async def next_due_looks_at_waiting_jobs_only(store: Driver) -> None:
    first = await started(store, "a", delay=None)
    second = await started(store, "b")
    await record(store, first.hold, Retried(30.0, failure()))
    expect(await store.next_due(["a", "b"], now=after(1)), after(30), "next_due of a retry")
    await record(store, second.hold, Completed())
    expect(await store.next_due(["b"], now=after(1)), None, "next_due of a completed job")
    await claim(store, "a", now=after(30))
    expect(await store.next_due(["a"], now=after(1)), None, "next_due of a running job")


@check("next_due()", [*_NEXT_DUE, Capability.CONTROL])
async def next_due_passes_over_paused_queues(store: Driver) -> None:
    await enqueue(store, new_job("a", delay=10.0), new_job("b", queue="other", delay=20.0))
    await store.pause("default", True)
    both = ["default", "other"]
    expect(await store.next_due(both, now=T0), after(20), "next_due while one is paused")
    await store.pause("default", False)
    expect(await store.next_due(both, now=T0), after(10), "next_due after the resume")


@check("oldest_due()", _OLDEST_DUE)
async def oldest_due_is_of_the_due_jobs_of_each_queue(store: Driver) -> None:
    none: list[datetime | None] = [None]
    expect(list(await store.oldest_due([], now=T0)), [], "oldest_due of no queue")
    expect(list(await store.oldest_due(["default"], now=T0)), none, "oldest_due, nothing stored,")
    await enqueue(store, new_job("a", delay=30.0), new_job("b", delay=60.0, priority=9))
    await enqueue(store, new_job("c", delay=10.0, queue="other"), new_job("d", queue="other"))
    await enqueue(store, new_job("e", delay=90.0))
    for now, right in (
        (0, [None, T0]),
        (29, [None, T0]),
        (30, [after(30), T0]),
        (70, [after(30), T0]),
    ):
        found = await store.oldest_due(["default", "other"], now=after(now))
        expect(list(found), right, f"oldest_due after {now} s")
    claimed = [await claim_one(store, "default", now=after(70)) for _ in range(2)]
    expect([each.job.id for each in claimed], ["b", "a"], "the jobs claimed")
    found = await store.oldest_due(["default"], now=after(100))
    expect(list(found), [after(90)], "oldest_due beside running jobs")


@check("oldest_due()", [*_OLDEST_DUE, Capability.CONTROL])
async def oldest_due_does_not_pass_over_paused_queues(store: Driver) -> None:
    await enqueue(store, new_job("a", delay=10.0))
    await store.pause("default", True)
    found = await store.oldest_due(["default"], now=after(20))
    expect(list(found), [after(10)], "oldest_due of a paused queue")


@check("oldest_due()", [*_OLDEST_DUE, Capability.LIMITS])
async def oldest_due_counts_jobs_that_a_limit_holds(store: Driver) -> None:
    await store.put_limit(Limit(key="k", concurrent=1))
    jobs = [new_job(f"job-{n}", delay=float(n), limits=("k",)) for n in range(4)]
    await enqueue(store, *jobs)
    held = await claim(store, "default", now=after(10))
    expect(len(held), 1, "how many the limit lets through")
    found = await store.oldest_due(["default"], now=after(10))
    expect(list(found), [after(1)], "oldest_due of jobs that a limit holds")


@check("check()")
async def a_store_that_answers_has_nothing_to_complain_of(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    await store.check()
    expect(await counted(store), {"pending": 1}, "the counts after check()")


@check("wait()", [Capability.WAIT])
async def a_wait_is_woken_by_a_dispatch(store: Driver) -> None:
    for number in range(3):
        waiting = asyncio.create_task(store.wait(["default"], _PATIENCE))
        await asyncio.wait([waiting], timeout=0)  # lets the call begin
        await enqueue(store, new_job(f"job-{number}"))
        expect(await waiting, True, "wait(), while a job was dispatched,")


@check("wait()", [Capability.WAIT])
async def a_wait_may_be_cancelled(store: Driver) -> None:
    waiting = asyncio.create_task(store.wait(["default"], _PATIENCE))
    await asyncio.wait([waiting], timeout=0)  # lets the call begin
    waiting.cancel()
    done, _ = await asyncio.wait([waiting], timeout=_PATIENCE / 2)
    expect_that(bool(done), "a cancelled wait() did not end")
    await enqueue(store, new_job("a"))
    expect(ids(await claim(store)), ["a"], "the claim after a cancelled wait")


@check("I6", [Capability.KEEPER, Capability.CONTROL])
async def the_keeper_extends_while_the_event_loop_is_blocked(store: Driver) -> None:
    kept, asked, lost = [(await started(store, id)).hold for id in "abc"]
    await store.cancel(["b"], now=T0)
    await record(store, lost, Completed())
    answers: list[Sequence[Kept]] = []

    def keep() -> None:
        handle = store.keeper_handle()
        try:
            answers.append(handle.extend([kept, asked, lost, replace(kept, token="x")], 60.0))
        finally:
            handle.close()
            handle.close()

    keeper = threading.Thread(target=keep, name="conformance-keeper", daemon=True)
    keeper.start()
    keeper.join(_PATIENCE)  # blocks the event loop on purpose
    if not answers:
        refuse("keeper_handle().extend() gave no answer while the event loop was blocked")
    right = [Kept.KEPT, Kept.CANCEL_REQUESTED, Kept.LOST, Kept.LOST]
    expect(list(answers[0]), right, "the answers")
    await record(store, kept, Completed())


@check("I2", [Capability.SHARED])
async def one_instance_serves_several_event_loops_at_once(store: Driver) -> None:
    await enqueue(store, *(new_job(f"job-{n}") for n in range(40)))

    async def work() -> Sequence[Claim]:
        claims = [c for _ in range(5) for c in await store.claim(request(limit=2), now=T0)]
        await store.record([(c.hold, Completed()) for c in claims], now=after(1))
        return claims

    def in_a_loop_of_its_own() -> Sequence[Claim]:
        return asyncio.run(work())

    rounds = await asyncio.gather(
        work(), *(asyncio.to_thread(in_a_loop_of_its_own) for _ in range(3))
    )
    got = [id for claims in rounds for id in ids(claims)]
    expect(sorted(got), sorted(f"job-{n}" for n in range(40)), "the jobs that four loops got")
    expect(await counted(store, after(1)), {"completed": 40}, "the counts")


def _worker(id: str, running: int) -> WorkerInfo:
    return WorkerInfo(
        id=id,
        name="caf\u00e9" if running else None,
        host="host",
        pid=1,
        queues=("default", "other"),
        concurrency=16,
        running=running,
        started_at=T0,
        seen_at=after(running),
        jobs=tuple(f"job-{n}" for n in range(running)),
        version="1.2.3",
        python="3.11.0",
        claimed_at=after(running) if running else None,
    )


@check("report()", [Capability.PRESENCE])
async def workers_are_shown_by_id_as_they_reported_last(store: Driver) -> None:
    expect(list(await store.workers()), [], "the workers of an empty store")
    for worker in (_worker("b", 0), _worker("a", 1), _worker("b", 2)):
        await store.report(worker, 3600.0)
    expect(list(await store.workers()), [_worker("a", 1), _worker("b", 2)], "the workers")


@check("report()", [Capability.PRESENCE])
async def a_worker_that_reports_for_no_time_is_shown_no_more(store: Driver) -> None:
    for worker in (_worker("a", 1), _worker("b", 2)):
        await store.report(worker, 3600.0)
    await store.report(_worker("a", 0), 0.0)
    expect(list(await store.workers()), [_worker("b", 2)], "the workers that are left")
