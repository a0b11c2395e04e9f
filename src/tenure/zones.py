"""What the clocks on the wall of one time zone show, and when they show it. Pure arithmetic.

An *instant* is an aware UTC datetime, a *wall time* a naive one, without a fold. Wall times advance
with the instants, except where a zone changes its offset: set forward, clocks jump over wall times
(the gap), set back, they show some of them again. Raises `OverflowError` beyond the years that a
datetime can hold. A zone's data is read once, by `zoneinfo`, when the zone is made.

Between two probes no zone is taken to change its offset and back again. They lie six hours apart;
in the data of 2026 no two changes of a zone are less than three days apart.
"""

from datetime import UTC, datetime, timedelta, tzinfo

__all__ = ["first_change", "furthest_wall", "last_change", "offset_at", "reached", "wall_at"]

_PROBE = timedelta(hours=6)


def offset_at(instant: datetime, zone: tzinfo) -> timedelta:
    """How far the clocks are ahead of UTC then."""
    offset = instant.astimezone(zone).utcoffset()
    assert offset is not None  # the zone is one
    return offset


def wall_at(instant: datetime, zone: tzinfo) -> datetime:
    """What the clocks show then."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def furthest_wall(instant: datetime, zone: tzinfo) -> datetime:
    """The latest wall time that the clocks have shown by then.

    Other than `wall_at` only while clocks that were set back show wall times again.
    """
    local = instant.astimezone(zone)
    wall = local.replace(tzinfo=None, fold=0)
    if local.fold:
        now, before = local.utcoffset(), local.replace(fold=0).utcoffset()
        assert now is not None
        assert before is not None
        wall += before - now  # as if they had not been set back
    return wall


def reached(wall: datetime, zone: tzinfo) -> datetime:
    """The first instant at which the clocks show this wall time, or have passed it.

    The first of two where it is repeated; the end of the gap where it is missing. Never earlier
    for a later wall time.
    """
    # In a gap a fold of 0 takes the offset before it, which leads to an instant after it, and a
    # fold of 1 the other way round (PEP 495).
    instant = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if wall_at(instant, zone) == wall:
        return instant
    return _change(wall.replace(tzinfo=zone, fold=1).astimezone(UTC), instant, zone)


def first_change(start: datetime, end: datetime, zone: tzinfo) -> datetime | None:
    """The first instant after `start`, up to `end`, with another offset than just before it."""
    offset = offset_at(start, zone)
    while start < end:
        probe = end if end - start <= _PROBE else start + _PROBE
        if offset_at(probe, zone) != offset:
            return _change(start, probe, zone)
        start = probe
    return None


def last_change(start: datetime, end: datetime, zone: tzinfo) -> datetime | None:
    """The last such instant after `start`, up to `end`."""
    offset = offset_at(end, zone)
    while start < end:
        probe = start if end - start <= _PROBE else end - _PROBE
        if offset_at(probe, zone) != offset:
            return _change(probe, end, zone)
        end = probe
    return None


def _change(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """The instant at which the one offset gives way to the other, by bisection."""
    offset = offset_at(before, zone)
    while after - before > timedelta.resolution:
        middle = before + (after - before) // 2
        if offset_at(middle, zone) == offset:
            before = middle
        else:
            after = middle
    return after
