"""What was dispatched on a bench, and the search in it, whose failure tells of the nearest miss.

Pure: it looks at values, and never at a store.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any, cast

import msgspec
from msgspec import Struct

from tenure.codec import decode
from tenure.types import NewJob

__all__ = ["ANYTHING", "Dispatched", "found", "seen"]

ANYTHING: Any = object()  # an argument that was not given; None is a payload, too


class Dispatched(Struct, frozen=True, kw_only=True):
    """A job as it was dispatched. `args` is its payload: of a task, its arguments by name."""

    id: str
    name: str
    args: Any
    queue: str = "default"
    priority: int = 0
    delay: float = 0.0
    at: datetime | None = None
    headers: Mapping[str, str]


def seen(job: NewJob) -> Dispatched:
    """The job with its payload decoded."""
    return Dispatched(
        id=job.id,
        name=job.name,
        args=decode(job.payload),
        queue=job.queue,
        priority=job.priority,
        delay=job.delay or 0.0,
        at=job.at,
        headers=job.headers,
    )


def found(
    jobs: Sequence[Dispatched], name: str, args: Any, queue: str | None, count: int | None
) -> list[Dispatched]:
    """Those that match. Raises `AssertionError` where these are not `count`, or none."""
    wanted = ANYTHING if args is ANYTHING else msgspec.json.decode(msgspec.json.encode(args))
    same_name = [job for job in jobs if job.name == name]
    matching = [job for job in same_name if _match(job.args, wanted) and queue in (None, job.queue)]
    if len(matching) == count or (count is None and matching):
        return matching
    what = f"{name!r}{'' if wanted is ANYTHING else f' with args {wanted!r}'}"
    what += "" if queue is None else f" on the queue {queue!r}"
    number = "at least one" if count is None else count or "no"
    lines = [f"expected {number} dispatch of {what}, got {len(matching)}."]
    if same_name and not matching:
        lines.append(_nearest(same_name, wanted, queue))
    if not same_name and (close := get_close_matches(name, {job.name for job in jobs}, n=1)):
        lines.append(f"The nearest name is {close[0]!r}.")
    lines.append("Dispatched were:" if jobs else "Nothing was dispatched.")
    lines += [f"  {_line(job)}" for job in jobs[-20:]]
    if len(jobs) > 20:
        lines.append(f"  and {len(jobs) - 20} before these")
    raise AssertionError("\n".join(lines))


def _match(args: Any, wanted: Any) -> bool:
    """An object need only be part of the payload; anything else is the payload."""
    if wanted is ANYTHING:
        return True
    if isinstance(wanted, Mapping) and isinstance(args, Mapping):
        return not _differences(cast("_Object", args), cast("_Object", wanted))
    return args == wanted and isinstance(args, bool) == isinstance(wanted, bool)


_Object = Mapping[str, Any]


def _differences(args: _Object, wanted: _Object) -> list[str]:
    """The names whose values are not as they should be."""
    return [name for name, value in wanted.items() if name not in args or args[name] != value]


def _nearest(jobs: Sequence[Dispatched], wanted: object, queue: str | None) -> str:
    misses = [_misses(job, wanted, queue) for job in jobs]
    return f"The nearest has {min(misses, key=len)[0]}" + "".join(
        f", and {miss}" for miss in min(misses, key=len)[1:]
    )


def _misses(job: Dispatched, wanted: object, queue: str | None) -> list[str]:
    """How a job differs from what is wanted, in words."""
    misses: list[str] = []
    if isinstance(wanted, Mapping) and isinstance(job.args, Mapping):
        asked, args = cast("_Object", wanted), cast("_Object", job.args)
        for name in _differences(args, asked):
            got = f"{name}={args[name]!r}" if name in args else f"no {name}"
            misses.append(f"{got} instead of {name}={asked[name]!r}")
    elif not _match(job.args, cast("Any", wanted)):
        misses.append(f"args {job.args!r} instead of {wanted!r}")
    if queue not in (None, job.queue):
        misses.append(f"the queue {job.queue!r} instead of {queue!r}")
    return misses


def _line(job: Dispatched) -> str:
    where = "" if job.queue == "default" else f" on {job.queue!r}"
    when = f" in {job.delay:g} s" if job.delay else "" if job.at is None else f" at {job.at}"
    return f"{job.name} {job.args!r}{where}{when}"
