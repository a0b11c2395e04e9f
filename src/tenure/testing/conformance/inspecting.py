"""Checks of `get` and `list`: what is shown is what is stored, each job exactly once."""

from tenure.driver import Capability, Driver
from tenure.errors import InvalidConfiguration
from tenure.outcomes import Completed, Failed, Retried
from tenure.states import State
from tenure.testing.conformance.builders import (
    after,
    claim_one,
    enqueue,
    failure,
    new_job,
    record,
    stored,
)
from tenure.testing.conformance.check import check, expect, expect_that, refuse
from tenure.types import JobFilter

_NEEDS = (Capability.INSPECT,)


async def _walk(
    store: Driver, which: JobFilter, limit: int, *, arriving: str | None = None
) -> list[str]:
    """The ids of a whole walk, page by page; with `arriving` a job arrives after each page."""
    seen: list[str] = []
    cursor: str | None = None
    for number in range(2000):
        page = await store.list(which, cursor, limit)
        expect_that(len(page.jobs) <= limit, f"a page of {len(page.jobs)} with a limit of {limit}")
        seen += [job.id for job in page.jobs]
        cursor = page.cursor
        if cursor is None:
            return seen
        if arriving is not None:
            await enqueue(store, new_job(f"{arriving}-{number}"), now=after(100))
    refuse("a walk did not end after 2000 pages")


@check("get()", _NEEDS)
async def get_of_an_unknown_id_is_none(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    for id in ("b", "A", "a ", "aa"):
        expect(await store.get(id), None, f"get({id!r})")


@check("I1", _NEEDS)
async def get_follows_a_job_through_its_states(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    expect((await stored(store, "a")).state, State.PENDING, "the state at first")
    claimed = await claim_one(store, now=after(1))
    expect(await stored(store, "a"), claimed.job, "the job as the claim and as get show it")
    await record(store, claimed.hold, Retried(0.0, failure()), now=after(2))
    job = await stored(store, "a")
    expect((job.state, job.attempt), (State.PENDING, 1), "state and attempt while a retry waits")
    claimed = await claim_one(store, now=after(10))
    await record(store, claimed.hold, Completed(b"1"), now=after(11))
    job = await stored(store, "a")
    expect((job.state, job.attempt), (State.COMPLETED, 2), "state and attempt at the end")
    expect((job.created_at, job.updated_at), (after(0), after(11)), "creation and last change")
    expect(job.serial, claimed.hold.serial, "the serial")


@check("list()", _NEEDS)
async def a_list_is_empty_where_nothing_matches(store: Driver) -> None:
    expect(await _walk(store, JobFilter(), 10), [], "the list of an empty store")
    await enqueue(store, new_job("a"))
    expect(await _walk(store, JobFilter(name="other"), 10), [], "the list of another name")


@check("list()", _NEEDS)
async def a_list_has_the_newest_arrival_first(store: Driver) -> None:
    await enqueue(store, new_job("m"), new_job("z", priority=9), now=after(50))
    await enqueue(store, new_job("a"), now=after(20))
    await enqueue(store, new_job("y", queue="other"), now=after(60))
    claimed = await claim_one(store, now=after(60))
    await record(store, claimed.hold, Retried(0.0, failure()), now=after(70))
    expect(await _walk(store, JobFilter(), 10), ["y", "a", "z", "m"], "the list")


@check("list()", _NEEDS)
async def a_walk_meets_each_job_once_while_new_ones_arrive(store: Driver) -> None:
    batch = [f"job-{n:02}" for n in range(23)]
    await enqueue(store, *(new_job(id) for id in batch))
    for limit in (1, 4, 23, 50):
        walk = await _walk(store, JobFilter(), limit, arriving=f"new-{limit}")
        old = [id for id in walk if id in batch]
        expect(old, batch[::-1], f"the jobs that were there, in pages of {limit}")
        expect(len(walk), len(set(walk)), "the number of different jobs in the walk")


@check("list()", _NEEDS)
async def a_list_is_filtered_by_state_queue_and_name(store: Driver) -> None:
    jobs = [
        new_job(f"{queue}/{name}/{n}", queue=queue, name=name)
        for n in range(3)
        for queue in ("p", "q")
        for name in ("x", "y")
    ]
    await enqueue(store, *jobs)
    for _ in range(2):
        claimed = await claim_one(store, "p")
        await record(store, claimed.hold, Failed(failure()))
    everything = [job.id for job in reversed(jobs)]
    failed = {"p/x/0", "p/y/0"}
    filters = {
        JobFilter(queue="p"): {id for id in everything if id[0] == "p"},
        JobFilter(name="y"): {id for id in everything if id[2] == "y"},
        JobFilter(queue="q", name="x"): {"q/x/0", "q/x/1", "q/x/2"},
        JobFilter(state=State.FAILED): failed,
        JobFilter(state=State.PENDING): set(everything) - failed,
        JobFilter(state=State.FAILED, queue="p", name="y"): {"p/y/0"},
        JobFilter(state=State.FAILED, queue="q"): set[str](),
    }
    for which, right in filters.items():
        got = await _walk(store, which, 2)
        expect(got, [id for id in everything if id in right], f"the list of {which}")


@check("list()", _NEEDS)
async def a_cursor_that_the_store_did_not_make_is_refused(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    for cursor in ("not a cursor", "", "\u0661", "-1;"):
        try:
            await store.list(JobFilter(), cursor, 10)
        except InvalidConfiguration:
            continue
        refuse(f"list() took the cursor {cursor!r}: expected InvalidConfiguration")
