"""What this process has of the things that a life cycle may leave behind, counted by their kind.

Nothing is collected before a look: what only the garbage collector would close counts as left.
"""

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["belongings", "left_behind", "wait_for_nothing", "wait_on_loop"]

NOTHING: Mapping[str, int] = {}
_OPEN = Path("/dev/fd")
_SECONDS = 5.0  # what was told to end has as long: a thread, a socket's last turn of the loop


def belongings() -> Counter[str]:
    """Tasks of the running loop, threads, open files and sockets.

    Without the threads of a loop's own executor, which stay until that loop is closed.
    """
    found = Counter(
        f"thread {thread.name.rstrip('-0123456789')}"
        for thread in threading.enumerate()
        if not thread.name.startswith("asyncio_")
    )
    found.update(_files())
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return found
    found.update(f"task {_what(task)}" for task in asyncio.all_tasks())
    return found


def left_behind(before: Counter[str]) -> Counter[str]:
    """What there is now and was not."""
    return belongings() - before


def wait_for_nothing(before: Counter[str]) -> None:
    """Fail where something stays that was not there, outside of any event loop."""
    end = time.monotonic() + _SECONDS
    while left := left_behind(before):
        assert time.monotonic() < end, f"left behind: {dict(left)}"
        time.sleep(0.01)


async def wait_on_loop(before: Counter[str], more: Mapping[str, int] = NOTHING) -> None:
    """The same, while the event loop turns, but for what a pool may have made up to its size."""
    allowed = before + Counter(more)
    end = time.monotonic() + _SECONDS
    while left := left_behind(allowed):
        assert time.monotonic() < end, f"left behind: {dict(left)}"
        await asyncio.sleep(0.01)


def _files() -> Counter[str]:
    """Open files by their path, other ones by their kind: `socket`, `pipe`, `anon_inode`."""
    found: Counter[str] = Counter()
    for number in os.listdir(_OPEN):
        try:
            target = os.readlink(_OPEN / number)
        except OSError:
            continue  # the one that the listing itself needed
        found[target.partition(":")[0] if ":" in target else f"file {target}"] += 1
    return found


def _what(task: asyncio.Task[Any]) -> str:
    """What a task does: one that takes the place of another is no more than it."""
    return str(getattr(task.get_coro(), "__qualname__", task.get_name()))
