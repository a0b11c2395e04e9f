"""How answers look: one JSON document, or aligned text for people. Data goes to standard output.

Text that comes out of a store is written without its control characters, which a terminal obeys.
"""

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

__all__ = [
    "amount",
    "as_json",
    "document",
    "document_line",
    "facts",
    "moment",
    "note",
    "one_line",
    "table",
]

_WIDEST = 60  # characters of a cell


def document(value: Any, *, err: bool = False) -> None:
    """One JSON document: structs by their fields, times in ISO 8601, bytes in base64.

    With `err` on standard error, where standard output has the data itself.
    """
    encoded = msgspec.json.encode(value)
    click.echo(msgspec.json.format(encoded, indent=2).decode(), err=err)


def document_line(value: Any) -> None:
    """The same in one line, written at once: one of many."""
    click.echo(msgspec.json.encode(value).decode())
    sys.stdout.flush()


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    empty: str,
    widest: int = _WIDEST,
) -> None:
    """Aligned columns under a heading; `empty` on standard error where there is no row.

    Cells longer than `widest` characters are cut.
    """
    cells = [[_cell(value, widest) for value in row] for row in rows]
    if not cells:
        note(empty)
        return
    widths = [max(len(name), *(len(row[at]) for row in cells)) for at, name in enumerate(columns)]
    click.echo(_line(columns, widths))
    for row in cells:
        click.echo(_line(row, widths))


def facts(pairs: Iterable[tuple[str, object]]) -> None:
    """One fact in each line, those that are None left out."""
    known = [(name, value) for name, value in pairs if value is not None]
    width = max((len(name) for name, _ in known), default=0)
    for name, value in known:
        click.echo(f"{name.ljust(width)}  {one_line(_text(value))}")


def as_json(value: Any) -> str:
    """A value of a job in one line."""
    return msgspec.json.encode(value).decode()


def note(text: str) -> None:
    """A message, which is no part of the answer."""
    click.echo(one_line(text), err=True)


def moment(instant: datetime | None) -> str | None:
    """A time for people, in UTC."""
    if instant is None:
        return None
    return instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"


def amount(number: int, noun: str = "job") -> str:
    """`1 job`, `2,000 jobs`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def one_line(text: str) -> str:
    """Text without line ends and control characters."""
    return "".join(
        c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return moment(value) or ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _cell(value: object, widest: int) -> str:
    text = "-" if value is None else one_line(_text(value))
    return text if len(text) <= widest else f"{text[: widest - 1]}…"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip()
