"""What a supervisor and its worker processes tell each other, and how they end.

Values only. They travel through pipes between processes of one program, never further.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    # Which of its classes a pipe has depends on the platform; what they share has no public name.
    from multiprocessing.connection import _ConnectionBase  # pyright: ignore[reportPrivateUsage]

__all__ = ["ChildSettings", "End", "ExitStatus", "Ready", "Refused", "Report", "Stage"]

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

    `loop_factory` makes the event loop of each process; None is asyncio's own.
    """

    drain: float | None
    replace_unhealthy: float | None
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The worker runs, and takes at most `drain` seconds to let its handlers finish."""

    drain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The worker cannot be made or started; nobody has seen the message yet."""

    message: str


Report = Ready | Refused
