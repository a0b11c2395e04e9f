"""An export as a whole: what it begins and ends with, and whether it is whole and sound. Pure.

One JSON document in each line. The first is a header, the last an end with the numbers of all
others and a digest of their bytes, so that a file that was cut or changed is told from a whole one.
Between them stand jobs, schedules, limits and paused queues, in any order.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from hashlib import blake2b
from typing import Literal

import msgspec
from msgspec import Struct

from tenure._export.checks import entry_of
from tenure._export.format import (
    EndLine,
    Entry,
    HeaderLine,
    Line,
    PausedQueue,
    written,
)
from tenure.errors import InvalidJob, QueueError
from tenure.moved import StoredJob
from tenure.standing import Limit, ScheduleRecord
from tenure.version import VERSION

__all__ = ["FORMAT", "BadLine", "ExportWriter", "read_export"]

FORMAT = 1


class BadLine(QueueError):
    """A line of an export that cannot be taken in: its number, the place in it, and the rule."""

    def __init__(self, line: int, path: str, rule: str) -> None:
        super().__init__(f"line {line}, {path}: {rule}")
        self.line = line
        self.path = path
        self.rule = rule


class _Format(Struct):
    type: Literal["header"]
    format: int


_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)
_formats = msgspec.json.Decoder(_Format)
_encoder = msgspec.json.Encoder()


class _Numbers:
    """How many lines there are of each kind, and the digest of all bytes."""

    def __init__(self) -> None:
        self.jobs = 0
        self.schedules = 0
        self.limits = 0
        self.paused = 0
        self._digest = blake2b(digest_size=16)

    def add(self, line: bytes) -> None:
        self._digest.update(line)

    def count(self, entry: Entry) -> None:
        match entry:
            case StoredJob():
                self.jobs += 1
            case ScheduleRecord():
                self.schedules += 1
            case Limit():
                self.limits += 1
            case PausedQueue():
                self.paused += 1

    def end(self) -> EndLine:
        return EndLine(
            jobs=self.jobs,
            schedules=self.schedules,
            limits=self.limits,
            paused=self.paused,
            digest=self._digest.hexdigest(),
        )


# --- writing --------------------------------------------------------------------------------------


class ExportWriter:
    """Makes the lines of one export, in the order in which they are to stand."""

    def __init__(self) -> None:
        self._numbers = _Numbers()

    def header(self, store: str, at: datetime) -> bytes:
        return self._noted(HeaderLine(format=FORMAT, tenure=VERSION, store=store, at=at))

    def line(self, entry: Entry) -> bytes:
        """One more line. Raises `BadLine`, with the line 0, for what could not be taken in again.

        Such an entry is left out; the lines before and after it are not concerned.
        """
        try:
            text = _encoder.encode(written(entry))
        except UnicodeEncodeError:
            raise BadLine(0, "$", "has text that is no UTF-8") from None
        _entry(0, _decoded(0, text))
        self._numbers.count(entry)
        return self._with_end(text)

    def end(self) -> bytes:
        return _encoder.encode(self._numbers.end()) + b"\n"

    def _noted(self, line: Line) -> bytes:
        return self._with_end(_encoder.encode(line))

    def _with_end(self, text: bytes) -> bytes:
        line = text + b"\n"
        self._numbers.add(line)
        return line


# --- reading --------------------------------------------------------------------------------------


def read_export(lines: Iterable[bytes]) -> Iterator[tuple[int, Entry]]:
    """What stands between the header and the end, each with the number of its line.

    Raises `BadLine` at the first line that is wrong; at the last one where the file was cut, or has
    other bytes than were written. Whoever must not act on a part of a file reads it to its end
    first. An end without a digest vouches for the numbers alone.
    """
    numbers, end, number = _Numbers(), None, 0
    for number, line in enumerate(lines, 1):
        if end is not None:
            raise BadLine(number, "$", "stands after the end")
        read = _first(line) if number == 1 else _decoded(number, line)
        match read:
            case HeaderLine():
                if number != 1:
                    raise BadLine(number, "$", "is a second header")
            case EndLine():
                end = read
                _compare(number, end, numbers.end())
                continue
            case _:
                entry = _entry(number, read)
                numbers.count(entry)
                yield number, entry
        numbers.add(line)
    if end is None:
        raise BadLine(number + 1, "$", "is missing: the file was cut before its end")


def _first(line: bytes) -> Line:
    try:
        found = _formats.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise BadLine(1, "$", "is no header: the file is no export of tenure") from None
    if found.format != FORMAT:
        rule = f"is {found.format}, this tenure reads {FORMAT}: use the tenure that wrote it"
        raise BadLine(1, "$.format", rule)
    return _decoded(1, line)


def _decoded(number: int, line: bytes) -> Line:
    try:
        return _decoder.decode(line)
    except msgspec.ValidationError as error:
        rule, _, path = str(error).rpartition(" - at `")
        raise BadLine(number, path.rstrip("`") if rule else "$", rule or str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadLine(number, "$", f"is no JSON: {error}") from None


def _compare(number: int, end: EndLine, right: EndLine) -> None:
    for field in ("jobs", "schedules", "limits", "paused"):
        said, found = getattr(end, field), getattr(right, field)
        if said != found:
            raise BadLine(number, f"$.{field}", f"is {said:,}, but there are {found:,} such lines")
    if end.digest is not None and end.digest != right.digest:
        rule = "is not that of the lines above, one of which was changed; take it out if you did so"
        raise BadLine(number, "$.digest", rule)


def _entry(number: int, line: Line) -> Entry:
    try:
        return entry_of(line)
    except InvalidJob as error:
        raise BadLine(number, error.path, error.rule) from None
