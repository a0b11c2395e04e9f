"""Schedules in a file that two connections fire at once."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tenure.standing import Fired, NewSchedule, Tick
from tenure.types import JobFilter, NewJob
from tests.drivers.sqlite_extras.support import opened

NOW = datetime(2030, 1, 1, 0, 0, 0, 123_457, tzinfo=UTC)


async def test_of_two_connections_that_fire_an_instant_exactly_one_does(tmp_path: Path) -> None:
    """I13: also to the microsecond, which a float of seconds does not keep."""
    path = tmp_path / "jobs.db"
    async with opened(path) as one, opened(path) as other:
        await one.put_schedules([NewSchedule(id="s", revision="r", definition=b"d")], now=NOW)
        for turn in range(20):
            previous = (await other.schedules(now=NOW)).items[0].last
            assert previous == NOW + timedelta(microseconds=turn)
            instant = previous + timedelta(microseconds=1)
            ticks = [
                Tick(
                    schedule_id="s",
                    revision="r",
                    previous=previous,
                    instant=instant,
                    job=NewJob(id=f"{side}{turn}", name="work"),
                )
                for side in "ab"
            ]
            answers = await asyncio.gather(
                one.fire(ticks[:1], now=NOW + timedelta(seconds=1)),
                other.fire(ticks[1:], now=NOW + timedelta(seconds=1)),
            )
            assert sorted([*answers[0], *answers[1]]) == [Fired.FIRED, Fired.LOST]
        assert len((await one.list(JobFilter(), None, 100)).jobs) == 20
