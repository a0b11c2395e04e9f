"""Handlers that processes import: well behaved ones, and every way to stop a process."""

import asyncio
import ctypes
import locale
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import tenure

SEEN: ContextVar[str] = ContextVar("seen", default="nothing")
kept: list[bytearray] = []
initialised: list[int] = []


class Wrong(Exception):
    """An error with a constructor of its own."""

    def __init__(self, code: int, place: str) -> None:
        super().__init__(f"{place} {code}")
        self.code = code


def begin(payload: str) -> None:
    """Leave this process's id in a file, whole or not at all."""
    path = Path(payload)
    new = path.with_name(f"{path.name}.new")
    new.write_text(str(os.getpid()))
    new.replace(path)


# --- what ends ----------------------------------------------------------------------------------


def echo(payload: Any) -> Any:
    return payload


async def echo_async(payload: Any) -> Any:
    await asyncio.sleep(0)
    return payload


def pid(payload: Any) -> int:
    return os.getpid()


def about(payload: Any, job: tenure.RunningJob) -> Any:
    job.set_progress(0.5, "half")
    job.log("a line")
    known = tenure.current_job()
    return {
        "id": job.id,
        "name": job.name,
        "queue": job.queue,
        "attempt": job.attempt,
        "headers": job.headers,
        "fence": job.fence,
        "cancelled": job.cancelled,
        "current": known.id,
        "payload": job.payload,
    }


def unsupported(payload: Any, job: tenure.RunningJob) -> None:
    job.complete_within(None)


def lingering(payload: Any, job: tenure.RunningJob) -> None:
    """Leaves a thread that goes on to speak."""

    def speak() -> None:
        for number in range(100):
            job.log(f"late {number}")
            time.sleep(0.005)

    threading.Thread(target=speak, daemon=True).start()


def numbers(payload: Any) -> str:
    """How this process writes them."""
    return locale.setlocale(locale.LC_NUMERIC)


def setting(payload: Any) -> str:
    before = SEEN.get()
    SEEN.set("something")
    return before


def raise_wrong(payload: Any) -> None:
    raise Wrong(7, "here")


def raise_named(payload: str) -> None:
    kinds: dict[str, BaseException] = {
        "SystemExit": SystemExit(3),
        "KeyboardInterrupt": KeyboardInterrupt(),
        "StopIteration": StopIteration(),
        "CancelledError": asyncio.CancelledError(),
        "ExceptionGroup": ExceptionGroup("two", [ValueError("a")]),
        "Cancel": tenure.Cancel("no longer needed"),
        "Retry": tenure.Retry("once more", after=0.01),
    }
    raise kinds[payload]


def snooze_once(payload: str) -> Any:
    path = Path(payload)
    if path.exists():
        return "done"
    path.touch()
    return tenure.Snooze(0.01)


def return_set(payload: Any) -> Any:
    return {"a": [1, {2}]}


def keep(payload: int) -> int:
    kept.append(bytearray(payload))
    return os.getpid()


def slow(payload: float) -> int:
    time.sleep(payload)
    return os.getpid()


def die_once(payload: str) -> str:
    path = Path(payload)
    if path.exists():
        return "survived"
    path.touch()
    os._exit(3)


# --- what does not end --------------------------------------------------------------------------


def spin(payload: str) -> None:
    begin(payload)
    while True:
        pass


def spin_in_regex(payload: str) -> None:
    """In C, with the interpreter's lock: no other thread of the process ever runs."""
    begin(payload)
    re.match(r"(a+)+$", "a" * 60 + "b")


def sleep_in_c(payload: str) -> None:
    """In C, and its lock is not given back: `PyDLL` keeps it."""
    begin(payload)
    ctypes.PyDLL(None).sleep(1000)


async def wait_for_ever(payload: str) -> None:
    begin(payload)
    await asyncio.Event().wait()


def with_a_child(payload: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    Path(f"{payload}.child").write_text(str(child.pid))
    begin(payload)
    child.wait()


def devour(payload: Any) -> None:
    eaten: list[bytearray] = []
    while True:
        eaten.append(bytearray(5_000_000))
        time.sleep(0.001)


# --- what kills its process ---------------------------------------------------------------------


def segfault(payload: Any) -> None:
    ctypes.string_at(0)


def exit_3(payload: Any) -> None:
    os._exit(3)


def kill_itself(payload: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def abort(payload: Any) -> None:
    os.abort()


def close_everything(payload: Any) -> None:
    """Closes what the process talks to its worker through, and goes on."""
    os.closerange(3, 100)
    time.sleep(1000)


# --- initializers -------------------------------------------------------------------------------


def initialise() -> None:
    initialised.append(os.getpid())


def times_initialised(payload: Any) -> int:
    return len(initialised)


def fail_to_initialise() -> None:
    raise LookupError("no model to be found")


def exit_at_once() -> None:
    os._exit(5)


def interrupted(payload: Any) -> str:
    """What a terminal's Ctrl-C does, and a service manager's SIGTERM."""
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.05)
    return "still here"
