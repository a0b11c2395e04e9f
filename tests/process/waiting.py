"""The only wait of these tests: until something is so, or a deadline that says what it was.

And what is asked of processes that may end at any moment.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

__all__ = ["alive", "kill_left", "wait_gone", "wait_until"]


def wait_until(
    predicate: Callable[[], bool], describe: Callable[[], str], *, seconds: float = 30.0
) -> None:
    """Wait until the predicate holds; after `seconds`, fail with what `describe` tells."""
    deadline = time.monotonic() + seconds
    while not predicate():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {describe()}")
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether it is there and more than a name that nobody has asked after."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):  # the second: it ended once this was open
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def wait_gone(pids: Iterable[int]) -> None:
    """Wait until no process of these is alive."""
    watched = list(pids)
    wait_until(
        lambda: not any(map(alive, watched)),
        lambda: f"{[pid for pid in watched if alive(pid)]} are still there",
    )


def kill_left(pids: Iterable[int]) -> None:
    """Kill those that are alive, of processes that may be about to end."""
    for pid in filter(alive, pids):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
