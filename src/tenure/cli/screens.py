"""The whole of a terminal for one program: frames are drawn over each other, keys are heard.

What it changes about the terminal it changes back, whatever happens in between. Colours come from
`rich` where that is installed; without it there are none. Waits for nothing.
"""

import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from types import TracebackType
from typing import Any, Self

from tenure.cli.panes import Line, Tone

__all__ = ["Screen", "is_terminal"]

# The other screen, without a cursor, long lines cut instead of wrapped, empty.
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_USUAL = (80, 24)
_STYLES: dict[Tone, str] = {"title": "bold", "head": "bold cyan", "dim": "dim", "bad": "red"}


def is_terminal() -> bool:
    """Whether frames can be drawn over each other on standard output."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class Screen:
    """Takes the terminal on `with`; can give it back for a while."""

    def __init__(self) -> None:
        self._keys = sys.stdin.fileno() if sys.stdin.isatty() else None
        self._before: list[Any] = []
        self._paint = _painter()

    @property
    def keys(self) -> int | None:
        """Where single keys can be read while it is taken; None where nobody types."""
        return self._keys

    def take(self) -> None:
        """Switch to the other screen, and hear keys one by one. Ctrl-C stays a signal."""
        if self._keys is not None:
            import termios  # not at the top: Windows has none
            import tty

            self._before = termios.tcgetattr(self._keys)
            tty.setcbreak(self._keys)
        self._write(_ENTER)

    def give_back(self) -> None:
        """As it was before."""
        try:
            self._write(_LEAVE)
        finally:
            if self._keys is not None and self._before:
                import termios

                termios.tcsetattr(self._keys, termios.TCSADRAIN, self._before)

    def size(self) -> tuple[int, int]:
        """Columns and lines, as they are now; the variables for them may be older."""
        try:
            now = os.get_terminal_size(sys.stdout.fileno())
        except OSError:  # the terminal is gone
            return _USUAL
        return now.columns or _USUAL[0], now.lines or _USUAL[1]

    def draw(self, lines: Sequence[Line]) -> None:
        """Show a frame; what was there is overwritten without a flicker."""
        painted = "\x1b[K\r\n".join(self._paint(line) for line in lines)
        self._write(f"\x1b[H{painted}\x1b[K\x1b[J")

    def __enter__(self) -> Self:
        try:
            self.take()
        except BaseException:
            self.give_back()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.give_back()

    def _write(self, text: str) -> None:
        encoding = sys.stdout.encoding or "ascii"
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
        sys.stdout.flush()


def _painter() -> Callable[[Line], str]:
    """What gives a line its colours: `rich`, which knows what the terminal can do, or nothing."""
    try:
        from rich.color import ColorSystem
        from rich.console import Console
        from rich.style import Style
    except ModuleNotFoundError:
        return lambda line: line.text
    console = Console()
    if console.no_color or console.color_system is None:
        return lambda line: line.text
    known = {"256": ColorSystem.EIGHT_BIT, "truecolor": ColorSystem.TRUECOLOR}
    system = known.get(console.color_system, ColorSystem.STANDARD)

    @cache
    def style(tone: Tone) -> Style:
        return Style.parse(_STYLES.get(tone, "none"))

    return lambda line: style(line.tone).render(line.text, color_system=system)
