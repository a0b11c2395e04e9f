"""A36: a schedule for a date that does not exist sent the scheduler into an endless loop.

The kind of fault: an expression that is understood only when its first tick is due. Each is refused
when it is parsed, at once, and says why; a leap day is a date like any other.
"""

import time
from datetime import UTC, datetime, timedelta

import pytest

from tenure.cron import parse
from tenure.errors import InvalidConfiguration
from tests.regressions.sites import Opening

NOW = datetime(2026, 7, 1, tzinfo=UTC)


WRONG = [
    ("0 0 31 4 *", "must name a day that exists"),
    ("0 0 30 2 *", "must name a day that exists"),
    ("0 0 31 2,4,6,9,11 *", "must name a day that exists"),
    ("0 0 30 2 */2", "must name a day that exists"),
    ("* * */20 * 1L", "must name a day that exists"),  # the 1st or 21st as the last Monday
    ("* * * *", "must have five fields"),
    ("61 * * * *", "must have in its minute field 0-59"),
    ("*/0 * * * *", "must have in its minute field 0-59"),
]


@pytest.mark.parametrize(("expression", "why"), WRONG)
@pytest.mark.parametrize("zone", ["UTC", "US/Pacific"])
def test_it_is_refused_at_once(expression: str, why: str, zone: str) -> None:
    """In under 100 ms of processor time, with the rule."""
    begin = time.process_time()
    with pytest.raises(InvalidConfiguration) as caught:
        parse(expression, zone)
    assert time.process_time() - begin < 0.1
    assert caught.value.option == "expression"
    assert caught.value.rule.startswith(why)


def test_a_leap_day_has_the_right_next_date() -> None:
    """2028, 2032; and 2100 has none."""
    leap = parse("0 0 29 2 *", "UTC")
    assert leap.upcoming(NOW, NOW, 2) == (
        datetime(2028, 2, 29, tzinfo=UTC),
        datetime(2032, 2, 29, tzinfo=UTC),
    )
    assert leap.following(datetime(2096, 3, 1, tzinfo=UTC), NOW) == datetime(
        2104, 2, 29, tzinfo=UTC
    )


async def test_each_store_refuses_them_when_they_are_registered(open_site: Opening) -> None:
    """Nothing is stored; a leap day is, with its next date."""
    async with open_site() as site:
        for expression, why in WRONG:
            with pytest.raises(InvalidConfiguration, match=why):
                await site.queue.schedule("s", expression, "work")
        assert list(await site.queue.schedules()) == []
        schedule = await site.queue.schedule("s", "0 0 29 2 *", "work")
        assert schedule.next is not None
        assert (schedule.next.month, schedule.next.day) == (2, 29)
        assert schedule.next - site.clock.now() < timedelta(days=8 * 366)
        assert [each.id for each in await site.queue.schedules()] == ["s"]
