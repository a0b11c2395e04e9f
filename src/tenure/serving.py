"""The queue whose worker runs here: a handler's own dispatches go where its job came from."""

from contextvars import ContextVar

from tenure.queue import Queue

__all__ = ["SERVED"]

SERVED: ContextVar[Queue] = ContextVar("tenure_served_queue")
