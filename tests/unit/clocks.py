"""An oracle for expressions: every minute of a stretch of time, one after another.

It shares nothing with the code under test but `zoneinfo`: it asks what the clocks show at each
minute, and remembers how far they have come.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from hypothesis import strategies as st
from msgspec import Struct

MINUTE = timedelta(minutes=1)


class Times(Struct, frozen=True, kw_only=True):
    """What a generated expression matches, known from how it was generated."""

    text: str
    real: bool
    minutes: frozenset[int]
    hours: frozenset[int]
    day: Callable[[datetime], bool]

    def match(self, wall: datetime) -> bool:
        return wall.minute in self.minutes and wall.hour in self.hours and self.day(wall)


class Stretch(Struct, frozen=True):
    """A few days of a zone around a change of its clocks."""

    zone: str
    start: datetime
    days: int


STRETCHES = [
    Stretch("US/Pacific", datetime(2026, 11, 1, tzinfo=UTC), 2),
    Stretch("US/Pacific", datetime(2026, 3, 8, tzinfo=UTC), 2),
    Stretch("Europe/Berlin", datetime(2026, 10, 24, 20, tzinfo=UTC), 2),
    Stretch("Europe/Berlin", datetime(2026, 3, 28, 20, tzinfo=UTC), 2),
    Stretch("Europe/Berlin", datetime(2026, 7, 1, tzinfo=UTC), 2),
    Stretch("Australia/Lord_Howe", datetime(2026, 4, 4, tzinfo=UTC), 2),  # back by half an hour
    Stretch("Australia/Lord_Howe", datetime(2026, 10, 3, tzinfo=UTC), 2),
    Stretch("America/Havana", datetime(2026, 11, 1, tzinfo=UTC), 2),  # midnight comes twice
    Stretch("America/Havana", datetime(2026, 3, 8, tzinfo=UTC), 2),  # there is no midnight
    Stretch("America/Santiago", datetime(2026, 9, 5, tzinfo=UTC), 2),
    Stretch("America/Santiago", datetime(2026, 4, 4, tzinfo=UTC), 2),
    Stretch("Pacific/Apia", datetime(2011, 12, 29, tzinfo=UTC), 3),  # a day that never was
    Stretch("America/Caracas", datetime(2016, 4, 30, tzinfo=UTC), 2),
    Stretch("Africa/Casablanca", datetime(2026, 2, 14, tzinfo=UTC), 2),
    Stretch("Asia/Kolkata", datetime(2026, 1, 1, tzinfo=UTC), 2),
    Stretch("UTC", datetime(2026, 1, 1, tzinfo=UTC), 2),
]


@cache
def minutes_of(stretch: Stretch) -> list[tuple[datetime, datetime]]:
    """Each minute from a day before the stretch to its end, and what the clocks show then."""
    zone = ZoneInfo(stretch.zone)
    instants = [stretch.start + MINUTE * n for n in range(-1440, stretch.days * 1440)]
    return [(i, i.astimezone(zone).replace(tzinfo=None, fold=0)) for i in instants]


def brute(times: Times, stretch: Stretch) -> list[datetime]:
    """Every tick of the stretch by the rule: real time, or the first time that clocks get there."""
    furthest = minutes_of(stretch)[0][1]
    found: list[datetime] = []
    for instant, wall in minutes_of(stretch)[1:]:
        due = times.real and times.match(wall)
        while furthest < wall:
            furthest += MINUTE
            due = due or (not times.real and times.match(furthest))
        if due and instant >= stretch.start:
            found.append(instant)
    return found


def _field(least: int, most: int) -> st.SearchStrategy[tuple[str, frozenset[int]]]:
    every = frozenset(range(least, most + 1))
    numbers = st.integers(least, most)
    return st.one_of(
        st.just(("*", every)),
        st.integers(1, most).map(lambda n: (f"*/{n}", frozenset(range(least, most + 1, n)))),
        st.sets(numbers, min_size=1, max_size=4).map(
            lambda chosen: (",".join(map(str, sorted(chosen))), frozenset(chosen))
        ),
        st.tuples(numbers, numbers, st.integers(1, 5)).map(
            lambda t: (
                f"{min(t[:2])}-{max(t[:2])}/{t[2]}",
                frozenset(range(min(t[:2]), max(t[:2]) + 1, t[2])),
            )
        ),
    )


@st.composite
def expressions(draw: st.DrawFn) -> Times:
    minute, minutes = draw(_field(0, 59))
    hour, hours = draw(st.one_of(_field(0, 23), _field(0, 3)))
    if hour.startswith("*/"):
        hours = frozenset(range(0, 24, int(hour[2:])))
    elif hour == "*":
        hours = frozenset(range(24))
    dom, doms = draw(st.one_of(st.just(("*", frozenset(range(1, 32)))), _field(1, 31)))
    dow, dows = draw(st.one_of(st.just(("*", frozenset(range(7)))), _field(0, 6)))
    if dow.startswith("*/"):
        dows = frozenset(day % 7 for day in range(0, 8, int(dow[2:])))
    both = dom.startswith("*") or dow.startswith("*")

    def day(wall: datetime) -> bool:
        matches = (wall.day in doms, (wall.weekday() + 1) % 7 in dows)
        return all(matches) if both else any(matches)

    return Times(
        text=f"{minute} {hour} {dom} * {dow}",
        real=hour.startswith("*"),
        minutes=minutes,
        hours=hours,
        day=day,
    )
