"""A dispatch in the transaction of a caller's own blocking connection, on the caller's thread.

Such a connection belongs to the thread that uses it, so that here, and here only, nothing runs on
the background loop. It must never let a step wait: a blocking connection has answered when its call
returns.
"""

import inspect
from collections.abc import Coroutine
from typing import Any, TypeVar

from tenure.driver import Driver
from tenure.errors import InvalidConfiguration
from tenure.queue import Queue

__all__ = ["at_once", "blocking", "on_this_thread"]

T = TypeVar("T")

_RULE = (
    "must be a blocking connection, such as one of sqlite3 or psycopg, or a Session of SQLAlchemy; "
    "with this one, await the verb of the queue itself"
)


def blocking(connection: object) -> object:
    """The connection. Raises `InvalidConfiguration` for one whose statements are awaited."""
    awaited = inspect.iscoroutinefunction(getattr(connection, "execute", None))
    # The pool of asyncpg hands out stand-ins, which do not show what they are.
    if awaited or any(kind.__module__.startswith("asyncpg") for kind in type(connection).__mro__):
        raise InvalidConfiguration("within", type(connection).__name__, _RULE)
    return connection


def on_this_thread(queue: Queue, driver: Driver) -> Queue:
    """The queue with a driver that is open already, so that nothing of it needs an event loop."""
    return _Lent(queue, driver)


def at_once(call: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never suspends."""
    try:
        call.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    call.close()
    raise InvalidConfiguration("within", "a connection that is awaited", _RULE)


class _Lent(Queue):
    def __init__(self, queue: Queue, driver: Driver) -> None:
        super().__init__(
            driver, clock=queue.clock, payload_limit=queue.payload_limit, codec=queue.codec
        )
        self._open = driver
        self.waits = queue.waits  # results are waited for where the workers of the queue tell them

    async def driver(self) -> Driver:
        return self._open
