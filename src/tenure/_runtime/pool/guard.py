"""A process of the pool never outlives its worker, and leaves signals of the terminal to it.

Runs in the process, before anything of a user's. What the system does not have is left out: there
is no process group on Windows, and only on Linux the kernel itself can kill it for a pipe.
"""

import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType

from tenure._runtime.pool.terms import End

__all__ = ["die_with", "ignore_signals", "lead_a_group"]


def lead_a_group() -> bool:
    """Whether this process now leads a group of its own, which its children are in as well."""
    if not hasattr(os, "setpgid"):
        return False
    try:
        os.setpgid(0, 0)
    except OSError:
        return False
    return True


def die_with(lifeline: End, *, group: bool) -> None:
    """End at once, whatever runs here, when the other end of a pipe is closed.

    The thread that notices needs the interpreter's lock, which code in C may never give back. So
    on Linux the kernel is told to kill this process, or the group that it leads, when something
    happens to the pipe, and nothing is ever sent through it.
    """
    threading.Thread(target=_watch, args=(lifeline,), name="tenure-guard", daemon=True).start()
    try:
        import fcntl
    except ImportError:
        return
    if sys.platform == "linux" and hasattr(signal, "SIGKILL"):
        number = lifeline.fileno()
        fcntl.fcntl(number, fcntl.F_SETOWN, -os.getpid() if group else os.getpid())
        fcntl.fcntl(number, fcntl.F_SETSIG, signal.SIGKILL)
        flags = fcntl.fcntl(number, fcntl.F_GETFL)
        fcntl.fcntl(number, fcntl.F_SETFL, flags | os.O_ASYNC)


def _watch(lifeline: End) -> None:
    with suppress(EOFError, OSError):
        lifeline.recv_bytes()
    if hasattr(os, "killpg") and hasattr(signal, "SIGKILL") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)  # and what the handler has started
    os._exit(1)


def ignore_signals() -> None:
    """Ctrl-C and SIGTERM reach every process of a program; what follows is for the worker to say.

    By a handler that does nothing: what is ignored would be so in programs that a handler starts,
    which it could not terminate then.
    """
    for name in ("SIGINT", "SIGTERM", "SIGBREAK"):
        number = getattr(signal, name, None)
        if number is not None:
            signal.signal(number, _nothing)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})


def _nothing(number: int, frame: FrameType | None) -> None:
    return
