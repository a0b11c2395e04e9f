"""Schedule expressions, and the instants they name. Pure; never asks what time it is.

Three kinds of expression:

- Five fields, minute, hour, day of month, month, day of week, as in `*/5 8-18 * * MON-FRI`. A field
  is `*`, a number, a range `a-b`, any of these with a step (`a/n` goes from a to the end), or
  several with commas; months and days of the week also by name; 0 and 7 are Sunday. Beyond plain
  cron: day of month `L` (the last), `LW` (the last from Monday to Friday); day of week `5L` (the
  last Friday), `MON#2` (the second Monday). When both day fields are restricted a day needs to
  match one of them; when one of them begins with `*` it needs to match both (Debian's cron; the
  parser is `cronsim`).
- `@hourly`, `@daily` or `@midnight`, `@weekly` (Sunday), `@monthly`, `@yearly` or `@annually`: at
  the start of each, by the clocks of the zone.
- `@every 90s`, `@every 1h30m`: days, hours, minutes and seconds after the anchor, the instant at
  which the schedule was made, and then again and again; never off by what a look came late.

When clocks change:

- An hour field that begins with `*` means real time. A tick is every instant at which the clocks of
  the zone show a matching time: `0 * * * *` is once each real hour, 25 times on the day on which
  clocks go back and 23 times on the day on which they go forward. (`0 */2 * * *` has no tick at a
  2:00 that is missing, and two, an hour apart, at a 2:00 that comes twice.)
- Any other hour field means times of day, whatever the minutes. Each matching time is one tick: the
  first of the two where clocks go back over it; the end of the gap where they go forward over it.
  Several that meet at the end of a gap are one tick. So `30 2 * * *` is once a day, every day.

No instant is ever a tick twice. An expression without a tick in the 50 years from 2000 on is
refused: no day of the calendar needs longer to come again (29 February on a Monday: 40 years).
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from tenure.errors import InvalidConfiguration
from tenure.zones import first_change, furthest_wall, last_change, offset_at, reached, wall_at

__all__ = ["Recurrence", "parse"]

_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_FIELDS = {
    "minute": "0-59, such as */5",
    "hour": "0-23, such as 8-18",
    "day of month": "1-31, such as 1,15 or L",
    "month": "1-12 or JAN-DEC, such as */3",
    "day of week": "0-7 or SUN-SAT, such as MON-FRI, 5L or MON#2",
}
_EXAMPLES = "such as '*/5 * * * *', '@daily' or '@every 90s'"
_LONGEST = 256  # characters

_EVERY = re.compile(r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?", re.ASCII)
_ONE_VALUE = re.compile(r"\b0*(\w+)-0*\1/0*[1-9]\d*", re.ASCII)  # to cronsim 5-5/2 is 5-59/2
_TEN_YEARS = 3653 * 86400  # seconds

_ZONES = "such as 'UTC' or 'Europe/Berlin'"
# Files beside the zones on some systems: what a machine is set to, and counts with leap seconds.
_NOT_ZONES = ("localtime", "posix/", "posixrules", "right/")

_CALENDAR = datetime(2000, 1, 1)  # noqa: DTZ001 - a wall time: where the search for a tick begins
_STEP = timedelta.resolution
_EARLIEST, _LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
# The offsets of a zone never differ by more than 26 hours. So what would be the next tick with the
# offset of now says that there is none in between, but near now and near that.
_NEAR = timedelta(hours=36)


class Recurrence(ABC):
    """What an expression means in a zone: a rising series of ticks, aware UTC instants.

    `anchor` is the instant at which the schedule was made; only `@every` counts from it. Instants
    that are passed in may be of any zone but are never naive. Nothing raises: beyond the years that
    a datetime can hold there are no ticks.
    """

    __slots__ = ()

    def following(self, after: datetime, anchor: datetime) -> datetime | None:
        """The first tick later than `after`; None where there is none ever again."""
        return next(self.ahead(after, anchor), None)

    def upcoming(self, after: datetime, anchor: datetime, count: int) -> tuple[datetime, ...]:
        """The next `count` ticks later than `after`, or as many as there are."""
        return tuple(islice(self.ahead(after, anchor), count))

    def newest(self, until: datetime, anchor: datetime) -> datetime | None:
        """The last tick that is not later than `until`; None where none was."""
        return next(self.back(until, anchor), None)

    def ahead(self, after: datetime, anchor: datetime) -> Iterator[datetime]:
        """Every tick later than `after`, oldest first; each is computed when it is asked for."""
        try:
            yield from self._ahead(after.astimezone(UTC), anchor.astimezone(UTC))
        except OverflowError:  # the end of the calendar
            return

    def back(self, until: datetime, anchor: datetime) -> Iterator[datetime]:
        """Every tick not later than `until`, newest first; each is computed when asked for."""
        try:
            yield from self._back(until.astimezone(UTC), anchor.astimezone(UTC))
        except OverflowError:  # the beginning of the calendar
            return

    @abstractmethod
    def _ahead(self, after: datetime, anchor: datetime) -> Iterator[datetime]: ...

    @abstractmethod
    def _back(self, until: datetime, anchor: datetime) -> Iterator[datetime]: ...


def parse(expression: str, zone: str) -> Recurrence:
    """What `expression` means by the clocks of `zone`, an IANA name such as `Europe/Berlin`.

    Raises `InvalidConfiguration` naming `expression` or `zone`, also where the expression names no
    date that exists; nothing else, and within milliseconds.
    """
    clocks = _zone(zone)
    words = _words(expression)
    if words[0] == "@every":
        return _Every(_interval(expression, words))
    if words[0].startswith("@"):
        if " ".join(words) not in _MACROS:
            names = ", ".join(_MACROS)
            raise InvalidConfiguration(
                "expression", expression, f"must be one of {names}, or as in '@every 90s'"
            )
        return _ByTheClocks(_MACROS[words[0]], clocks)
    fields = [_ONE_VALUE.sub(r"\1", word.upper()) for word in words]
    _check_fields(expression, fields)
    return _ByTheClocks(" ".join(fields), clocks)


# --- the two kinds ------------------------------------------------------------------------------


class _Every(Recurrence):
    """The anchor plus one, two, three... intervals: arithmetic, so that nothing ever drifts."""

    __slots__ = ("_interval",)

    def __init__(self, interval: timedelta) -> None:
        self._interval = interval

    def _ahead(self, after: datetime, anchor: datetime) -> Iterator[datetime]:
        tick = anchor + self._interval * max(1, (after - anchor) // self._interval + 1)
        while True:
            yield tick
            tick += self._interval

    def _back(self, until: datetime, anchor: datetime) -> Iterator[datetime]:
        count = (until - anchor) // self._interval
        tick = anchor + self._interval * max(0, count)
        while tick > anchor:
            yield tick
            tick -= self._interval


class _ByTheClocks(Recurrence):
    """Five fields in a zone. `cronsim` sees wall times; what instants they are is said here."""

    __slots__ = ("_expression", "_real", "_zone")

    def __init__(self, expression: str, zone: tzinfo) -> None:
        self._expression = expression
        self._zone = zone
        self._real = expression.split()[1].startswith("*")

    def _ahead(self, after: datetime, anchor: datetime) -> Iterator[datetime]:
        return self._real_ahead(after) if self._real else self._daily_ahead(after)

    def _back(self, until: datetime, anchor: datetime) -> Iterator[datetime]:
        return self._real_back(until) if self._real else self._daily_back(until)

    def _daily_ahead(self, after: datetime) -> Iterator[datetime]:
        for wall in self._walls_after(wall_at(after, self._zone)):
            instant = reached(wall, self._zone)
            if instant > after:  # else shown a second time, or the end of a gap again
                yield instant
                after = instant

    def _daily_back(self, until: datetime) -> Iterator[datetime]:
        newer: datetime | None = None
        for wall in self._walls_until(furthest_wall(until, self._zone)):
            instant = reached(wall, self._zone)
            if instant <= until and instant != newer:
                yield instant
                newer = instant

    def _real_ahead(self, after: datetime) -> Iterator[datetime]:
        start = after + _STEP
        while True:
            # From `start` on, with the offset of then, until it changes or is looked at again.
            offset = offset_at(start, self._zone)
            end = start + min(_NEAR, _LATEST - start)
            change = first_change(start, end, self._zone)
            found = False
            for wall in self._walls_after(_plain(start + offset) - _STEP):
                instant = wall.replace(tzinfo=UTC) - offset
                if change is not None and instant >= change:
                    start = change
                    break
                if instant > end:
                    start = end + _STEP if found else max(end + _STEP, instant - _NEAR)
                    break
                yield instant
                found = True
            else:
                return

    def _real_back(self, until: datetime) -> Iterator[datetime]:
        while True:
            offset = offset_at(until, self._zone)
            end = until - min(_NEAR, until - _EARLIEST)
            change = last_change(end, until, self._zone)
            found = False
            for wall in self._walls_until(_plain(until + offset)):
                instant = wall.replace(tzinfo=UTC) - offset
                if change is not None and instant < change:
                    until = change - _STEP
                    break
                if instant < end:
                    until = end - _STEP if found else min(end - _STEP, instant + _NEAR)
                    break
                yield instant
                found = True
            else:
                return

    def _walls_after(self, wall: datetime) -> Iterator[datetime]:
        return CronSim(self._expression, wall)

    def _walls_until(self, wall: datetime) -> Iterator[datetime]:
        # cronsim begins before the time that it is given, but with one whose fraction it had to cut
        return CronSim(self._expression, wall.replace(microsecond=1), reverse=True)


def _plain(instant: datetime) -> datetime:
    return instant.replace(tzinfo=None)


# --- what is refused ----------------------------------------------------------------------------


def _zone(name: object) -> tzinfo:
    if not isinstance(name, str):
        raise InvalidConfiguration("zone", name, f"must be text, {_ZONES}")
    if name == "UTC":
        return UTC  # known everywhere, also where there is no data about zones
    if name.startswith(_NOT_ZONES):
        raise InvalidConfiguration("zone", name, f"must be the IANA name of a time zone, {_ZONES}")
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown; a path, or not a name at all; a folder
        raise InvalidConfiguration(
            "zone",
            name,
            f"must be the IANA name of a time zone that this machine knows, {_ZONES} (the package "
            "tzdata brings them all)",
        ) from None


def _words(expression: object) -> list[str]:
    if not isinstance(expression, str):
        raise InvalidConfiguration("expression", expression, f"must be text, {_EXAMPLES}")
    if len(expression) > _LONGEST:
        raise InvalidConfiguration(
            "expression", expression, f"must be at most {_LONGEST} characters, {_EXAMPLES}"
        )
    text = expression.replace("\t", " ")
    if not text.isascii() or not text.isprintable():
        raise InvalidConfiguration(
            "expression", expression, f"must be a line of ASCII characters, {_EXAMPLES}"
        )
    words = text.split()
    if not words:
        raise InvalidConfiguration("expression", expression, f"must not be empty, {_EXAMPLES}")
    return words


def _interval(expression: str, words: list[str]) -> timedelta:
    match = _EVERY.fullmatch(words[1]) if len(words) == 2 else None
    if match is None:
        raise InvalidConfiguration(
            "expression",
            expression,
            "must have one whole number each of days, hours, minutes or seconds after @every, in "
            "this order, such as '@every 90s' or '@every 1h30m'",
        )
    days, hours, minutes, seconds = (int(number or 0) for number in match.groups())
    length = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if not 1 <= length <= _TEN_YEARS:
        raise InvalidConfiguration(
            "expression", expression, "must be every second to every ten years, as in '@every 90s'"
        )
    return timedelta(seconds=length)


def _check_fields(expression: str, fields: list[str]) -> None:
    if len(fields) != len(_FIELDS):
        raise InvalidConfiguration(
            "expression",
            expression,
            f"must have five fields ({', '.join(_FIELDS)}), {_EXAMPLES}, and not {len(fields)}",
        )
    for place, (name, rule) in enumerate(_FIELDS.items()):
        alone = ["*"] * len(_FIELDS)
        alone[place] = fields[place]
        try:
            CronSim(" ".join(alone), _CALENDAR)
        except CronSimError:
            raise InvalidConfiguration(
                "expression",
                expression,
                f"must have in its {name} field {rule}, and not {fields[place]!r}",
            ) from None
    try:
        found = next(CronSim(" ".join(fields), _CALENDAR), None)
    except CronSimError:  # each field is right: it is the day in its month
        found = None
    if found is None:
        raise InvalidConfiguration(
            "expression", expression, "must name a day that exists, such as '0 0 28 2 *'"
        )
