"""What the tour shows: a progress line, a table, colours where they are welcome. No queue in it."""

import os
import shutil
import time
from collections.abc import Sequence
from typing import TextIO

_COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}

_ASCII = str.maketrans({"━": "=", "─": "-", "…": "~"})


class Screen:
    """Writes to a terminal or to a file; only a terminal gets colours and a rewritten line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.live: bool = stream.isatty() and os.environ.get("TERM") != "dumb"
        self.coloured: bool = self.live and not os.environ.get("NO_COLOR")
        self.width: int = min(100, max(60, shutil.get_terminal_size((100, 24)).columns))
        self._started = time.monotonic()
        self._last_line = 0.0
        self._unfinished = False

    @property
    def seconds(self) -> float:
        """How long the program has been running."""
        return time.monotonic() - self._started

    def colour(self, text: str, *colours: str) -> str:
        if not self.coloured or not colours:
            return text
        return f"\x1b[{';'.join(_COLOURS[name] for name in colours)}m{text}\x1b[0m"

    def say(self, text: str = "", *colours: str) -> None:
        """Print a line; a progress line that stands there is replaced."""
        self._clear()
        self._print(f"{self.colour(text, *colours)}\n")

    def note(self, text: str, *colours: str) -> None:
        """Print what just happened, with the time, cut to the width."""
        self.say(cut(f"{self.seconds:6.2f} s  {text}", self.width), *colours)

    def progress(self, done: int, total: int, text: str) -> None:
        """On a terminal rewrite one line; elsewhere print one every second."""
        if self.live:
            size = self.width - 48
            filled = size * done // max(1, total)
            bar = self.colour("━" * filled, "green") + self.colour("━" * (size - filled), "dim")
            line = cut(f"{done:,} of {total:,}  {text}", 36)
            self._print(f"\r\x1b[2K{self.seconds:6.2f} s  {bar}  {line}")
            self._unfinished = True
        elif self.seconds - self._last_line >= 1.0:
            self._last_line = self.seconds
            self.note(f"{done:,} of {total:,} jobs have ended  {text}")

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]], right: set[int]) -> None:
        """Print columns; those in `right` are aligned right, the last takes what room is left."""
        lines = [head, *rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        used = sum(widths[:-1]) + 2 * len(head)
        widths[-1] = max(10, min(widths[-1], self.width - used))
        for number, line in enumerate(lines):
            cells = [
                cell.rjust(width) if index in right else cut(cell, width).ljust(width)
                for index, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            colours = ("bold",) if number == 0 else _colour_of(line)
            self.say(f"  {'  '.join(cells)}".rstrip(), *colours)
            if number == 0:
                self.say("  " + "  ".join("─" * width for width in widths), "dim")

    def _clear(self) -> None:
        if self._unfinished:
            self._print("\r\x1b[2K")
            self._unfinished = False

    def _print(self, text: str) -> None:
        encoding = self._stream.encoding or "ascii"
        if not encoding.lower().startswith("utf"):
            text = text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
        print(text, end="", file=self._stream, flush=True)


def cut(text: str, width: int) -> str:
    """The first line of the text, at most `width` characters of it."""
    line = text.partition("\n")[0]
    return line if len(line) <= width else line[: width - 1] + "…"


def _colour_of(row: Sequence[str]) -> tuple[str, ...]:
    colours = {"failed": "red", "waiting": "yellow", "cancelled": "dim"}
    return tuple(colours[cell] for cell in row if cell in colours)
