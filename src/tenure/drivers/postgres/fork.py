"""What a forked child must not do with the connections it inherited: anything at all.

Closing one would say goodbye to the server in its parent's name, and even dropping the last
reference makes the client library take the socket out of the event loop's selector, which parent
and child share. So a child keeps what it inherited for ever, finalizers included.

It is the other way round with a connection by which the server sees that this process lives, since
that lasts as long as anybody has it: in a child something else takes the place of its socket.
"""

import asyncio
import ctypes
import os
from functools import cache
from weakref import WeakSet

__all__ = ["know", "know_alone"]


class _Forks:
    """All connections of the process. Held weakly; knows nothing of any store."""

    def __init__(self) -> None:
        self.connections: WeakSet[object] = WeakSet()
        self.alone: WeakSet[asyncio.BaseTransport] = WeakSet()
        os.register_at_fork(after_in_child=self._after_in_child)

    def _after_in_child(self) -> None:
        self._pin()
        null = os.open(os.devnull, os.O_RDWR)
        for transport in self.alone:
            descriptor = transport.get_extra_info("socket").fileno()
            if descriptor >= 0:
                # Not closed: the number would be given to a file of the child.
                os.dup2(null, descriptor, inheritable=False)
        os.close(null)

    def _pin(self) -> None:
        for connection in self.connections:
            # One reference is leaked on purpose, so that no finalizer runs.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        self.connections.clear()


@cache
def _forks() -> _Forks:
    """The one process-wide thing in this driver, since a fork is.

    Its hook cannot be taken back, so it is registered once, at the first connection.
    """
    return _Forks()


def know(connection: object) -> None:
    """Have a child that is forked from now on keep this connection."""
    _forks().connections.add(connection)


def know_alone(transport: asyncio.BaseTransport) -> None:
    """Have no child that is forked from now on hold this connection open."""
    _forks().alone.add(transport)
