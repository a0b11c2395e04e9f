"""What stands in a store beside its jobs: limits on keys, and schedules with their ticks.

Values only, and the one rule that all must read alike: which limit governs a key.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from tenure.types import NewJob

__all__ = [
    "Fired",
    "Limit",
    "Missed",
    "NewSchedule",
    "ScheduleRecord",
    "Schedules",
    "Tick",
    "governing",
]


# --- limits -------------------------------------------------------------------------------------


class Limit(Struct, frozen=True, kw_only=True):
    """A limit on jobs that name a key, over all workers; at least one of the two bounds is given.

    `key` is one key, or the beginning of keys followed by `*`, and then each of them has a limit of
    its own. `per_second` bounds the claims in any one second, by the store's clock; `concurrent`
    the current holds.
    """

    key: str
    per_second: int | None = None
    concurrent: int | None = None


def governing(key: str, limits: Iterable[Limit]) -> Limit | None:
    """The limit of a key: the one on the key itself, else the one with the longest beginning."""
    found: Limit | None = None
    for limit in limits:
        if limit.key == key:
            return limit
        if limit.key.endswith("*") and key.startswith(limit.key[:-1]):
            found = limit if found is None or len(limit.key) > len(found.key) else found
    return found


# --- schedules ----------------------------------------------------------------------------------


class Missed(StrEnum):
    """What becomes of a schedule's missed ticks: those that are more than 60 s late.

    `skip`: nothing is run for them. `once`: one run stands for all of them. `all`: each is run, in
    order, the newest 1,000 at most.
    """

    SKIP = "skip"
    ONCE = "once"
    ALL = "all"


class NewSchedule(Struct, frozen=True, kw_only=True):
    """A schedule to store. What recurs is in `definition`, which no driver looks into.

    `revision` is random, and becomes the schedule's where its definition is new.
    """

    id: str
    revision: str
    definition: bytes


class ScheduleRecord(Struct, frozen=True, kw_only=True):
    """A schedule as it is stored.

    Its ticks are those after `last`: the newest tick that was fired or skipped, or the store's time
    when this revision was stored or the schedule was resumed. `created_at` is of this revision.
    """

    id: str
    revision: str
    definition: bytes
    created_at: datetime
    last: datetime
    paused: bool


class Schedules(Struct, frozen=True, kw_only=True):
    """All schedules of a store, by id, with the store's time of the look."""

    now: datetime
    items: Sequence[ScheduleRecord]


class Tick(Struct, frozen=True, kw_only=True):
    """One instant of a schedule to fire: `job` is enqueued; None lets the instant pass without one.

    `previous` is the `last` that the schedule must still have, `instant` the one it gets.
    """

    schedule_id: str
    revision: str
    previous: datetime
    instant: datetime
    job: NewJob | None


class Fired(StrEnum):
    """The answer of `fire` for one tick.

    `FIRED`: the instant has passed, by this call. `LOST`: nothing was changed, since the schedule
    has another revision or another last tick, is paused, or is gone. `EARLY`: nothing was changed,
    the instant is later than the store's now.
    """

    FIRED = "fired"
    LOST = "lost"
    EARLY = "early"
