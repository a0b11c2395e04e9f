"""At a terminal: it asks before it destroys, and shows how far it has come."""

import os
import pty
import subprocess

import pytest

from tests.edge.cli.running import PROGRAM, call


def at_a_terminal(*arguments: str, url: str, typed: str) -> tuple[int, str]:
    """The exit code, and all that was to be seen."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TENURE_URL": url},
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    seen = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # how a terminal tells that nobody has it open any more
            break
        if not part:
            break
        seen += part
    os.close(ours)
    return process.wait(timeout=30), seen.decode()


@pytest.mark.parametrize(
    ("typed", "code", "left"), [("y\n", 0, 0), ("n\n", 1, 1), ("\n", 1, 1), ("\x04", 130, 1)]
)
def test_it_says_how_many_and_asks(url: str, typed: str, code: int, left: int) -> None:
    call("enqueue", "greet", url=url)
    arguments = ("jobs", "delete", "--state", "pending")
    ended, seen = at_a_terminal(*arguments, url=url, typed=typed)
    assert "1 job will be deleted" in seen
    assert ended == code, seen
    assert call("stats", "--json", url=url).json["counts"]["pending"] == left


def test_progress_is_shown_at_a_terminal_and_nowhere_else(url: str) -> None:
    call("enqueue", "greet", url=url)
    ended, seen = at_a_terminal("jobs", "cancel", "--queue", "default", "-y", url=url, typed="")
    assert ended == 0
    assert "\r1 jobs" in seen
    call("enqueue", "greet", url=url)
    assert "\r" not in call("jobs", "cancel", "--queue", "default", "-y", url=url).err
