"""Which ticks of a schedule are due, and what becomes of those that were missed. Pure.

The rule. A tick is *due* when it is later than the last one that was dealt with, and not later than
now. A due tick is *missed* when it is more than 60 s late. Those that are not are fired, each,
oldest first, so that a worker that was held up for a moment loses none. Missed ones come first:

- `Missed.SKIP`: all are skipped.
- `Missed.ONCE`: the newest of them is fired, however late; it stands for the others.
- `Missed.ALL`: each is fired; of more than 1,000 due ticks the newest 1,000.

So no look ever fires more than 1,000. A clock that went back makes nothing due until it has passed
the last tick again; one that went forward by years costs no more than 1,000 ticks and a count of
10,000.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import chain, islice, takewhile
from typing import Protocol, assert_never

from msgspec import Struct

from tenure.standing import Missed

__all__ = ["GRACE", "MOST_COUNTED", "MOST_FIRED", "Due", "Recurring", "due"]

GRACE = timedelta(seconds=60)  # how late a tick may be without being missed
MOST_FIRED = 1_000
MOST_COUNTED = 10_000


class Recurring(Protocol):
    """What is asked of a recurrence; `tenure.cron` has the real one."""

    def following(self, after: datetime, anchor: datetime) -> datetime | None: ...

    def back(self, until: datetime, anchor: datetime) -> Iterator[datetime]: ...


class Due(Struct, frozen=True, kw_only=True):
    """What a look at a schedule found.

    `fire` are the ticks to fire now, in order; each becomes the last as it is fired. `skipped` is
    how many due ticks, all older, are not fired, 10,000 at most; with `capped` there may be more.
    `passed` is what the last tick becomes without a job, where some were skipped and none is fired;
    else None. `wake` is the next tick after all these, when there is nothing to see before; None
    where there is none ever again.
    """

    fire: tuple[datetime, ...]
    skipped: int
    capped: bool
    passed: datetime | None
    wake: datetime | None


def due(
    recurrence: Recurring, *, missed: Missed, last: datetime, now: datetime, anchor: datetime
) -> Due:
    """What is due now, after the tick `last` (before the first: when the schedule was made).

    Costs little where little is due. Ticks between `last` and now are counted one by one, up to
    the bound, so ask no more often than at `wake`.
    """
    unseen = takewhile(lambda tick: tick > last, recurrence.back(now, anchor))  # newest first
    newest = next(unseen, None)
    if newest is None:
        wake = recurrence.following(last, anchor)
        return Due(fire=(), skipped=0, capped=False, passed=None, wake=wake)
    fire: list[datetime] = []
    tick: datetime | None = newest
    while tick is not None and now - tick <= GRACE:
        fire.append(tick)
        tick = next(unseen, None)
    ticks = unseen if tick is None else chain([tick], unseen)
    match missed:
        case Missed.SKIP:
            pass
        case Missed.ONCE:
            fire.extend(islice(ticks, 1))
        case Missed.ALL:
            fire.extend(islice(ticks, MOST_FIRED - len(fire)))
        case _:
            assert_never(missed)
    skipped = sum(1 for _ in islice(ticks, MOST_COUNTED + 1))
    return Due(
        fire=tuple(reversed(fire)),
        skipped=min(skipped, MOST_COUNTED),
        capped=skipped > MOST_COUNTED,
        passed=None if fire else newest,
        wake=recurrence.following(newest, anchor),
    )
