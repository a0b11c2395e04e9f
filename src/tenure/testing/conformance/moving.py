"""Checks of dump and restore: whole jobs leave a store and arrive in another one as they were.

What is about unique keys and limits is in `moving_keys.py`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypedDict, Unpack

from msgspec.structs import replace

from tenure.driver import Capability, Driver
from tenure.errors import InvalidConfiguration
from tenure.history import PastAttempt
from tenure.moved import Dump, KeyHold, Restored, StoredJob, at_rest
from tenure.outcomes import Cancelled, Completed, Failed, Failure, Retried
from tenure.standing import Fired, NewSchedule, ScheduleRecord, Tick
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
from tenure.testing.conformance.check import check, expect, expect_that, refuse
from tenure.types import (
    Answer,
    Hold,
    Job,
    Kept,
    ManualRetry,
    Recorded,
    Retention,
    UniqueKey,
    content_digest,
)

__all__ = ["dumped", "restore", "restored", "whole"]

_NEEDS = (Capability.RESTORE,)
_SEEN = (Capability.RESTORE, Capability.INSPECT)
_CONTENT = b"\x00content"
_MOST = 100
_MANY_BYTES = 5 * 1024 * 1024


class WholeFields(TypedDict, total=False):
    """The fields of a whole job that a check may give."""

    name: str
    queue: str
    payload: bytes
    priority: int
    max_attempts: int | None
    timeout: float | None
    headers: Mapping[str, str]
    state: State
    attempt: int
    stalls: int
    serial: int
    run_at: datetime
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    error: Failure | None
    result: bytes | None
    progress: bytes | None
    cancel_requested: bool
    unique: UniqueKey | None
    limits: tuple[str, ...]


def whole(
    id: str,
    *,
    content: bytes = _CONTENT,
    key: KeyHold | None = None,
    history: tuple[PastAttempt, ...] = (),
    **fields: Unpack[WholeFields],
) -> StoredJob:
    """A job as another store may have given it: it waits since `T0`, unless the fields say more."""
    job = Job(
        id=id,
        name="work",
        queue="default",
        payload=b"null",
        priority=0,
        max_attempts=None,
        timeout=None,
        headers={},
        state=State.PENDING,
        attempt=0,
        stalls=0,
        serial=0,
        run_at=T0,
        created_at=T0,
        updated_at=T0,
        finished_at=None,
        error=None,
        result=None,
        progress=None,
        cancel_requested=False,
    )
    return StoredJob(job=replace(job, **fields), content=content, key=key, history=history)


async def restore(store: Driver, *jobs: StoredJob, now: datetime = T0) -> Sequence[object]:
    """The answers for one batch."""
    return list(await store.restore(jobs, now=now))


async def restored(store: Driver, *jobs: StoredJob, now: datetime = T0) -> None:
    """All of the batch must be stored."""
    answers = await restore(store, *jobs, now=now)
    expect(answers, [Restored.STORED] * len(jobs), "the answers of restore")


async def dumped(store: Driver, limit: int = 100, now: datetime = T0) -> list[StoredJob]:
    """All pages of a dump."""
    found: list[StoredJob] = []
    cursor: str | None = None
    while True:
        page = await store.dump(cursor, limit, now=now)
        expect_that(len(page.jobs) <= limit, f"a page of {len(page.jobs)} jobs for {limit}")
        expect(page.unreadable, (), "the unreadable jobs of a dump")
        found += page.jobs
        cursor = page.cursor
        if cursor is None:
            return found


def _past(
    attempt: int = 1, serial: int = 1, message: str = "broke \u00e9\u65e5\x00"
) -> PastAttempt:
    return PastAttempt(
        attempt=attempt,
        serial=serial,
        outcome="retried",
        started_at=after(1.000001),
        ended_at=after(2.5),
        worker="a worker",
        kind="error",
        message=message,
    )


def _in_each_state() -> list[StoredJob]:
    return [
        whole("pending", payload=b"\x00\xff\xfe", run_at=after(0.000001), created_at=after(-5.5)),
        whole("scheduled", run_at=after(1e6), priority=-100, max_attempts=3, timeout=0.25),
        whole("retrying", attempt=1, serial=2, error=failure("broke \ud55c"), stalls=2),
        whole("blocked", state=State.BLOCKED, headers={"a": "b", "\u00e9": "\u65e5"}),
        whole("processing", state=State.PROCESSING, attempt=3, serial=7, stalls=1, priority=100),
        _over("completed", state=State.COMPLETED, result=b'\xff{"a":1e2}', progress=b""),
        _over("empty", state=State.COMPLETED, payload=b"", result=b""),
        _over("failed", state=State.FAILED, error=failure("x" * 5000, kind="panic")),
        _over("cancelled", state=State.CANCELLED, progress=b"[1]", name="\u65e5"),
    ]


def _over(id: str, *, content: bytes = _CONTENT, **fields: Unpack[WholeFields]) -> StoredJob:
    """A job that had a past, and has ended."""
    fields.setdefault("finished_at", after(9.000003))
    fields.setdefault("updated_at", after(10))
    fields.setdefault("serial", 4)
    fields.setdefault("attempt", 2)
    return whole(id, content=content, **fields)


# --- out ----------------------------------------------------------------------------------------


@check("dump()", _NEEDS)
async def an_empty_store_has_an_empty_dump(store: Driver) -> None:
    expect(await store.dump(None, 10, now=T0), Dump(jobs=(), cursor=None), "the dump")


@check("dump()", [*_SEEN, Capability.HISTORY, Capability.DELAY])
async def a_dump_has_each_job_as_it_is_shown_with_its_history_and_content(store: Driver) -> None:
    jobs = [
        new_job(id, queue=id, payload=id.encode(), headers={"of": id}, priority=n, timeout=2.5)
        for n, id in enumerate(("failed", "retried", "completed", "cancelled", "running", "waits"))
    ]
    await enqueue(store, *jobs)
    for id, outcome in (
        ("failed", Failed(failure("for good"))),
        ("retried", Retried(60.0, failure())),
        ("completed", Completed(b"[1]")),
        ("cancelled", Cancelled("asked")),
    ):
        claimed = await claim_one(store, id, now=after(1))
        await record(store, claimed.hold, outcome, now=after(2))
    await claim_one(store, "running", now=after(3))
    found = await dumped(store)
    expect([each.job.id for each in found], [job.id for job in jobs], "the jobs, oldest first")
    for each, job in zip(found, jobs, strict=True):
        expect(each.job, await stored(store, job.id), f"the job {job.id!r}")
        right = list(await store.history(job.id))
        expect(list(each.history), right, f"the history of {job.id!r}")
        expect(each.content, content_digest(job), f"the content of {job.id!r}")
        expect((each.key, each.damage), (None, None), f"what else is said of {job.id!r}")


@check("dump()", _NEEDS)
async def the_pages_of_a_dump_go_on_where_the_last_one_ended(store: Driver) -> None:
    names = ["9", "10", "b", "B", "a"]
    await enqueue(store, *(new_job(id) for id in names))
    for limit in (1, 2, 4, 5, 6):
        found = [each.job.id for each in await dumped(store, limit)]
        expect(found, names, f"the jobs in pages of {limit}")


@check("dump()", [*_NEEDS, Capability.CONTROL])
async def a_dump_has_each_job_that_stays_once_whatever_comes_and_goes(store: Driver) -> None:
    await enqueue(store, *(new_job(f"job-{n}") for n in range(6)))
    first = await store.dump(None, 2, now=T0)
    await enqueue(store, new_job("later"))
    await store.delete(["job-0", "job-3"], now=after(1))
    await claim(store, now=after(1))
    rest: list[StoredJob] = []
    cursor = first.cursor
    while cursor is not None:
        page = await store.dump(cursor, 2, now=after(2))
        rest += page.jobs
        cursor = page.cursor
    found = [each.job.id for each in (*first.jobs, *rest) if each.job.id != "later"]
    expect(found, ["job-0", "job-1", "job-2", "job-4", "job-5"], "the jobs of the dump")
    states = {each.job.state for each in rest}
    expect(states, {State.PROCESSING}, "the states of those whose page came later")


@check("dump()", _NEEDS)
async def a_page_of_a_dump_ends_before_it_has_too_many_bytes(store: Driver) -> None:
    await enqueue(store, *(new_job(f"big-{n}", payload=b"x" * _MANY_BYTES) for n in range(2)))
    await enqueue(store, new_job("small"))
    page = await store.dump(None, 10, now=T0)
    expect(len(page.jobs), 1, "the jobs of a page where two are too large together")
    found = [each.job.id for each in await dumped(store, 10)]
    expect(found, ["big-0", "big-1", "small"], "the jobs of all pages")


@check("dump()", _NEEDS)
async def a_cursor_that_no_dump_gave_is_refused(store: Driver) -> None:
    for cursor in ("", "1", "1:", ":1", "a:b", "-1:5", "1:2:3", "1:" + "9" * 30):
        try:
            await store.dump(cursor, 10, now=T0)
        except InvalidConfiguration:
            continue
        refuse(f"dump took the cursor {cursor!r}")


@check("dump()", [*_NEEDS, Capability.EXTEND])
async def a_dump_leaves_jobs_and_holds_as_they_are(store: Driver) -> None:
    claimed = await started(store, "a")
    before = await dumped(store)
    expect(await dumped(store, now=after(LEASE + 1)), before, "a second dump")
    kept = await store.extend([claimed.hold], LEASE, now=after(1))
    expect(list(kept), [Kept.KEPT], "the answer of extend after the dumps")
    await record(store, claimed.hold, Completed(), now=after(2))


# --- in -----------------------------------------------------------------------------------------


@check("I10", _SEEN)
async def a_whole_job_arrives_as_it_was_in_each_state(store: Driver) -> None:
    given = _in_each_state()
    await restored(store, *given, now=after(500))
    right = [at_rest(each) for each in given]
    for each in right:
        expect(await stored(store, each.job.id), each.job, f"the job {each.job.id!r}")
    expect(await dumped(store, 4), right, "the dump of what was restored")


@check("restore()", [*_SEEN, Capability.HISTORY])
async def a_history_arrives_and_goes_on(store: Driver) -> None:
    past = tuple(_past(n, n, f"{n}") for n in range(1, _MOST + 1))
    odd = (_past(1, 3), _past(1, 5, ""))
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


@check("I2 I3", [*_SEEN, Capability.EXTEND])
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


@check("restore()", _SEEN)
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


@check("I11", _NEEDS)
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


@check("restore()", [*_NEEDS, Capability.NEXT_DUE])
async def a_restored_job_that_is_due_later_waits_for_its_time(store: Driver) -> None:
    await restored(store, whole("a", run_at=after(60)))
    expect(ids(await claim(store, now=after(59.999999))), [], "the jobs before its time")
    due = await store.next_due(["default"], now=T0)
    expect(due, after(60), "the next due time")
    expect(ids(await claim(store, now=after(60))), ["a"], "the jobs at its time")


@check("I14", _SEEN)
async def a_job_that_is_restored_again_is_known_and_left_as_it_is(store: Driver) -> None:
    given = [whole("a"), _over("b", state=State.FAILED, error=failure())]
    await restored(store, *given)
    claimed = await claim_one(store, now=after(1))
    await record(store, claimed.hold, Completed(b"1"), now=after(2))
    before = await dumped(store)
    answers = await restore(store, *given, whole("c"), now=after(3))
    right = [Restored.KNOWN, Restored.KNOWN, Restored.STORED]
    expect(answers, right, "the answers for the second time")
    expect((await dumped(store))[:2], before, "the jobs that were there")


@check("I14", _NEEDS)
async def a_dispatch_is_known_by_its_content_after_a_move(store: Driver) -> None:
    job = new_job("a", payload=b"[1]", priority=3)
    await restored(store, _over("a", content=content_digest(job), state=State.COMPLETED))
    await enqueue(store, job)
    expect(await counted(store), {"completed": 1}, "the jobs after the repeated dispatch")


@check("restore()", _NEEDS)
async def another_job_under_the_same_id_keeps_the_whole_batch_out(store: Driver) -> None:
    await enqueue(store, new_job("taken"))
    other = whole("taken", content=b"another!")
    answers = await restore(store, whole("a"), other, whole("b"), now=after(1))
    right = [Restored.STORED, Restored.DUPLICATE, Restored.STORED]
    expect(answers, right, "the answers of restore")
    expect([each.job.id for each in await dumped(store)], ["taken"], "the jobs that are stored")


@check("I14", [*_NEEDS, Capability.CONTROL])
async def a_job_that_was_deleted_a_moment_ago_is_not_brought_back(store: Driver) -> None:
    await restored(store, whole("a"))
    await store.delete(["a"], now=after(1))
    expect(await restore(store, whole("a"), now=after(60)), [Restored.KNOWN], "within a minute")
    other = whole("a", content=b"another!")
    answers = await restore(store, other, now=after(60))
    expect(answers, [Restored.DUPLICATE], "other content within a minute")
    expect(await counted(store), {}, "the jobs")
    await restored(store, whole("a"), now=after(120))


@check("counts()", _NEEDS)
async def restored_jobs_are_counted_in_their_states(store: Driver) -> None:
    await restored(store, *_in_each_state())
    right = {
        **{"pending": 3, "scheduled": 1, "blocked": 1},
        **{"completed": 2, "failed": 1, "cancelled": 1},
    }
    expect(await counted(store, now=after(60)), right, "the counts")
    expect(await counted(store, now=after(60), queue="default"), right, "those of the queue")


@check("restore()", [*_NEEDS, Capability.PRUNE])
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


@check("restore()", [*_NEEDS, Capability.PRUNE])
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


@check("restore()", [*_SEEN, Capability.CONTROL])
async def a_restored_job_can_be_retried_cancelled_and_deleted(store: Driver) -> None:
    await restored(
        store,
        _over("failed", state=State.FAILED, error=failure()),
        whole("waits"),
        _over("done", state=State.COMPLETED),
    )
    expect(list(await store.retry([ManualRetry("failed", 4)], now=after(1))), ["done"], "retry")
    job = await stored(store, "failed")
    seen = job.state, job.attempt, job.serial, job.finished_at
    expect(seen, (State.PENDING, 0, 4, None), "the retried job")
    expect(list(await store.cancel(["waits"], now=after(1))), [Answer.DONE], "cancel")
    expect(list(await store.delete(["done"], now=after(1))), [Answer.DONE], "delete")
    expect(await counted(store, now=after(1)), {"pending": 1, "cancelled": 1}, "the counts")


@check("restore()", _NEEDS)
async def a_batch_of_nothing_stores_nothing(store: Driver) -> None:
    expect(await restore(store), [], "the answers")
    expect(await counted(store), {}, "the counts")


# --- schedules ----------------------------------------------------------------------------------

_SCHEDULES = (Capability.RESTORE, Capability.SCHEDULES)


def _schedule(
    id: str = "s", *, definition: bytes = b"d\x00\xff", paused: bool = False
) -> ScheduleRecord:
    return ScheduleRecord(
        id=id,
        revision=f"revision of {id}",
        definition=definition,
        created_at=after(-500.000001),
        last=after(-3.25),
        paused=paused,
    )


@check("restore()", _SCHEDULES)
async def a_schedule_stands_after_the_move_as_it_stood_before(store: Driver) -> None:
    given = [_schedule("b", paused=True), _schedule("a")]
    answers = list(await store.restore_schedules(given))
    expect(answers, [Restored.STORED] * 2, "the answers")
    found = list((await store.schedules(now=T0)).items)
    expect(found, [given[1], given[0]], "the schedules")
    tick = Tick(
        schedule_id="a",
        revision="revision of a",
        previous=after(-3.25),
        instant=after(0),
        job=new_job("ticked"),
    )
    expect(list(await store.fire([tick], now=after(1))), [Fired.FIRED], "its next tick")
    expect(list(await store.fire([tick], now=after(1))), [Fired.LOST], "the tick again")
    again = list(await store.restore_schedules(given))
    expect(again, [Restored.KNOWN] * 2, "the answers for the second time")
    found = list((await store.schedules(now=T0)).items)
    expect(found[0].last, after(0), "the last tick, which the second time leaves")


@check("restore()", _SCHEDULES)
async def another_schedule_under_the_same_id_keeps_the_batch_out(store: Driver) -> None:
    new = NewSchedule(id="s", revision="r1", definition=b"another")
    await store.put_schedules([new], now=T0)
    before = await store.schedules(now=T0)
    answers = list(await store.restore_schedules([_schedule("a"), _schedule("s")]))
    expect(answers, [Restored.STORED, Restored.DUPLICATE], "the answers")
    expect(await store.schedules(now=T0), before, "the schedules")
    same = _schedule("s", definition=b"another")
    expect(list(await store.restore_schedules([same])), [Restored.KNOWN], "the same definition")
    expect(await store.schedules(now=T0), before, "the schedules, which keep their revision")
    expect(list(await store.restore_schedules([])), [], "the answers for none")
