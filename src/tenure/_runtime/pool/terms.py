"""What a worker and the processes of its pool tell each other.

Values only, of our own: a payload and a result travel as their JSON, an error as text and the names
of its classes. Nothing of a user's is pickled.
"""

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import Struct

from tenure.outcomes import Failure
from tenure.process_pool import Prelude

if TYPE_CHECKING:
    # Which of its classes a pipe has depends on the platform; what they share has no public name.
    from multiprocessing.connection import _ConnectionBase  # pyright: ignore[reportPrivateUsage]

__all__ = [
    "Answer",
    "Begun",
    "Died",
    "End",
    "Logged",
    "NotBegun",
    "Order",
    "Postponed",
    "Raised",
    "Ready",
    "Refused",
    "Report",
    "Returned",
    "Said",
    "Setup",
    "Unstorable",
    "decode_order",
    "decode_report",
    "pack",
]

End: TypeAlias = "_ConnectionBase[Any, Any]"  # of a pipe


class Setup(Struct, frozen=True, kw_only=True):
    """What a process does before its first job. Names are `module:qualname`.

    `prelude` comes first of all, and is called with its argument.
    """

    prelude: Prelude | None
    initializer: str | None
    handlers: tuple[str, ...]
    locale: str | None


class Order(Struct, frozen=True, kw_only=True):
    """One attempt: which handler to call, with what."""

    handler: str
    wants_job: bool
    payload: bytes
    id: str
    name: str
    queue: str
    attempt: int
    headers: dict[str, str]
    fence: int
    result_limit: int
    progress: bool  # whether the store can keep any


class Ready(Struct, frozen=True, tag=True):
    """The process takes orders. `group`: it leads a process group, which can be killed as one."""

    group: bool


class Refused(Struct, frozen=True, tag=True):
    """The process could not be set up, and ends."""

    message: str


class Begun(Struct, frozen=True, tag=True):
    """The process has the order, and calls the handler now."""


class Said(Struct, frozen=True, tag=True):
    """`set_progress`, checked by the process."""

    fraction: float
    note: str | None


class Logged(Struct, frozen=True, tag=True):
    """`log`, checked by the process."""

    text: str


class Returned(Struct, frozen=True, tag=True):
    """The handler returned; `result` is JSON, None where it returned None."""

    result: bytes | None


class Unstorable(Struct, frozen=True, tag=True):
    """The handler returned what cannot be stored: the text of that error, and the place."""

    message: str
    path: str | None


class Postponed(Struct, frozen=True, tag=True):
    """The handler returned a `Snooze`; NaN where its delay is none."""

    delay: float


class Raised(Struct, frozen=True, tag=True, kw_only=True):
    """The handler raised. `classes` are the names of the error's classes, its own first.

    `asked`: it was a `Retry`, with `after` seconds (NaN where that is none); `cancel` is the reason
    of a `Cancel`.
    """

    failure: Failure
    classes: tuple[str, ...]
    text: str
    asked: bool = False
    after: float | None = None
    cancel: str | None = None


Answer = Returned | Unstorable | Postponed | Raised
Report = Ready | Refused | Begun | Said | Logged | Answer


class Died(Struct, frozen=True):
    """The process is gone, and the handler had not ended: how it died, in words."""

    how: str


class NotBegun(Struct, frozen=True):
    """The process was gone before it called the handler: nothing was started."""


pack = msgspec.msgpack.encode
_orders = msgspec.msgpack.Decoder(Order)
_reports = msgspec.msgpack.Decoder(Report)


def decode_order(data: bytes) -> Order:
    return _orders.decode(data)


def decode_report(data: bytes) -> Report:
    """Raises `msgspec.MsgspecError` for what is none."""
    report: Report = _reports.decode(data)
    return report
