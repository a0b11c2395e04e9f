"""`retry_all`, `cancel_all`, `delete_all`, `purge`: all jobs that match, in bounded steps."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import tenure
from tests.front.test_control import failed
from tests.runtime.scenes import unreachable
from tests.runtime.world import World, each_store, open_world


async def dispatched(world: World, number: int, name: str = "work", **options: Any) -> list[str]:
    calls = [tenure.Call(name, n, **options) for n in range(number)]
    return [job.id for job in await world.queue.dispatch_many(calls)]


async def ended(world: World, number: int, outcome: Callable[[], tenure.Outcome]) -> list[str]:
    """Jobs of the default queue that another worker has run and ended so."""
    ids = await dispatched(world, number)
    claims = await world.claim_elsewhere(number)
    await world.inner.record([(claim.hold, outcome()) for claim in claims])
    assert sorted(claim.job.id for claim in claims) == sorted(ids)
    return ids


def steps(world: World, operation: str, between: Callable[[], Any] | None = None) -> list[int]:
    """How many jobs each call of the operation was about; `between` comes after each."""
    sizes: list[int] = []
    inner = getattr(world.inner, operation)

    async def call(items: Sequence[Any], *more: Any) -> Any:
        world.driver.calls.append(operation)
        sizes.append(len(items))
        answer = await inner(items, *more)
        if between is not None:
            await between()
        return answer

    setattr(world.driver, operation, call)
    return sizes


@each_store
async def test_all_failed_jobs_are_retried_in_bounded_steps(store: str, tmp_path: Path) -> None:
    """With the number so far after each, and no look at single jobs."""
    async with open_world(store, tmp_path) as world:
        ids = await ended(world, 1200, lambda: failed(world))
        cancelled = await dispatched(world, 1)
        await world.queue.cancel(cancelled)
        told: list[int] = []
        sizes = steps(world, "retry")
        world.driver.calls.clear()
        answers = await world.queue.retry_all(progress=told.append)
        assert answers == tenure.Answers(done=1200)
        assert max(sizes) <= 500
        assert told == [sum(sizes[: n + 1]) for n in range(len(sizes))]
        assert "get" not in world.driver.calls
        assert len(world.driver.calls) <= 12
        counts = await world.queue.counts()
        assert (counts.pending, counts.failed, counts.cancelled) == (len(ids), 0, 1)
        assert await world.queue.retry_all(state="cancelled") == tenure.Answers(done=1)
        assert await world.queue.retry_all() == tenure.Answers()


@each_store
async def test_a_retried_job_that_fails_again_meanwhile_is_not_retried_twice(
    store: str, tmp_path: Path
) -> None:
    """So it ends, however fast the jobs fail."""
    async with open_world(store, tmp_path) as world:
        await ended(world, 120, lambda: failed(world))

        async def fail_again() -> None:
            claims = await world.claim_elsewhere(1000)
            await world.inner.record([(claim.hold, failed(world)) for claim in claims])

        steps(world, "retry", between=fail_again)
        assert await world.queue.retry_all() == tenure.Answers(done=120)
        assert (await world.queue.counts()).failed == 120


@each_store
async def test_a_step_whose_answer_was_lost_is_repeated(store: str, tmp_path: Path) -> None:
    """I14: and counts as what it did."""
    async with open_world(store, tmp_path) as world:
        await ended(world, 60, lambda: failed(world))
        world.driver.fail("retry", unreachable(ambiguous=True), after=True)
        assert await world.run(world.queue.retry_all()) == tenure.Answers(done=60)
        world.driver.fail("delete", unreachable(ambiguous=True), after=True)
        deleted = await world.run(world.queue.delete_all(state="pending"))
        assert deleted == tenure.Answers(done=60)


@each_store
async def test_cancel_all_cancels_what_waits_and_asks_what_runs(store: str, tmp_path: Path) -> None:
    """What has ended is passed over; a state restricts it."""
    async with open_world(store, tmp_path) as world:
        await ended(world, 3, lambda: tenure.Completed(None))
        await dispatched(world, 2)
        await world.claim_elsewhere(2)
        await dispatched(world, 4, delay=60)
        assert await world.queue.cancel_all(state="pending") == tenure.Answers(done=4)
        await dispatched(world, 5)
        assert await world.queue.cancel_all() == tenure.Answers(done=5, requested=2)
        counts = await world.queue.counts()
        assert (counts.cancelled, counts.processing, counts.completed) == (9, 2, 3)


@each_store
async def test_a_filter_restricts_by_queue_and_name(store: str, tmp_path: Path) -> None:
    async with open_world(store, tmp_path) as world:
        await dispatched(world, 2, "a", queue="mail")
        await dispatched(world, 3, "b", queue="mail")
        await dispatched(world, 4, "a", queue="slow")
        assert await world.queue.cancel_all(queue="mail", name="a") == tenure.Answers(done=2)
        assert await world.queue.cancel_all(name="a") == tenure.Answers(done=4)
        deleted = await world.queue.delete_all(state="cancelled", queue="slow")
        assert deleted == tenure.Answers(done=4)
        counts = await world.queue.counts()
        assert (counts.pending, counts.cancelled) == (3, 2)


@each_store
async def test_jobs_that_arrive_meanwhile_are_left_alone(store: str, tmp_path: Path) -> None:
    """Also when they come faster than the steps."""
    async with open_world(store, tmp_path) as world:
        await dispatched(world, 160)

        async def arrive() -> None:
            await dispatched(world, 100)

        sizes = steps(world, "cancel", between=arrive)
        assert await world.queue.cancel_all() == tenure.Answers(done=160)
        assert (await world.queue.counts()).pending == 100 * len(sizes)


@each_store
async def test_a_failure_between_steps_leaves_what_was_done(store: str, tmp_path: Path) -> None:
    """Called again, it goes on with the rest."""
    async with open_world(store, tmp_path) as world:
        await dispatched(world, 160)
        told: list[int] = []

        def then_fail(number: int) -> None:
            told.append(number)
            world.driver.fail("cancel", unreachable())

        with pytest.raises(tenure.StoreUnavailable):
            await world.queue.cancel_all(progress=then_fail)
        (done,) = told
        assert (await world.queue.counts()).cancelled == done
        assert await world.queue.cancel_all() == tenure.Answers(done=160 - done)


async def test_pages_of_large_jobs_hold_fewer_of_them() -> None:
    """A step has some megabytes of payload in memory, however many jobs match."""
    async with open_world() as world:
        for _ in range(100):
            await dispatched(world, 1, "large")
        large = tenure.Call("large", "x" * 1_000_000)
        await world.queue.dispatch_many([large] * 100)
        sizes = steps(world, "cancel")
        assert await world.queue.cancel_all() == tenure.Answers(done=200)
        assert sizes[1:7] == [8] * 6  # the first page is small, the next know how large they are
        assert sizes[-1] > 8


@each_store
@pytest.mark.parametrize("state", ["pending", "completed", "failed", "cancelled"])
async def test_purge_deletes_one_state_of_one_queue(store: str, tmp_path: Path, state: str) -> None:
    """Waiting for their time counts as pending; what is being processed always stays."""
    async with open_world(store, tmp_path) as world:
        await ended(world, 2, lambda: tenure.Completed(None))
        await ended(world, 3, lambda: failed(world))
        await world.queue.cancel(await dispatched(world, 4))
        await dispatched(world, 1)
        await world.claim_elsewhere()
        await dispatched(world, 3)
        await dispatched(world, 2, delay=60)
        await dispatched(world, 6, queue="other")
        number = {"pending": 5, "completed": 2, "failed": 3, "cancelled": 4}[state]
        assert await world.queue.purge("default", state=state) == number
        assert (await world.queue.list(state=state, queue="default")).jobs == ()
        counts = await world.queue.counts()
        assert counts.processing == 1
        assert counts.by_queue["other"].pending == 6
        left = counts.pending + counts.scheduled + counts.completed + counts.failed
        assert left + counts.cancelled == 20 - number
        assert await world.queue.purge("nothing here", state=state) == 0


@each_store
async def test_purge_goes_in_bounded_steps_and_ends_while_jobs_arrive(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more are deleted than there were, however many come meanwhile."""
    async with open_world(store, tmp_path) as world:
        await dispatched(world, 1200)
        inner, told = world.inner.purge, list[int]()
        limits: list[int] = []

        async def purge(which: tenure.JobFilter, limit: int) -> int:
            limits.append(limit)
            deleted = await inner(which, limit)
            await dispatched(world, 600)
            return deleted

        monkeypatch.setattr(world.driver, "purge", purge)
        assert await world.queue.purge("default", state="pending", progress=told.append) == 1200
        assert limits == [500, 500, 200]
        assert told == [500, 1000, 1200]
        assert (await world.queue.counts()).pending == 1800


@pytest.mark.parametrize(
    ("verb", "state"),
    [
        ("purge", "processing"),
        ("purge", "done"),
        ("delete_all", "processing"),
        ("delete_all", None),
        ("retry_all", "completed"),
        ("retry_all", None),
        ("cancel_all", "failed"),
    ],
)
async def test_a_state_that_a_verb_cannot_take_is_refused(verb: str, state: Any) -> None:
    """Naming those that it can; nothing was asked of the store."""
    async with open_world() as world:
        world.driver.calls.clear()
        queue = ("default",) if verb == "purge" else ()
        with pytest.raises(tenure.InvalidConfiguration, match=r"^state must be one of") as caught:
            await getattr(world.queue, verb)(*queue, state=state)
        assert caught.value.value == state
        assert world.driver.calls == []


def test_the_count_of_answers_has_a_field_for_each() -> None:
    assert tenure.Answers.__struct_fields__ == tuple(answer.value for answer in tenure.Answer)
