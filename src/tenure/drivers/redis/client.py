"""Connections to a server: the only module that knows redis-py.

Of redis-py it uses the connections, not the clients: a call then fails in one of three ways that
are kept apart, never sent (`Lost(sent=False)`), answer lost (`Lost(sent=True)`), refused
(`Refused`), and nothing is ever repeated behind the caller's back.
"""

import asyncio
import ctypes
import os
from collections.abc import Mapping
from typing import Any, Protocol, cast

import hiredis
import redis.asyncio.connection as for_loops
import redis.connection as for_threads
from msgspec import Struct
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError
from redis.retry import Retry

from tenure.drivers.redis.faults import Lost, Refused

__all__ = ["Address", "Argument", "BlockingWire", "Server", "Wire", "parsed"]

Argument = str | bytes | int | float

_IDLE = 15  # seconds after which a connection is asked whether it still works before it is used


class Address(Struct, frozen=True):
    """Where a node of a cluster is; None in place of it means where the URL says."""

    host: str
    port: int


class Server(Struct, frozen=True, kw_only=True):
    """How to connect: a URL without its query, and the bounds for waiting, in seconds."""

    url: str
    timeout: float
    connect_timeout: float
    tls_ca: str | None

    def shown(self) -> str:
        """The URL without user and password, for messages."""
        scheme, _, rest = self.url.partition("://")
        return f"{scheme}://{rest.rpartition('@')[2]}"


class _Connection(Protocol):
    """What is used of `redis.asyncio.Connection`, which has no types of its own for it."""

    @property
    def is_connected(self) -> bool: ...
    async def connect(self) -> None: ...
    async def disconnect(self, nowait: bool = False) -> None: ...
    async def can_read(self) -> bool: ...
    async def send_packed_command(self, command: list[bytes], check_health: bool) -> None: ...
    async def read_response(self) -> Any: ...


class _BlockingConnection(Protocol):
    """The same of `redis.Connection`."""

    def connect(self) -> None: ...
    def disconnect(self) -> None: ...
    def can_read(self, timeout: float) -> bool: ...
    def check_health(self) -> None: ...
    def send_packed_command(self, command: list[bytes], check_health: bool) -> None: ...
    def read_response(self) -> Any: ...


def parsed(url: str) -> Mapping[str, Any]:
    """The parts of a URL. Raises `ValueError` for one that redis-py does not take."""
    return dict(for_loops.parse_url(url))


def _options(server: Server, address: Address | None) -> dict[str, Any]:
    options = dict(parsed(server.url))
    options.pop("connection_class", None)
    if address is not None:
        options |= {"host": address.host, "port": address.port}
    if server.tls_ca is not None and server.url.startswith("rediss:"):
        options["ssl_ca_certs"] = server.tls_ca
    return options | {
        "socket_connect_timeout": server.connect_timeout,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        "driver_info": None,  # two commands less for each connection
    }


class Wire:
    """One connection, used by one call at a time, from the event loop that opened it."""

    def __init__(self, connection: _Connection, address: Address | None, server: Server) -> None:
        self.address = address
        self._connection = connection
        self._server = server
        self._used = _monotonic()
        self._pid: int | None = os.getpid()
        # A child that was forked must never deallocate it, since that closes it: the selector is
        # shared with the parent, whose loop would not hear of its own connection again.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))

    @classmethod
    async def open(cls, server: Server, address: Address | None) -> "Wire":
        kinds = {
            "redis": for_loops.Connection,
            "rediss": for_loops.SSLConnection,
            "unix": for_loops.UnixDomainSocketConnection,
        }
        kind: Any = kinds[server.url.partition(":")[0]]
        # Bounded here: with a timeout of its own it makes a task for each command that it sends.
        options = _options(server, address) | {"socket_timeout": None}
        connection = cast(_Connection, kind(**options))
        connected = False
        try:
            async with asyncio.timeout(server.connect_timeout):
                await connection.connect()
            connected = True
        except (RedisError, OSError) as error:  # a TimeoutError is one
            raise _failure(error, sent=False) from error
        finally:
            if not connected:  # in time, or at all: what there is of it is left open by redis-py
                await connection.disconnect(nowait=True)
        return cls(connection, address, server)

    async def usable(self) -> bool:
        """Whether it seems to be in order; False once the server has closed it.

        One that was idle for long is asked: what lies between may have forgotten it in silence, and
        the call that it was to carry would then fail for nothing.
        """
        try:
            if not self._connection.is_connected or await self._connection.can_read():
                return False
            if _monotonic() - self._used > _IDLE:
                async with asyncio.timeout(self._server.connect_timeout):
                    await self._send("PING")
        except (RedisError, OSError):
            return False
        return True

    async def call(self, *command: Argument, blocks: float = 0.0) -> Any:
        """Send a command and wait for its answer, which may take `blocks` seconds longer.

        After a lost answer, or when it was cancelled, the connection is closed.
        """
        try:
            async with asyncio.timeout(self._server.timeout + blocks):
                answer = await self._send(*command)
        except (RedisError, OSError) as error:  # a TimeoutError is one
            raise _failure(error, sent=True) from error
        self._used = _monotonic()
        return answer

    async def _send(self, *command: Argument) -> Any:
        await self._connection.send_packed_command(_packed(command), check_health=False)
        return await self._connection.read_response()

    async def close(self) -> None:
        """Legal twice; does nothing in a child of the process that opened it."""
        if os.getpid() != self._pid:
            return
        self._pid = None
        try:
            await self._connection.disconnect()
        except (RedisError, OSError):
            pass  # it is gone, which was the purpose
        finally:
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(self._connection))


class BlockingWire:
    """One connection for one thread. redis-py itself keeps a child from shutting it down."""

    def __init__(self, server: Server, address: Address | None) -> None:
        kinds = {
            "redis": for_threads.Connection,
            "rediss": for_threads.SSLConnection,
            "unix": for_threads.UnixDomainSocketConnection,
        }
        kind: Any = kinds[server.url.partition(":")[0]]
        options = _options(server, address) | {
            "socket_timeout": server.timeout,
            "health_check_interval": _IDLE,
        }
        self._connection = cast(_BlockingConnection, kind(**options))
        try:
            self._connection.connect()
        except (RedisError, OSError) as error:
            raise _failure(error, sent=False) from error

    def usable(self) -> bool:
        """Whether it seems to be in order; False once the server has closed it."""
        try:
            return not self._connection.can_read(timeout=0)
        except (RedisError, OSError):
            return False

    def call(self, *command: Argument) -> Any:
        """Send a command and wait for its answer."""
        sent = False
        try:
            self._connection.check_health()
            sent = True
            self._connection.send_packed_command(_packed(command), check_health=False)
            return self._connection.read_response()
        except (RedisError, OSError) as error:
            raise _failure(error, sent=sent) from error

    def close(self) -> None:
        """Legal twice."""
        self._connection.disconnect()


def _packed(command: tuple[Argument, ...]) -> list[bytes]:
    return [cast(Any, hiredis).pack_command(command)]  # its stub allows for one argument only


def _text(error: RedisError) -> str:
    """The whole reply: redis-py takes the first word away from those that it knows."""
    code, text = error.status_code, str(error)
    return text if code is None or text.startswith(code) else f"{code} {text}"


def _failure(error: RedisError | OSError, *, sent: bool) -> Lost | Refused:
    """Whether the server answered with an error, or there was no answer.

    redis-py counts some replies (LOADING, NOAUTH, WRONGPASS) among the errors of a connection.
    """
    if isinstance(error, ResponseError) or (
        isinstance(error, RedisError) and error.status_code is not None
    ):
        return Refused(_text(error))
    return Lost(str(error) or "no answer in time", sent=sent)


def _monotonic() -> float:
    return asyncio.get_running_loop().time()
