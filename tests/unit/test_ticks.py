"""Which ticks are due at a look, which are skipped, and when to look again."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.cron import parse
from tenure.standing import Missed
from tenure.ticks import GRACE, MOST_COUNTED, MOST_FIRED, Due, due

ANCHOR = datetime(2026, 1, 1, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)

IN_TIME = 61  # ticks of every second that are at most 60 s late

policies = pytest.mark.parametrize("missed", list(Missed))


def look(missed: Missed, last: datetime, now: datetime, expression: str = "*/5 * * * *") -> Due:
    return due(parse(expression, "UTC"), missed=missed, last=last, now=now, anchor=ANCHOR)


# --- the normal rhythm ----------------------------------------------------------------------------


@policies
def test_before_the_first_tick_nothing_is_due(missed: Missed) -> None:
    """And the first tick is when to look."""
    found = look(missed, ANCHOR, ANCHOR + 4 * MINUTE)
    assert found == Due(fire=(), skipped=0, capped=False, passed=None, wake=ANCHOR + 5 * MINUTE)


@policies
@pytest.mark.parametrize("late", [timedelta(0), timedelta.resolution, GRACE])
def test_a_tick_is_fired_at_its_instant_and_within_the_grace(
    missed: Missed, late: timedelta
) -> None:
    """Not a moment earlier; 60 s late is not missed."""
    tick = ANCHOR + 5 * MINUTE
    assert look(missed, ANCHOR, tick - timedelta.resolution).fire == ()
    assert look(missed, ANCHOR, tick + late) == Due(
        fire=(tick,), skipped=0, capped=False, passed=None, wake=tick + 5 * MINUTE
    )


@policies
def test_a_tick_that_was_dealt_with_is_not_due_again(missed: Missed) -> None:
    """I13, as far as a look can see."""
    tick = ANCHOR + 5 * MINUTE
    found = look(missed, tick, tick)
    assert found == Due(fire=(), skipped=0, capped=False, passed=None, wake=tick + 5 * MINUTE)


# --- ticks that were missed -----------------------------------------------------------------------


def test_skip_leaves_out_a_tick_that_is_later_than_the_grace() -> None:
    """And says what the last tick becomes."""
    tick = ANCHOR + 5 * MINUTE
    found = look(Missed.SKIP, ANCHOR, tick + GRACE + timedelta.resolution)
    assert found == Due(fire=(), skipped=1, capped=False, passed=tick, wake=tick + 5 * MINUTE)


@policies
def test_several_that_came_within_the_grace_are_each_fired(missed: Missed) -> None:
    """A worker that was held up for a moment loses none."""
    found = look(missed, ANCHOR, ANCHOR + 3 * SECOND, "@every 1s")
    assert found.fire == tuple(ANCHOR + n * SECOND for n in (1, 2, 3))
    assert (found.skipped, found.capped, found.passed) == (0, False, None)
    assert found.wake == ANCHOR + 4 * SECOND


def test_once_fires_one_of_the_missed_however_late() -> None:
    """The newest, which stands for all."""
    found = look(Missed.ONCE, ANCHOR, ANCHOR + 14 * MINUTE)
    assert found.fire == (ANCHOR + 10 * MINUTE,)
    assert (found.skipped, found.capped, found.passed) == (1, False, None)
    assert found.wake == ANCHOR + 15 * MINUTE


def test_all_fires_each_in_order() -> None:
    """However late."""
    found = look(Missed.ALL, ANCHOR, ANCHOR + 24 * MINUTE)
    assert found.fire == tuple(ANCHOR + 5 * MINUTE * n for n in (1, 2, 3, 4))
    assert (found.skipped, found.capped, found.passed) == (0, False, None)
    assert found.wake == ANCHOR + 25 * MINUTE


def test_all_fires_the_newest_thousand_and_counts_the_rest() -> None:
    """In order all the same."""
    found = look(Missed.ALL, ANCHOR, ANCHOR + 1003 * SECOND, "@every 1s")
    assert len(found.fire) == MOST_FIRED
    assert found.fire[0] == ANCHOR + 4 * SECOND
    assert found.fire[-1] == ANCHOR + 1003 * SECOND
    assert all(later - tick == SECOND for tick, later in pairwise(found.fire))
    assert (found.skipped, found.capped) == (3, False)


@pytest.mark.parametrize(
    ("missed", "due_ticks", "skipped", "capped"),
    [
        (Missed.SKIP, IN_TIME + MOST_COUNTED, MOST_COUNTED, False),
        (Missed.SKIP, IN_TIME + MOST_COUNTED + 1, MOST_COUNTED, True),
        (Missed.ONCE, IN_TIME + MOST_COUNTED + 1, MOST_COUNTED, False),
        (Missed.ONCE, IN_TIME + MOST_COUNTED + 2, MOST_COUNTED, True),
        (Missed.ALL, MOST_FIRED + MOST_COUNTED, MOST_COUNTED, False),
        (Missed.ALL, MOST_FIRED + MOST_COUNTED + 1, MOST_COUNTED, True),
    ],
)
def test_the_number_of_skipped_ticks_is_exact_up_to_a_bound(
    missed: Missed, due_ticks: int, skipped: int, capped: bool
) -> None:
    """Beyond it is said that there may be more."""
    found = look(missed, ANCHOR, ANCHOR + SECOND * due_ticks, "@every 1s")
    assert (found.skipped, found.capped) == (skipped, capped)


@pytest.mark.parametrize(("due_ticks", "capped"), [(MOST_COUNTED, False), (MOST_COUNTED + 1, True)])
def test_the_bound_holds_also_where_none_is_fired(due_ticks: int, capped: bool) -> None:
    """The newest then counts among the skipped."""
    now = ANCHOR + 2 * MINUTE * due_ticks + MINUTE + SECOND
    found = look(Missed.SKIP, ANCHOR, now, "@every 2m")
    assert (found.fire, found.skipped, found.capped) == ((), MOST_COUNTED, capped)
    assert found.passed == ANCHOR + 2 * MINUTE * due_ticks


# --- A38: six hours of outage ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("missed", "fired", "skipped"),
    [(Missed.SKIP, 0, 72), (Missed.ONCE, 1, 71), (Missed.ALL, 72, 0)],
)
def test_after_an_outage_the_policy_decides_and_then_the_rhythm_goes_on(
    missed: Missed, fired: int, skipped: int
) -> None:
    """A38: by default nothing that is late; the number of skipped ticks is exact."""
    last, now = ANCHOR, ANCHOR + 6 * HOUR + 2 * MINUTE
    found = look(missed, last, now)
    assert (len(found.fire), found.skipped, found.capped) == (fired, skipped, False)
    assert found.wake == ANCHOR + 6 * HOUR + 5 * MINUTE
    last = found.fire[-1] if found.fire else found.passed or last
    assert look(missed, last, now).fire == ()
    assert found.wake is not None
    assert look(missed, last, found.wake).fire == (found.wake,)
    assert look(missed, last, found.wake).skipped == 0


def test_an_outage_that_ends_with_a_tick_has_at_most_one_run_by_default() -> None:
    """A38: the one that is in time."""
    found = look(Missed.SKIP, ANCHOR, ANCHOR + 6 * HOUR + 30 * SECOND)
    assert found.fire == (ANCHOR + 6 * HOUR,)
    assert found.skipped == 71


# --- clocks that jump -----------------------------------------------------------------------------


@policies
@pytest.mark.parametrize("expression", ["*/5 * * * *", "@every 1s", "0 0 29 2 *"])
def test_after_a_jump_back_nothing_is_due_until_the_clock_has_passed_the_last(
    missed: Missed, expression: str
) -> None:
    """The look after it is at the tick that follows the last."""
    recurrence = parse(expression, "UTC")
    last = recurrence.newest(ANCHOR + timedelta(days=4000), ANCHOR)
    assert last is not None
    following = recurrence.following(last, ANCHOR)
    assert following is not None
    for now in [last - timedelta.resolution, last - HOUR, ANCHOR, ANCHOR - 9000 * HOUR]:
        found = look(missed, last, now, expression)
        assert found == Due(fire=(), skipped=0, capped=False, passed=None, wake=following)
    assert look(missed, last, following, expression).fire == (following,)


class Counting:
    """A recurrence that counts how many ticks were asked for."""

    def __init__(self, expression: str) -> None:
        self.recurrence = parse(expression, "US/Pacific")
        self.asked = 0

    def following(self, after: datetime, anchor: datetime) -> datetime | None:
        self.asked += 1
        return self.recurrence.following(after, anchor)

    def back(self, until: datetime, anchor: datetime) -> Iterator[datetime]:
        for tick in self.recurrence.back(until, anchor):
            self.asked += 1
            yield tick


@policies
@pytest.mark.parametrize("expression", ["* * * * *", "@every 1s"])
def test_a_jump_forward_by_years_costs_a_bounded_number_of_ticks(
    missed: Missed, expression: str
) -> None:
    """However many were due."""
    counting = Counting(expression)
    now = ANCHOR + timedelta(days=20_000)
    found = due(counting, missed=missed, last=ANCHOR, now=now, anchor=ANCHOR)
    assert counting.asked <= MOST_FIRED + MOST_COUNTED + 3
    assert found.capped
    assert found.wake is not None
    assert found.wake > now


# --- whatever the numbers -------------------------------------------------------------------------


@given(
    st.sampled_from(list(Missed)),
    st.sampled_from(["*/5 * * * *", "@every 7s", "0 */6 * * *", "30 2 * * *"]),
    st.sampled_from(["UTC", "US/Pacific"]),
    st.integers(0, 400 * 86_400 * 10**6),
    st.integers(-(10**10), 10**11),
)
def test_a_look_deals_with_every_due_tick_once(
    missed: Missed, expression: str, zone: str, microseconds: int, later: int
) -> None:
    """Fired and skipped are the ticks after the last and until now, each once and in order."""
    recurrence = parse(expression, zone)
    last = ANCHOR + timedelta(microseconds=microseconds)
    now = last + timedelta(microseconds=later)
    ticks: list[datetime] = []
    for tick in recurrence.ahead(last, ANCHOR):
        if tick > now:
            break
        ticks.append(tick)
    found = due(recurrence, missed=missed, last=last, now=now, anchor=ANCHOR)
    skipped = len(ticks) - len(found.fire)
    assert list(found.fire) == ticks[skipped:]
    assert (found.skipped, found.capped) == (min(skipped, MOST_COUNTED), skipped > MOST_COUNTED)
    assert found.passed == (ticks[-1] if ticks and not found.fire else None)
    assert found.wake == recurrence.following(ticks[-1] if ticks else last, ANCHOR)
    assert found.wake is not None
    assert found.wake > now
