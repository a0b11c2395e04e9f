"""`move`: waiting jobs get another queue, due time or priority; one answer for each id."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.driver import Capability
from tenure.drivers.memory import MemoryDriver
from tests.front.test_control import failed, finish
from tests.runtime.scenes import unreachable, without
from tests.runtime.world import each_store, open_world


@each_store
async def test_what_is_given_changes_and_the_rest_stays(store: str, tmp_path: Path) -> None:
    """Queue, due time, priority: alone and together."""
    async with open_world(store, tmp_path) as world:
        queue = world.queue
        job = await queue.dispatch("work", priority=3)
        before = await world.job(job)
        assert await queue.move(job.id, queue="slow") == "done"
        moved = await world.job(job)
        assert (moved.queue, moved.priority, moved.run_at) == ("slow", 3, before.run_at)
        later = world.clock.now() + timedelta(hours=1)
        assert await queue.move(job.id, at=later) == "done"
        assert await queue.move(job.id, priority=-5) == "done"
        moved = await world.job(job)
        assert (moved.queue, moved.priority, moved.run_at) == ("slow", -5, later)
        zone = timezone(timedelta(hours=2))
        assert (
            await queue.move(job.id, queue="default", at=before.run_at.astimezone(zone)) == "done"
        )
        assert (await world.job(job)).run_at == before.run_at
        assert [claim.job.id for claim in await world.claim_elsewhere()] == [job.id]


@each_store
async def test_every_job_has_the_answer_of_the_table(store: str, tmp_path: Path) -> None:
    """Nothing changes but what was waiting; a repeated id has its answer twice."""
    async with open_world(store, tmp_path) as world:
        queue = world.queue
        completed = await queue.dispatch("work")
        await finish(world, tenure.Completed(b"null"))
        broken = await queue.dispatch("work")
        await finish(world, failed(world))
        running = await queue.dispatch("work")
        await world.claim_elsewhere()
        waiting = await queue.dispatch("work")
        ids = [waiting.id, running.id, completed.id, broken.id, "nobody", "", waiting.id]
        assert list(await queue.move(iter(ids), queue="slow")) == [
            "done",
            "running",
            "finished",
            "finished",
            "unknown",
            "unknown",
            "done",
        ]
        slow = (await queue.list(queue="slow")).jobs
        assert [job.id for job in slow] == [waiting.id]
        assert list(await queue.move([], queue="slow")) == []


@each_store
async def test_a_move_whose_answer_was_lost_is_done_once(store: str, tmp_path: Path) -> None:
    """I14: the repeat carries the serial, so that it leaves a job alone that has run since."""
    async with open_world(store, tmp_path) as world:
        job = await world.queue.dispatch("work")
        world.driver.fail("move", unreachable(ambiguous=True), after=True)
        assert await world.run(world.queue.move(job.id, priority=9)) == "done"

        async def claimed_between(call: Any) -> Any:
            (claim,) = await world.claim_elsewhere()
            await world.inner.record([(claim.hold, tenure.Snoozed(60.0))])
            return await call()

        snoozed = world.clock.now() + timedelta(seconds=60)
        world.driver.hooks["move"] = claimed_between
        assert await world.queue.move(job.id, at=datetime(2040, 1, 1, tzinfo=UTC)) == "live"
        assert (await world.job(job)).run_at == snoozed


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"queue": ""}, "queue"),
        ({"at": datetime(2030, 1, 1)}, "at"),  # noqa: DTZ001  # naive on purpose
        ({"at": 60}, "at"),
        ({"priority": 101}, "priority"),
        ({"priority": True, "queue": "slow"}, "priority"),
    ],
)
async def test_a_wrong_destination_is_named_and_moves_nothing(
    wrong: dict[str, Any], named: str
) -> None:
    async with open_world() as world:
        job = await world.queue.dispatch("work")
        with pytest.raises(tenure.InvalidJob) as caught:
            await world.queue.move(job.id, **wrong)
        assert caught.value.path == named
        with pytest.raises(tenure.InvalidConfiguration, match="queue, at or priority must be"):
            await world.queue.move(job.id)
        assert "move" not in world.driver.calls


async def test_a_store_that_cannot_delay_moves_to_no_time() -> None:
    """No option is accepted and ignored."""
    async with open_world(capabilities=without(MemoryDriver, Capability.DELAY)) as world:
        job = await world.queue.dispatch("work")
        with pytest.raises(tenure.Unsupported):
            await world.queue.move(job.id, at=world.clock.now())
        assert await world.queue.move(job.id, priority=1) == "done"


async def test_many_ids_are_looked_at_a_few_at_a_time_and_an_error_of_one_is_told() -> None:
    """The store has other work too; when one look fails, nothing is moved and no task is left."""
    async with open_world() as world:
        jobs = await world.queue.dispatch_many([tenure.Call("work", n) for n in range(50)])
        ids = [job.id for job in jobs]
        at_once = most = 0

        async def count(call: Any) -> Any:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await world.clock.sleep(0.01)
            at_once -= 1
            return await call()

        world.driver.hooks["get"] = count
        answers = await world.run(world.queue.move(ids, priority=1))
        assert list(answers) == ["done"] * 50
        assert 1 < most <= 8
        world.driver.calls.clear()
        world.driver.fail("get", unreachable())
        with pytest.raises(tenure.StoreUnavailable):
            await world.queue.move(ids, priority=2)
        assert "move" not in world.driver.calls
