"""`get`, `list`, `cancel`, `retry`, `delete`, `pause` and `resume`: one answer for each id."""

from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.types import Answer
from tests.runtime.scenes import unreachable
from tests.runtime.world import World, each_store, open_world

IMPOSSIBLE: list[Any] = ["", "\ud800", "a\0b", "x" * 300, 7, None]


async def finish(world: World, outcome: tenure.Outcome) -> None:
    """Let another worker run the next job and end it so."""
    (claim,) = await world.claim_elsewhere()
    await world.inner.record([(claim.hold, outcome)])


def failed(world: World) -> tenure.Failed:
    return tenure.Failed(
        tenure.Failure(kind="error", message="no", at=world.clock.now(), attempt=1)
    )


@each_store
@pytest.mark.parametrize("job_id", [*IMPOSSIBLE, "nobody"])
async def test_an_id_that_no_job_has_is_unknown_whatever_it_is(
    store: str, tmp_path: Path, job_id: Any
) -> None:
    """`get` raises, the verbs answer."""
    async with open_world(store, tmp_path) as world:
        with pytest.raises(tenure.JobNotFound) as caught:
            await world.queue.get(job_id)
        assert caught.value.job_id == job_id
        for verb in (world.queue.cancel, world.queue.retry, world.queue.delete):
            assert list(await verb([job_id])) == ["unknown"]


@each_store
async def test_each_id_has_its_answer_in_its_place(store: str, tmp_path: Path) -> None:
    """Also one that is given twice, and from a generator."""
    async with open_world(store, tmp_path) as world:
        jobs = [await world.queue.dispatch("work", n) for n in range(3)]
        ids = [jobs[0].id, "nobody", jobs[1].id, jobs[0].id]
        assert list(await world.queue.cancel(job_id for job_id in ids)) == [
            "done",
            "unknown",
            "done",
            "done",
        ]
        assert await world.queue.cancel(jobs[0].id) == "finished"
        assert await world.queue.cancel(jobs[2].id) is Answer.DONE
        assert list(await world.queue.cancel([])) == []


@each_store
async def test_every_verb_answers_as_its_table_says(store: str, tmp_path: Path) -> None:
    """A waiting, a running, a completed and a failed job."""
    async with open_world(store, tmp_path) as world:
        queue = world.queue
        completed = await queue.dispatch("work")
        await finish(world, tenure.Completed(b"null"))
        broken = await queue.dispatch("work")
        await finish(world, failed(world))
        running = await queue.dispatch("work")
        await world.claim_elsewhere()
        waiting = await queue.dispatch("work")
        ids = [waiting.id, running.id, completed.id, broken.id]
        assert list(await queue.retry(ids)) == ["live", "running", "finished", "done"]
        assert await world.state(broken) == "pending"
        assert list(await queue.cancel(ids)) == ["done", "requested", "finished", "done"]
        assert list(await queue.delete(ids)) == ["done", "running", "done", "done"]
        assert [job.id for job in (await queue.list()).jobs] == [running.id]


@each_store
async def test_a_verb_whose_answer_was_lost_is_repeated(store: str, tmp_path: Path) -> None:
    """I14: what the first try did is done once; only `cancel` cannot tell whose doing it was."""
    async with open_world(store, tmp_path) as world:
        job = await world.queue.dispatch("work")
        world.driver.fail("cancel", unreachable(ambiguous=True), after=True)
        assert await world.run(world.queue.cancel(job.id)) == "finished"
        world.driver.fail("retry", unreachable(ambiguous=True), after=True)
        assert await world.run(world.queue.retry(job.id)) == "done"
        world.driver.fail("delete", unreachable(ambiguous=True), after=True)
        assert await world.run(world.queue.delete(job.id)) == "done"
        with pytest.raises(tenure.JobNotFound):
            await world.queue.get(job.id)


@each_store
async def test_pages_show_each_job_once_newest_first(store: str, tmp_path: Path) -> None:
    """Filters combine; the last page has no cursor."""
    async with open_world(store, tmp_path) as world:
        jobs = [
            await world.queue.dispatch("odd" if n % 2 else "even", n, queue=f"q{n % 3}")
            for n in range(25)
        ]
        seen: list[str] = []
        cursor = None
        while True:
            page = await world.queue.list(limit=10, cursor=cursor)
            seen += [job.id for job in page.jobs]
            cursor = page.cursor
            if cursor is None:
                break
        assert seen == [job.id for job in reversed(jobs)]
        some = await world.queue.list(name="odd", queue="q0", state="pending")
        assert [job.payload for job in some.jobs] == [21, 15, 9, 3]
        assert (await world.queue.list(state="failed")).jobs == ()


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": 1.5}, "limit"),
        ({"state": "done"}, "state"),
        ({"queue": ""}, "queue"),
        ({"name": 3}, "name"),
        ({"cursor": "nonsense"}, "cursor"),
    ],
)
async def test_a_wrong_option_of_list_is_named(wrong: dict[str, Any], named: str) -> None:
    async with open_world() as world:
        with pytest.raises((tenure.InvalidConfiguration, tenure.InvalidJob), match=f"^{named}"):
            await world.queue.list(**wrong)


@each_store
async def test_a_paused_queue_is_shown_and_not_claimed_from(store: str, tmp_path: Path) -> None:
    """Others go on."""
    async with open_world(store, tmp_path) as world:
        await world.queue.dispatch("work")
        await world.queue.pause("default")
        assert (await world.queue.counts()).paused == {"default"}
        assert list(await world.claim_elsewhere()) == []
        await world.queue.resume("default")
        assert len(await world.claim_elsewhere()) == 1
        with pytest.raises(tenure.InvalidJob):
            await world.queue.pause("a\nb")
