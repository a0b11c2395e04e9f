"""Schedule expressions: what is accepted, and which instants they name."""

import time
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice, pairwise, takewhile
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tenure.cron import Recurrence, parse
from tenure.errors import InvalidConfiguration
from tests.unit.clocks import STRETCHES, Stretch, Times, brute, expressions

ANCHOR = datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
DAY = timedelta(days=1)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]  # year to microsecond


def between(recurrence: Recurrence, start: datetime, end: datetime) -> list[datetime]:
    """The ticks from `start` on and before `end`."""
    ahead = recurrence.ahead(start - timedelta.resolution, ANCHOR)
    return list(takewhile(lambda tick: tick < end, ahead))


# --- five fields --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("*/5 * * * *", [utc(2026, 1, 1, 12, 5), utc(2026, 1, 1, 12, 10)]),
        ("0 8-18/5 * * *", [utc(2026, 1, 1, 13), utc(2026, 1, 1, 18), utc(2026, 1, 2, 8)]),
        ("30 6 * * mon-fri", [utc(2026, 1, 2, 6, 30), utc(2026, 1, 5, 6, 30)]),
        ("0 0 * * 7", [utc(2026, 1, 4), utc(2026, 1, 11)]),
        ("0 0 * * 0", [utc(2026, 1, 4), utc(2026, 1, 11)]),
        ("0 0 1 JUN *", [utc(2026, 6, 1), utc(2027, 6, 1)]),
        ("0 0 13 * FRI", [utc(2026, 1, 2), utc(2026, 1, 9), utc(2026, 1, 13)]),  # either day
        ("0 0 */31 * THU", [utc(2026, 10, 1), utc(2027, 4, 1)]),  # both
        ("0 0 L * *", [utc(2026, 1, 31), utc(2026, 2, 28)]),
        ("0 0 LW * *", [utc(2026, 1, 30), utc(2026, 2, 27)]),
        ("0 0 * * 5L", [utc(2026, 1, 30), utc(2026, 2, 27)]),
        ("0 0 * * MON#2", [utc(2026, 1, 12), utc(2026, 2, 9)]),
        ("5/25 12 1 1 *", [utc(2026, 1, 1, 12, 5), utc(2026, 1, 1, 12, 30)]),  # from it on
        ("8-8/2 05-5/3 1 1 *", [utc(2027, 1, 1, 5, 8), utc(2028, 1, 1, 5, 8)]),  # from it to it
        ("  0\t0  1 1 *  ", [utc(2027, 1, 1), utc(2028, 1, 1)]),
        ("@hourly", [utc(2026, 1, 1, 13), utc(2026, 1, 1, 14)]),
        ("@daily", [utc(2026, 1, 2), utc(2026, 1, 3)]),
        ("@midnight", [utc(2026, 1, 2), utc(2026, 1, 3)]),
        ("@weekly", [utc(2026, 1, 4), utc(2026, 1, 11)]),
        ("@monthly", [utc(2026, 2, 1), utc(2026, 3, 1)]),
        ("@yearly", [utc(2027, 1, 1), utc(2028, 1, 1)]),
        ("@annually", [utc(2027, 1, 1), utc(2028, 1, 1)]),
    ],
)
def test_an_expression_names_these_instants(expression: str, expected: list[datetime]) -> None:
    """In UTC, after noon of the first of January 2026, a Thursday."""
    recurrence = parse(expression, "UTC")
    assert recurrence.upcoming(ANCHOR, ANCHOR, len(expected)) == tuple(expected)


def test_a_leap_day_comes_every_four_years_and_not_in_2100() -> None:
    """A36: accepted, with the right next dates."""
    leap = parse("0 0 29 2 *", "UTC")
    assert leap.upcoming(ANCHOR, ANCHOR, 2) == (utc(2028, 2, 29), utc(2032, 2, 29))
    assert leap.following(utc(2096, 2, 29), ANCHOR) == utc(2104, 2, 29)
    assert leap.newest(utc(2103, 12, 31), ANCHOR) == utc(2096, 2, 29)


def test_the_rarest_day_is_found() -> None:
    """29 February on a Monday: forty years from 2072 to 2112."""
    rare = parse("0 * */28 2 MON#5", "Europe/Berlin")
    first = rare.following(utc(2072, 3, 1), ANCHOR)
    assert first == utc(2112, 2, 28, 23)  # midnight in Berlin
    assert rare.newest(utc(2112, 2, 28), ANCHOR) == utc(2072, 2, 29, 22)


@pytest.mark.parametrize("zone", ["UTC", "US/Pacific", "Europe/Berlin", "Asia/Kolkata"])
def test_a_year_has_8760_real_hours(zone: str) -> None:
    """Whatever the clocks do in between."""
    hourly = parse("0 * * * *", zone)
    ticks = between(hourly, utc(2026, 1, 1), utc(2027, 1, 1))
    assert len(ticks) == 8760
    assert {later - tick for tick, later in pairwise(ticks)} == {timedelta(hours=1)}


@pytest.mark.parametrize("expression", ["30 1 * * *", "30 2 * * *", "*/20 2 * * *", "0 0 * * *"])
@pytest.mark.parametrize("zone", ["US/Pacific", "Europe/Berlin", "America/Santiago"])
def test_a_time_of_day_comes_once_each_day_of_the_year(expression: str, zone: str) -> None:
    """A34: never twice; those that meet at the end of a gap are one."""
    ticks = between(parse(expression, zone), utc(2026, 1, 2, 12), utc(2027, 1, 2, 12))
    times = 3 if "/" in expression else 1
    assert 365 * times - (times - 1) <= len(ticks) <= 365 * times
    assert ticks == sorted(set(ticks))


# --- clocks that change ---------------------------------------------------------------------------


@settings(max_examples=40)
@given(expressions(), st.sampled_from(STRETCHES))
@example(
    Times(
        text="0 */2 * * *",
        real=True,
        minutes=frozenset({0}),
        hours=frozenset(range(0, 24, 2)),
        day=lambda _: True,
    ),
    Stretch("Australia/Lord_Howe", utc(2026, 4, 4), 2),
)
def test_ticks_are_those_that_a_walk_over_all_minutes_finds(times: Times, stretch: Stretch) -> None:
    """Forwards and backwards, on both sides of every kind of change."""
    try:
        recurrence = parse(times.text, stretch.zone)
    except InvalidConfiguration:
        assume(False)
        raise
    end = stretch.start + DAY * stretch.days
    expected = brute(times, stretch)
    assert between(recurrence, stretch.start, end) == expected
    back = recurrence.back(end - timedelta.resolution, ANCHOR)
    assert list(takewhile(lambda tick: tick >= stretch.start, back)) == expected[::-1]


@settings(max_examples=40)
@given(expressions(), st.sampled_from(STRETCHES), st.integers(0, 2 * 86_400 * 10**6 - 1))
def test_following_and_newest_agree_with_the_walk_at_any_instant(
    times: Times, stretch: Stretch, microseconds: int
) -> None:
    """`following` is strictly later, `newest` is not."""
    try:
        recurrence = parse(times.text, stretch.zone)
    except InvalidConfiguration:
        assume(False)
        raise
    now = stretch.start + timedelta(microseconds=microseconds)
    expected = brute(times, stretch)
    later = [tick for tick in expected if tick > now]
    past = [tick for tick in expected if tick <= now]
    following, newest = recurrence.following(now, ANCHOR), recurrence.newest(now, ANCHOR)
    end = stretch.start + DAY * stretch.days
    assert following == later[0] if later else following is None or following >= end
    assert newest == past[-1] if past else newest is None or newest < stretch.start


@pytest.mark.parametrize("zone", ["US/Pacific", "Europe/Berlin", "America/Havana"])
@pytest.mark.parametrize(
    ("expression", "form", "shown"),
    [
        ("0 * 1,15 * *", "%M %d", {"00 01", "00 15"}),
        ("30 */12 * * SUN", "%M %H %a", {"30 00 Sun", "30 12 Sun"}),
        ("0 * 8 3 *", "%M %d %m", {"00 08 03"}),
        ("*/30 * 1 11 *", "%d %m", {"01 11"}),
    ],
)
def test_real_time_far_apart_is_found_on_both_sides_of_a_change(
    zone: str, expression: str, form: str, shown: set[str]
) -> None:
    """What is skipped between two ticks holds none; two years, half hour by half hour."""
    start, end = utc(2026, 1, 1), utc(2028, 1, 1)
    walk = (
        start + timedelta(minutes=30) * n for n in range((end - start) // timedelta(hours=1) * 2)
    )
    expected = [tick for tick in walk if f"{tick.astimezone(ZoneInfo(zone)):{form}}" in shown]
    recurrence = parse(expression, zone)
    assert between(recurrence, start, end) == expected
    back = recurrence.back(end - timedelta.resolution, ANCHOR)
    assert list(takewhile(lambda tick: tick >= start, back)) == expected[::-1]


@pytest.mark.parametrize("stretch", STRETCHES, ids=lambda s: f"{s.zone} {s.start:%F}")
def test_newest_and_following_hold_at_each_moment_of_a_change(stretch: Stretch) -> None:
    """Also while clocks that went back show the same times again."""
    times = Times(
        text="*/10 0-3 * * *",
        real=False,
        minutes=frozenset(range(0, 60, 10)),
        hours=frozenset(range(4)),
        day=lambda _: True,
    )
    recurrence = parse(times.text, stretch.zone)
    expected = brute(times, stretch)
    for tick, later in pairwise(expected):
        now = tick
        while now < later:
            assert recurrence.newest(now, ANCHOR) == tick
            assert recurrence.following(now, ANCHOR) == later
            now += timedelta(minutes=15)


def test_a_change_right_after_a_tick_is_seen_from_wherever_the_search_began() -> None:
    """0:30 comes twice in Havana that day, then not for a year; quarter hour by quarter hour."""
    once = parse("30 */24 1 11 *", "America/Havana")
    ticks = [utc(2026, 11, 1, 4, 30), utc(2026, 11, 1, 5, 30)]
    for quarter in range(1, 4 * 40):
        after = ticks[0] - timedelta(minutes=15) * quarter
        until = ticks[1] + timedelta(minutes=15) * quarter
        assert once.upcoming(after, ANCHOR, 2) == tuple(ticks)
        assert list(islice(once.back(until, ANCHOR), 2)) == ticks[::-1]


# --- @every ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "length"),
    [
        ("@every 1s", timedelta(seconds=1)),
        ("@every 90s", timedelta(seconds=90)),
        ("@every 1h30m", timedelta(minutes=90)),
        ("@every 2d", timedelta(days=2)),
        ("@every  1d2h3m4s", timedelta(days=1, hours=2, minutes=3, seconds=4)),
        ("@every 3653d", timedelta(days=3653)),
        ("@every 0d1s", timedelta(seconds=1)),
    ],
)
def test_every_counts_from_the_anchor(expression: str, length: timedelta) -> None:
    """The first tick is one interval after it."""
    every = parse(expression, "Europe/Berlin")
    expected = tuple(ANCHOR + length * count for count in (1, 2, 3))
    assert every.upcoming(ANCHOR, ANCHOR, 3) == expected
    assert every.upcoming(ANCHOR - DAY, ANCHOR, 3) == expected
    assert every.newest(ANCHOR, ANCHOR) is None
    assert every.newest(ANCHOR + length, ANCHOR) == ANCHOR + length


@given(
    st.integers(1, 3653 * 86_400),
    st.datetimes(utc(1990, 1, 1).replace(tzinfo=None), utc(2100, 1, 1).replace(tzinfo=None)),
    st.integers(0, 100 * 366 * 86_400 * 10**6),
)
def test_every_never_drifts(seconds: int, anchor: datetime, microseconds: int) -> None:
    """After a hundred years still a whole number of intervals from the anchor."""
    anchor = anchor.replace(tzinfo=UTC)
    every, length = parse(f"@every {seconds}s", "UTC"), timedelta(seconds=seconds)
    now = anchor + timedelta(microseconds=microseconds)
    following, newest = every.following(now, anchor), every.newest(now, anchor)
    assert following is not None
    assert (following - anchor) % length == timedelta(0)
    assert now < following <= now + length
    assert newest is None or (newest == following - length <= now)
    assert (newest is None) == (now < anchor + length)


def test_the_newest_tick_after_a_century_is_found_at_once() -> None:
    """A38: nothing is counted through."""
    far = utc(2126, 6, 1, 0, 0, 30)
    begin = time.process_time()
    for expression in ["@every 1s", "* * * * *", "*/5 3 * * *", "0 0 29 2 *"]:
        newest = parse(expression, "US/Pacific").newest(far, ANCHOR)
        assert newest is not None
        assert newest > far - timedelta(days=1500)
    assert time.process_time() - begin < 1.0


# --- whatever is passed ---------------------------------------------------------------------------

instants = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-11))]))
known = st.sampled_from(
    ["* * * * *", "30 2 * * *", "0 */2 L * *", "0 0 29 2 *", "@every 1s", "@every 3653d", "@weekly"]
)
zones = st.sampled_from(["UTC", "US/Pacific", "Pacific/Apia", "Asia/Kathmandu", "Africa/Monrovia"])


@given(known, zones, instants, instants)
@example("* * * * *", "US/Pacific", datetime.min.replace(tzinfo=UTC), ANCHOR)
@example("* * * * *", "Asia/Kathmandu", datetime.max.replace(tzinfo=UTC), ANCHOR)
@example("30 2 * * *", "Asia/Kathmandu", datetime.max.replace(tzinfo=UTC), ANCHOR)
@example("30 2 * * *", "US/Pacific", datetime.min.replace(tzinfo=UTC), ANCHOR)
@example("@every 1s", "UTC", datetime.max.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
def test_ticks_rise_strictly_on_both_sides_of_any_instant(
    expression: str, zone: str, now: datetime, anchor: datetime
) -> None:
    """Also at the ends of the calendar; and all are aware, in UTC."""
    recurrence = parse(expression, zone)
    ahead = recurrence.upcoming(now, anchor, 4)
    back = list(islice(recurrence.back(now, anchor), 4))
    ticks = [*back[::-1], *ahead]
    assert all(tick < later for tick, later in pairwise(ticks))
    assert all(tick <= now for tick in back)
    assert all(tick > now for tick in ahead)
    assert all(tick.tzinfo is UTC for tick in ticks)
    assert recurrence.following(now, anchor) == (ahead[0] if ahead else None)
    assert recurrence.newest(now, anchor) == (back[0] if back else None)
    for tick, later in pairwise(ticks):
        assert recurrence.following(tick, anchor) == later
        assert recurrence.newest(later - timedelta.resolution, anchor) == tick


pieces = st.text("0123456789*/,-LW#@ \tMONJAevrysdhm\u00b2", max_size=20)


@given(st.one_of(pieces, st.text(max_size=300), pieces.map("@every ".__add__)))
@example("9" * 5000 + " * * * *")
@example("* * * * \u017fun")  # becomes SUN in capitals
@example("@every " + "9" * 9 + "d" + "9" * 9 + "h")
@example("* * * * ²L")
def test_any_text_is_parsed_or_refused(text: str) -> None:
    """Nothing else is ever raised, now or at a tick."""
    refused: tuple[str, object] | None = None
    try:
        recurrence = parse(text, "Europe/Berlin")
    except InvalidConfiguration as error:
        refused = (error.option, error.value)
    else:
        assert recurrence.following(ANCHOR, ANCHOR) is not None
    assert refused in (None, ("expression", text))


@given(st.text(max_size=300))
@example("")
@example("Europe")
@example("../UTC")
@example("/etc/localtime")
@example("UTC\0")
@example("\ud800")
@example("a" * 5000)
@example("__init__.py")
@example("tzdata.zi")
@example(".")
def test_any_zone_is_found_or_refused(zone: str) -> None:
    """Nothing else is ever raised."""
    refused: tuple[str, object] | None = None
    try:
        parse("@daily", zone)
    except InvalidConfiguration as error:
        refused = (error.option, error.value)
    assert refused in (None, ("zone", zone))


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("", "must not be empty"),
        ("   ", "must not be empty"),
        ("* * * *", "must have five fields"),
        ("0 * * * * *", "must have five fields"),
        ("61 * * * *", "must have in its minute field 0-59"),
        ("*/0 * * * *", "must have in its minute field 0-59"),
        ("5-5/0 * * * *", "must have in its minute field 0-59"),
        ("5-1 * * * *", "must have in its minute field 0-59"),
        ("-1 * * * *", "must have in its minute field 0-59"),
        ("* 24 * * *", "must have in its hour field 0-23"),
        ("* * 0 * *", "must have in its day of month field 1-31"),
        ("* * 15W * *", "must have in its day of month field 1-31"),
        ("* * * 13 *", "must have in its month field 1-12"),
        ("* * * * 8", "must have in its day of week field 0-7"),
        ("* * * * MON#6", "must have in its day of week field 0-7"),
        ("0 0 31 4 *", "must name a day that exists"),
        ("0 0 30 2 *", "must name a day that exists"),
        ("0 0 31 2,4,6,9,11 *", "must name a day that exists"),
        ("* * */20 * 1L", "must name a day that exists"),
        ("0 0 * 2 MON#5 ", None),  # leap days on a Monday
        ("0 0 30 2 MON", None),  # the Mondays of February
        ("0 0\n* * *", "must be a line of ASCII characters"),
        ("0 0 * * mön", "must be a line of ASCII characters"),
        ("0" * 257, "must be at most 256 characters"),
        ("@fortnightly", "must be one of @hourly, @daily"),
        ("@Daily", "must be one of @hourly, @daily"),
        ("@daily 5", "must be one of @hourly, @daily"),
        ("@every", "must have one whole number each"),
        ("@every 90", "must have one whole number each"),
        ("@every 1.5h", "must have one whole number each"),
        ("@every 30m1h", "must have one whole number each"),
        ("@every 1h 30m", "must have one whole number each"),
        ("@every 500ms", "must have one whole number each"),
        ("@every -5s", "must have one whole number each"),
        ("@every 0s", "must be every second to every ten years"),
        ("@every 3653d1s", "must be every second to every ten years"),
        ("@every 999999999d999999999h", "must be every second to every ten years"),
        (None, "must be text"),
        (5, "must be text"),
        (b"* * * * *", "must be text"),
    ],
)
def test_an_expression_is_refused_with_the_rule_and_an_example(
    expression: Any, says: str | None
) -> None:
    """A36: when it is parsed, and in no time."""
    begin = time.process_time()
    if says is None:
        parse(expression, "UTC")
        return
    with pytest.raises(InvalidConfiguration) as caught:
        parse(expression, "UTC")
    assert time.process_time() - begin < 0.1
    assert caught.value.option == "expression"
    assert caught.value.value == expression
    assert caught.value.rule.startswith(says)
    assert "such as" in caught.value.rule or "as in" in caught.value.rule


@pytest.mark.parametrize(
    "zone",
    [
        *("", "PST", "Mars/Phobos", "Europe", "+02:00", None, 5, UTC),
        *("localtime", "posixrules", "posix/UTC", "right/UTC", "../zoneinfo/UTC"),
    ],
)
def test_an_unknown_zone_is_refused(zone: Any) -> None:
    """Also what a machine is set to, which is not the same on another."""
    with pytest.raises(InvalidConfiguration) as caught:
        parse("@daily", zone)
    assert caught.value.option == "zone"
    assert caught.value.value is zone
    assert "'Europe/Berlin'" in caught.value.rule
