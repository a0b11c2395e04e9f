"""A34: an hourly schedule skipped a run when clocks went back.

The kind of fault: what a schedule does on the days on which clocks change. On both of them, in
three zones that change by an hour or by half of one, hour by hour; and what each store fires there.
"""

from datetime import UTC, date, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

import pytest

import tenure
from tenure._runtime.report import ErrorBuffer, Reporter
from tenure._runtime.upkeep.ticker import Ticker
from tenure.cron import parse
from tenure.schedules import Definition, written_definition
from tenure.standing import NewSchedule
from tests.regressions.ruled import Hands, ruled
from tests.regressions.sites import Opening

PACIFIC, BERLIN, LORD_HOWE = "US/Pacific", "Europe/Berlin", "Australia/Lord_Howe"

AUTUMN = ["00:00+0200", "02:00+0200", "02:00+0100", *(f"{h:02}:00+0100" for h in range(4, 24, 2))]
SPRING = ["00:00+0100", *(f"{h:02}:00+0200" for h in range(4, 24, 2))]


def runs(expression: str, zone: str, day: date) -> list[str]:
    """The ticks of a local day, as the clocks there show them, with their offset."""
    clocks = ZoneInfo(zone)
    begin = datetime(day.year, day.month, day.day, tzinfo=clocks).astimezone(UTC)
    ahead = parse(expression, zone).ahead(begin - timedelta.resolution, begin)
    local = (tick.astimezone(clocks) for tick in ahead)
    return [f"{tick:%H:%M%z}" for tick in takewhile(lambda tick: tick.date() == day, local)]


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        (PACIFIC, date(2026, 11, 1), 25),
        (PACIFIC, date(2026, 3, 8), 23),
        (PACIFIC, date(2026, 6, 1), 24),
        (BERLIN, date(2026, 10, 25), 25),
        (BERLIN, date(2026, 3, 29), 23),
        (BERLIN, date(2026, 6, 1), 24),
    ],
)
def test_an_hourly_schedule_runs_once_each_real_hour(zone: str, day: date, hours: int) -> None:
    """25 and 23 runs on the days of change, all an hour apart."""
    for expression in ["0 * * * *", "@hourly", "0 */1 * * *"]:
        ticks = runs(expression, zone, day)
        assert len(ticks) == len(set(ticks)) == hours


def test_minutes_run_in_real_time_through_the_change() -> None:
    """The minute field plays no part in it."""
    assert len(runs("*/15 * * * *", PACIFIC, date(2026, 11, 1))) == 100
    assert len(runs("*/15 * * * *", PACIFIC, date(2026, 3, 8))) == 92


@pytest.mark.parametrize(
    ("zone", "day", "expression", "expected"),
    [
        # Clocks go back from 2:00 to 1:00: 1:30 comes twice, and the first is the one.
        (PACIFIC, date(2026, 11, 1), "30 1 * * *", ["01:30-0700"]),
        (PACIFIC, date(2026, 11, 1), "30 2 * * *", ["02:30-0800"]),
        (PACIFIC, date(2026, 11, 1), "*/30 1 * * *", ["01:00-0700", "01:30-0700"]),
        (PACIFIC, date(2026, 11, 1), "0 1,2 * * *", ["01:00-0700", "02:00-0800"]),
        # Clocks go forward from 2:00 to 3:00: 2:30 is missing, the end of the gap stands in.
        (PACIFIC, date(2026, 3, 8), "30 1 * * *", ["01:30-0800"]),
        (PACIFIC, date(2026, 3, 8), "30 2 * * *", ["03:00-0700"]),
        (PACIFIC, date(2026, 3, 8), "*/30 2 * * *", ["03:00-0700"]),
        (PACIFIC, date(2026, 3, 8), "0 2,3 * * *", ["03:00-0700"]),
        (PACIFIC, date(2026, 3, 8), "30 2,3 * * *", ["03:00-0700", "03:30-0700"]),
        # The same in Berlin, where clocks change at 3:00 and at 2:00.
        (BERLIN, date(2026, 10, 25), "30 1 * * *", ["01:30+0200"]),
        (BERLIN, date(2026, 10, 25), "30 2 * * *", ["02:30+0200"]),
        (BERLIN, date(2026, 3, 29), "30 1 * * *", ["01:30+0100"]),
        (BERLIN, date(2026, 3, 29), "30 2 * * *", ["03:00+0200"]),
        # Every other hour is real time: a repeated 2:00 is two, a missing one is none.
        (BERLIN, date(2026, 10, 25), "0 */2 * * *", AUTUMN),
        (BERLIN, date(2026, 3, 29), "0 */2 * * *", SPRING),
        # Half an hour, from 2:00 to 1:30 and from 2:00 to 2:30.
        (LORD_HOWE, date(2026, 4, 5), "45 1 * * *", ["01:45+1100"]),
        (LORD_HOWE, date(2026, 10, 4), "15 2 * * *", ["02:30+1100"]),
    ],
)
def test_a_time_of_day_runs_once_on_the_days_of_change(
    zone: str, day: date, expression: str, expected: list[str]
) -> None:
    """The first of two; the end of the gap; never twice."""
    assert runs(expression, zone, day) == expected


@pytest.mark.parametrize("expression", ["30 1 * * *", "30 2 * * *"])
@pytest.mark.parametrize("zone", [PACIFIC, BERLIN, LORD_HOWE])
def test_a_daily_schedule_runs_once_on_every_day_of_the_year(expression: str, zone: str) -> None:
    """Days of change included."""
    for number in range(365):
        assert len(runs(expression, zone, date(2026, 1, 1) + timedelta(days=number))) == 1


QUARTER = timedelta(minutes=15)
DAILY = ["0 * * * *", "30 1 * * *", "30 2 * * *"]


@pytest.mark.parametrize(("day", "hours"), [(date(2026, 11, 1), 25), (date(2026, 3, 8), 23)])
async def test_each_store_fires_each_of_them_once(
    open_site: Opening, day: date, hours: int
) -> None:
    """I13: on both days, looked at every quarter of an hour, as a worker does."""
    async with open_site() as site:
        clocks = ZoneInfo(PACIFIC)
        hands = Hands(datetime(day.year, day.month, day.day, tzinfo=clocks).astimezone(UTC))
        driver = ruled(await site.driver(), hands)
        hands.time -= QUARTER
        await driver.put_schedules(
            [NewSchedule(id=each, revision="r", definition=written(each)) for each in DAILY]
        )
        buffer = ErrorBuffer()
        ticker = Ticker(driver, 1.0, Reporter(buffer, []), hands)
        for _ in range(4 * hours):
            hands.time += QUARTER
            await ticker.turn()
        assert buffer.take() is None
        fired: dict[str, list[str]] = {each: [] for each in DAILY}
        for job in (await site.queue.list(limit=100)).jobs:
            tick = datetime.fromisoformat(job.headers["tick"]).astimezone(clocks)
            fired[job.headers["schedule"]].append(f"{tick:%H:%M%z}")
        assert len(fired["0 * * * *"]) == hours
        for expression, ticks in fired.items():
            assert sorted(ticks) == sorted(runs(expression, PACIFIC, day))


def written(expression: str) -> bytes:
    return written_definition(
        Definition(
            expression=expression,
            zone=PACIFIC,
            missed=tenure.Missed.SKIP,
            name="tick",
            queue="default",
            payload=b"null",
        )
    )
