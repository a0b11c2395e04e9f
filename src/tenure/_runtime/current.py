"""Which job runs here. Each attempt has a context of its own, so that nobody sees another's job."""

from collections.abc import Callable
from contextvars import ContextVar

from tenure._runtime.running_job import RunningJob
from tenure.errors import RuntimeUnavailable

__all__ = ["CURRENT", "current_job"]

# A function, since most handlers never ask: the job is made when one does.
CURRENT: ContextVar[Callable[[], RunningJob]] = ContextVar("tenure_current_job")


def current_job() -> RunningJob:
    """The job whose handler runs here: in the handler, and in whatever it calls or starts.

    Also in a thread that a plain handler runs in, and in tasks that a handler starts. Raises
    `RuntimeUnavailable` elsewhere.
    """
    try:
        running = CURRENT.get()
    except LookupError:
        raise RuntimeUnavailable("there is a current job only inside of a handler") from None
    return running()
