"""A look at a store as lines of text for a terminal of any size. Pure: it prints nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from tenure.cli.looks import FailedJob, Look, QueueLook
from tenure.cli.shows import amount, one_line
from tenure.presence import WorkerInfo

__all__ = ["Line", "Tone", "pane"]

Tone = Literal["", "title", "head", "dim", "bad"]

_LEAST = 20  # characters of the narrowest pane
_GAP = "  "
_PART = 30  # characters of a last column that other columns make room for


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its end, and what it is."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """`rank`: the highest goes first where there is no room for all. 0 always stays."""

    name: str
    rank: int
    right: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Rows under a heading; `rest` is what the rows are called, for those that are left out."""

    columns: Sequence[_Column]
    rows: Sequence[Sequence[str]]
    rest: str
    tone: Callable[[int], Tone] = lambda _: ""


def pane(look: Look, *, where: str, trouble: str, width: int, height: int | None) -> list[Line]:
    """The lines of one frame, none longer than `width` and no more than `height` of them.

    None for `height` leaves nothing out. `where` is the store, and `trouble` what keeps it from
    being looked at again.
    """
    width = max(width, _LEAST)
    lines = [Line(f"{look.at:%H:%M:%S}Z  {where}", "title"), Line(_summary(look))]
    if look.pruning:
        lines.append(Line("finished jobs are being deleted: rates are lower bounds", "dim"))
    if trouble:
        lines.insert(0, Line(trouble, "bad"))
    tables = [_queues(look), *([] if look.workers is None else [_workers(look.workers, look.at)])]
    tables += [_failures(look.failures)] if look.failures else []
    left = None if height is None else height - len(lines)
    for at, table in enumerate(tables):
        later = len(tables) - at - 1
        # A blank, a heading and a row for each of those below, where there is room for that much.
        share = (
            None if left is None else max(left - 3 * later, min(left, max(3, left // (later + 1))))
        )
        shown = _drawn(table, width, share)
        lines += shown
        left = None if left is None else left - len(shown)
    cut = [Line(_cut(line.text, width), line.tone) for line in lines]
    return cut if height is None else cut[: max(1, height)]


def _summary(look: Look) -> str:
    every = look.all
    over = "+" if look.capped else ""
    parts = [
        f"{every.waiting:,}{over} waiting",
        f"{every.processing:,} processing",
        f"{every.delayed:,}{over} delayed",
        f"{_rate(every.completed_rate)} completed/s",
        f"{_rate(every.failed_rate)} failed/s",
    ]
    if look.workers is not None:
        used = sum(worker.running for worker in look.workers)
        slots = sum(worker.concurrency for worker in look.workers)
        parts.append(f"{amount(len(look.workers), 'worker')} ({used}/{slots} slots)")
    return ", ".join(parts)


# --- the tables ---------------------------------------------------------------------------------

_QUEUES: Sequence[tuple[_Column, Callable[[QueueLook], str]]] = (
    (_Column(name="QUEUE", rank=0), lambda q: f"{q.name}{' (paused)' if q.paused else ''}"),
    (_Column(name="WAITING", rank=0, right=True), lambda q: f"{q.waiting:,}"),
    (_Column(name="OLDEST", rank=3, right=True), lambda q: _age(q.oldest)),
    (_Column(name="PROCESSING", rank=1, right=True), lambda q: f"{q.processing:,}"),
    (_Column(name="DELAYED", rank=5, right=True), lambda q: f"{q.delayed:,}"),
    (_Column(name="BLOCKED", rank=8, right=True), lambda q: f"{q.blocked:,}"),
    (_Column(name="COMPLETED/S", rank=2, right=True), lambda q: _rate(q.completed_rate)),
    (_Column(name="FAILED/S", rank=4, right=True), lambda q: _rate(q.failed_rate)),
    (_Column(name="COMPLETED", rank=7, right=True), lambda q: f"{q.completed:,}"),
    (_Column(name="FAILED", rank=6, right=True), lambda q: f"{q.failed:,}"),
)


def _queues(look: Look) -> _Table:
    return _Table(
        columns=[column for column, _ in _QUEUES],
        rows=[[cell(queue) for _, cell in _QUEUES] for queue in look.queues],
        rest="queue",
        tone=lambda at: "dim" if look.queues[at].paused else "",
    )


def _workers(workers: Sequence[WorkerInfo], now: datetime) -> _Table:
    columns = [
        _Column(name="WORKER", rank=0),
        _Column(name="NAME", rank=4),
        _Column(name="HOST", rank=1),
        _Column(name="PID", rank=2, right=True),
        _Column(name="SLOTS", rank=0, right=True),
        _Column(name="SEEN", rank=3, right=True),
        _Column(name="QUEUES", rank=5),
    ]
    rows = [
        [
            worker.id,
            worker.name or "-",
            worker.host,
            str(worker.pid),
            f"{worker.running}/{worker.concurrency}",
            _age(max(0.0, (now - worker.seen_at).total_seconds())),
            ",".join(worker.queues),
        ]
        for worker in workers
    ]
    return _Table(columns=columns, rows=rows, rest="worker")


def _failures(failures: Sequence[FailedJob]) -> _Table:
    columns = [
        _Column(name="FAILED AT", rank=2),
        _Column(name="QUEUE", rank=1),
        _Column(name="JOB", rank=3),
        _Column(name="NAME", rank=0),
        _Column(name="ERROR", rank=0),
    ]
    rows = [
        ["-" if job.at is None else f"{job.at:%H:%M:%S}Z", job.queue, job.id, job.name, job.message]
        for job in failures
    ]
    return _Table(columns=columns, rows=rows, rest="failed job", tone=lambda _: "bad")


# --- how they are drawn -------------------------------------------------------------------------


def _drawn(table: _Table, width: int, height: int | None) -> list[Line]:
    """A blank line, the heading and the rows; nothing where there is no room for a row."""
    room = len(table.rows) if height is None else height - 2
    if room < 1:
        return []
    rows = [[one_line(cell) for cell in row] for row in table.rows]
    kept = rows if len(rows) <= room else rows[: max(1, room - 1)]
    fitting = _fitting(table.columns, kept, width)
    columns = [table.columns[i] for i in fitting]
    cells = [[column.name for column in columns], *([row[i] for i in fitting] for row in kept)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    texts = [
        _GAP.join(
            cell.rjust(size) if column.right else cell.ljust(size)
            for cell, size, column in zip(line, widths, columns, strict=True)
        ).rstrip()
        for line in cells
    ]
    lines = [Line(""), Line(texts[0], "head")]
    lines += [Line(text, table.tone(at)) for at, text in enumerate(texts[1:])]
    if not rows:
        lines.append(Line(f"no {table.rest} is there", "dim"))
    elif len(rows) > len(kept) and room > 1:
        lines.append(Line(f"{amount(len(rows) - len(kept), table.rest)} more", "dim"))
    return lines


def _fitting(
    columns: Sequence[_Column], rows: Sequence[Sequence[str]], width: int
) -> Sequence[int]:
    """Which columns there is room for. Of the last one a part is enough: it may be cut."""
    widths = [
        max([len(column.name), *(len(row[i]) for row in rows)]) for i, column in enumerate(columns)
    ]
    widths[-1] = min(widths[-1], _PART)
    at = list(range(len(columns)))
    while sum(widths[i] for i in at) + len(_GAP) * (len(at) - 1) > width:
        least = max(at, key=lambda i: columns[i].rank)
        if columns[least].rank == 0:
            break
        at.remove(least)
    return at


def _cut(text: str, width: int) -> str:
    shown = one_line(text)
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:,.1f}"


def _age(seconds: float | None) -> str:
    """A duration in two or three digits."""
    if seconds is None:
        return "-"
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("m", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f}{unit}"
    return f"{seconds:.0f}s" if seconds >= 10 else f"{seconds:.1f}s"
