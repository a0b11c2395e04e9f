"""The values that options take beyond words and numbers: durations, instants, headers, payloads.

Reads a file or standard input only where the payload is said to be there.
"""

import json
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import click

__all__ = ["age", "duration", "header_pairs", "instant", "payload_of"]

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])")


def duration(given: str) -> float:
    """Seconds, or numbers with units: `90`, `90s`, `1h30m`, `2d`. Raises `click.BadParameter`."""
    text = given.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if text and _PART.sub("", text) == "":
        return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    raise click.BadParameter(f"{given!r} is no duration: seconds, or with units as in 1h30m")


def age(given: str) -> float | None:
    """A duration, or None for `never`: without that bound. Raises `click.BadParameter`."""
    return None if given == "never" else duration(given)


def instant(given: str) -> datetime:
    """An instant in ISO 8601 with its offset. Raises `click.BadParameter`."""
    try:
        found = datetime.fromisoformat(given)
    except ValueError:
        raise click.BadParameter(f"{given!r} is no time: write 2030-01-31T09:00Z") from None
    if found.tzinfo is None:
        raise click.BadParameter(f"{given!r} has no offset: add Z for UTC, or one as +01:00")
    return found


def header_pairs(given: tuple[str, ...]) -> dict[str, str]:
    """Headers from `name=value`. Raises `click.BadParameter`."""
    headers: dict[str, str] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{pair!r} is no name=value", param_hint="--header")
        if name in headers:
            raise click.BadParameter(f"{name!r} is given twice", param_hint="--header")
        headers[name] = value
    return headers


def payload_of(given: str | None) -> Any:
    """The value in a JSON text, in a file named with @, or, for -, on standard input.

    Nothing given is null. Raises `click.BadParameter` for what is no JSON, or is a file that cannot
    be read.
    """
    if given is None:
        return None
    try:
        return json.loads(
            _text(given), parse_constant=_no_number, object_pairs_hook=_without_repeats
        )
    except (ValueError, RecursionError) as error:
        shell = "; text needs quotes of its own: '\"like this\"'" if given[:1].isalpha() else ""
        raise click.BadParameter(f"no JSON: {error}{shell}", param_hint="PAYLOAD") from error


def _text(given: str) -> str:
    if given == "-":
        return sys.stdin.buffer.read().decode("utf-8")
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_bytes().decode("utf-8")
    except OSError as error:
        raise click.BadParameter(
            f"{given[1:]!r} cannot be read: {error.strerror}", param_hint="PAYLOAD"
        ) from error


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} stands twice in one object")
    return found
