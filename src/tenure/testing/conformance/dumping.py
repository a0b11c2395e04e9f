"""Checks of dump: all that is in a store comes out, page by page, and stays as it is."""

from tenure.driver import Capability, Driver
from tenure.errors import InvalidConfiguration
from tenure.moved import Dump, StoredJob
from tenure.outcomes import Cancelled, Completed, Failed, Retried
from tenure.states import State
from tenure.testing.conformance.builders import (
    LEASE,
    T0,
    after,
    claim,
    claim_one,
    enqueue,
    failure,
    new_job,
    record,
    started,
    stored,
)
from tenure.testing.conformance.check import check, expect, refuse
from tenure.testing.conformance.whole_jobs import (
    NEEDS,
    SEEN,
    dumped,
)
from tenure.types import (
    Kept,
    content_digest,
)

_MANY_BYTES = 5 * 1024 * 1024


@check("dump()", NEEDS)
async def an_empty_store_has_an_empty_dump(store: Driver) -> None:
    expect(await store.dump(None, 10, now=T0), Dump(jobs=(), cursor=None), "the dump")


@check("dump()", [*SEEN, Capability.HISTORY, Capability.DELAY])
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


@check("dump()", NEEDS)
async def the_pages_of_a_dump_go_on_where_the_last_one_ended(store: Driver) -> None:
    names = ["9", "10", "b", "B", "a"]
    await enqueue(store, *(new_job(id) for id in names))
    for limit in (1, 2, 4, 5, 6):
        found = [each.job.id for each in await dumped(store, limit)]
        expect(found, names, f"the jobs in pages of {limit}")


@check("dump()", [*NEEDS, Capability.CONTROL])
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


@check("dump()", NEEDS)
async def a_page_of_a_dump_ends_before_it_has_too_many_bytes(store: Driver) -> None:
    await enqueue(store, *(new_job(f"big-{n}", payload=b"x" * _MANY_BYTES) for n in range(2)))
    await enqueue(store, new_job("small"))
    page = await store.dump(None, 10, now=T0)
    expect(len(page.jobs), 1, "the jobs of a page where two are too large together")
    found = [each.job.id for each in await dumped(store, 10)]
    expect(found, ["big-0", "big-1", "small"], "the jobs of all pages")


@check("dump()", NEEDS)
async def a_cursor_that_no_dump_gave_is_refused(store: Driver) -> None:
    for cursor in ("", "1", "1:", ":1", "a:b", "-1:5", "1:2:3", "1:" + "9" * 30):
        try:
            await store.dump(cursor, 10, now=T0)
        except InvalidConfiguration:
            continue
        refuse(f"dump took the cursor {cursor!r}")


@check("dump()", [*NEEDS, Capability.EXTEND])
async def a_dump_leaves_jobs_and_holds_as_they_are(store: Driver) -> None:
    claimed = await started(store, "a")
    before = await dumped(store)
    expect(await dumped(store, now=after(LEASE + 1)), before, "a second dump")
    kept = await store.extend([claimed.hold], LEASE, now=after(1))
    expect(list(kept), [Kept.KEPT], "the answer of extend after the dumps")
    await record(store, claimed.hold, Completed(), now=after(2))
