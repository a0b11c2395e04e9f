"""`schedule` and its siblings: what is refused, what is shown, what a run by hand does."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

import tenure
from tests.runtime.world import open_world


async def test_a_schedule_is_shown_with_its_options_and_next_instants() -> None:
    async with open_world() as world:
        made = await world.queue.schedule(
            "report",
            "0 3 * * *",
            "send_report",
            {"to": "a@b"},
            zone="Europe/Berlin",
            missed="once",
            queue="mail",
            limits=["smtp"],
            unique="report",
        )
        (shown,) = await world.queue.schedules()
        assert shown == made
        assert (shown.id, shown.expression, shown.zone) == ("report", "0 3 * * *", "Europe/Berlin")
        assert (shown.name, shown.queue, shown.payload) == ("send_report", "mail", {"to": "a@b"})
        assert (shown.missed, shown.limits) == ("once", ("smtp",))
        assert shown.unique == tenure.UniqueKey(key="report")
        upcoming = shown.upcoming(3)
        assert shown.next == upcoming[0]
        steps = [later - earlier for earlier, later in pairwise(upcoming)]
        assert steps == [timedelta(days=1), timedelta(days=1)]
        assert upcoming[0].tzinfo is UTC


async def test_run_now_dispatches_beside_the_instants() -> None:
    async with open_world() as world:
        before = await world.queue.schedule("s", "@daily", "work", {"n": 1}, queue="mail")
        await world.queue.pause_schedule("s")
        job = await world.queue.run_schedule("s")
        stored = await world.job(job)
        assert (stored.name, stored.queue, stored.payload) == ("work", "mail", {"n": 1})
        assert stored.headers["schedule"] == "s"
        (shown,) = await world.queue.schedules()
        assert (shown.last, shown.paused) == (before.last, True)


async def test_unschedule_says_whether_it_was_there() -> None:
    async with open_world() as world:
        await world.queue.schedule("s", "@daily", "work")
        assert await world.queue.unschedule("s")
        assert not await world.queue.unschedule("s")
        assert list(await world.queue.schedules()) == []


async def test_what_concerns_an_unknown_schedule_says_so() -> None:
    async with open_world() as world:
        for verb in (
            world.queue.pause_schedule,
            world.queue.resume_schedule,
            world.queue.run_schedule,
        ):
            with pytest.raises(tenure.ScheduleNotFound) as caught:
                await verb("none")
            assert caught.value.schedule_id == "none"


@pytest.mark.parametrize(
    ("change", "option"),
    [
        ({"expression": "* * * *"}, "expression"),
        ({"expression": "0 0 30 2 *"}, "expression"),
        ({"expression": "@every 0s"}, "expression"),
        ({"zone": "Mars/Olympus"}, "zone"),
        ({"missed": "sometimes"}, "missed"),
        ({"missed": None}, "missed"),
    ],
)
async def test_a_wrong_schedule_is_refused_and_nothing_is_stored(
    change: dict[str, Any], option: str
) -> None:
    """FAULTS A36: at registration, not at the tick."""
    async with open_world() as world:
        arguments: dict[str, Any] = {"id": "s", "expression": "@daily", "name": "work"} | change
        with pytest.raises(tenure.InvalidConfiguration) as caught:
            await world.queue.schedule(**arguments)
        assert caught.value.option == option
        assert list(await world.queue.schedules()) == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"id": ""}, "id"),
        ({"name": "a\0"}, "name"),
        ({"payload": {"at": datetime(2026, 1, 1, tzinfo=UTC)}}, "payload.at"),
        ({"limits": "api"}, "limits"),
        ({"priority": 101}, "priority"),
    ],
)
async def test_a_wrong_job_of_a_schedule_is_refused_with_its_path(
    change: dict[str, Any], path: str
) -> None:
    async with open_world() as world:
        arguments: dict[str, Any] = {"id": "s", "expression": "@daily", "name": "work"} | change
        with pytest.raises(tenure.InvalidJob) as caught:
            await world.queue.schedule(**arguments)
        assert caught.value.path == path
        assert list(await world.queue.schedules()) == []
