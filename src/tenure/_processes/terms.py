"""What a supervisor and its worker processes tell each other, and how they end.

Values only. They travel through pipes between processes of one program, never further.
"""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    # Which of its classes a pipe has depends on the platform; what they share has no public name.
    from multiprocessing.connection import _ConnectionBase  # pyright: ignore[reportPrivateUsage]

    from tenure._runtime.handle import WorkerHandle

__all__ = ["ChildSettings", "End", "ExitStatus", "Onlooker", "Ready", "Refused", "Report", "Stage"]

End: TypeAlias = "_ConnectionBase[Any, Any]"  # of a pipe


class ExitStatus(IntEnum):
    """How worker processes ended, as the exit code of a program.

    - `DONE`: they were told to stop, and every job that had been started came to its end;
    - `FAILED`: of one process alone, which another one replaces: its worker stopped by itself;
    - `NOT_STARTED`: a worker could not be made or started at all, and no other works;
    - `UNHEALTHY`: of one process alone, which another one replaces: its worker was unhealthy;
    - `HANDED_BACK`: jobs still ran when their time was over; they will be started again;
    - `INTERRUPTED`: they were killed, as a third signal asks for; their jobs will be started again
      when the leases have run out.
    """

    DONE = 0
    FAILED = 1
    NOT_STARTED = 4
    UNHEALTHY = 7
    HANDED_BACK = 8
    INTERRUPTED = 130


class Stage(IntEnum):
    """What a process is asked to do; it only ever rises."""

    WORK = 0
    DRAIN = 1
    CANCEL = 2
    KILL = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSettings:
    """Seconds; None is the worker's own drain time, and never for a replacement.

    `loop_factory` makes the event loop of each process; None is asyncio's own. `started` is called
    with what runs, on that loop. Where there is an `Onlooker`, `watched` is called first of all,
    with the process's end of its line and a function that says whether the process is to stop; and
    `over` when its work is.
    """

    drain: float | None
    replace_unhealthy: float | None
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    started: Callable[["WorkerHandle"], None] | None = None
    watched: Callable[[socket.socket, Callable[[], bool]], None] | None = None
    over: Callable[[], None] | None = None


class Onlooker(Protocol):
    """Is told by a supervisor what becomes of its processes, in its main thread. Must not block.

    `line` is a stream socket whose other end the process has; what goes over it is the onlooker's.
    """

    def started(self, place: int, pid: int, line: socket.socket) -> None:
        """A place has a new process."""
        ...

    def ready(self, place: int) -> None:
        """Its worker runs."""
        ...

    def ended(self, place: int) -> None:
        """It is gone."""
        ...

    def asked(self, stage: Stage) -> None:
        """All processes are asked to stop."""
        ...

    def turned(self) -> None:
        """The supervisor has looked at everything once more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The worker runs, and takes at most `drain` seconds to let its handlers finish."""

    drain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The worker cannot be made or started; nobody has seen the message yet."""

    message: str


Report = Ready | Refused
