"""A terminal in which a program runs: tmux with a server of its own, ended on its own socket.

Where there is no `tmux` on the PATH (Debian: the package of this name) the tests are skipped and
say so; with TENURE_TEST_REQUIRE=all they fail.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shlex import join
from uuid import uuid4

from tests.process.waiting import wait_until
from tests.servers.postgres import missing

__all__ = ["Terminal", "terminal"]


class Terminal:
    """A shell without a user's settings, at the size that was asked for."""

    def __init__(self, program: str, width: int, height: int, env: Mapping[str, str]) -> None:
        self._tmux = [program, "-L", f"tenure-{uuid4().hex}", "-f", os.devnull]
        shell = [
            "env",
            "-u",
            "COLUMNS",
            "-u",
            "LINES",
            *(f"{name}={value}" for name, value in env.items()),
        ]
        size = ["-x", str(width), "-y", str(height)]
        self._run("new-session", "-d", *size, join([*shell, "PS1=$ ", "sh"]))
        self.shows("$")

    def type(self, text: str) -> None:
        """A line, with the key that ends it."""
        self._run("send-keys", "-l", text)
        self.press("Enter")

    def press(self, key: str) -> None:
        self._run("send-keys", key)

    def resize(self, width: int, height: int) -> None:
        self._run("resize-window", "-x", str(width), "-y", str(height))

    def frame(self, *, escapes: bool = False) -> str:
        """What is to be seen now; with `escapes` also in which colours."""
        return self._run("capture-pane", "-p", *(["-e"] if escapes else []))

    def shows(self, *texts: str) -> str:
        """The first frame that has them all."""
        return self.until(lambda frame: all(text in frame for text in texts), repr(texts))

    def until(self, holds: Callable[[str], bool], what: str) -> str:
        """The first frame of which it holds."""
        seen = ""

        def look() -> bool:
            nonlocal seen
            seen = self.frame()
            return holds(seen)

        wait_until(look, lambda: f"not {what} in:\n{seen}")
        return seen

    def close(self) -> None:
        self._run("kill-server")

    def _run(self, *arguments: str) -> str:
        ran = subprocess.run(
            [*self._tmux, *arguments],
            env=os.environ | {"LC_ALL": "C.UTF-8"},
            capture_output=True,
            encoding="utf-8",
            timeout=30,
            check=True,
        )
        return ran.stdout


@contextmanager
def terminal(
    folder: Path, *, width: int = 100, height: int = 24, **env: str
) -> Generator[Terminal]:
    """A terminal in a folder; skips or fails the test where there is no tmux."""
    program = shutil.which("tmux")
    if program is None:
        missing("no tmux on the PATH: install the package tmux")
    found = Terminal(program, width, height, env)
    try:
        found.type(f"cd {join([str(folder)])}")
        yield found
    finally:
        found.close()
