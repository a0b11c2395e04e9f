"""A network of our own before a server: slow, silent, broken off, or with answers that get lost.

It carries bytes and knows no protocol. All of it runs on the event loop that opened it, and nothing
of it outlives its `async with`.
"""

import asyncio
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Literal

from tenure.clock import Clock, SystemClock

__all__ = ["Relay"]

Way = Literal["requests", "replies"]

_WAYS: tuple[Way, ...] = ("requests", "replies")
_PIECE = 65536  # bytes
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends a reset and forgets what was not sent


class Relay:
    """Listens on a port of 127.0.0.1 and carries what clients and a server say to each other.

        async with Relay("127.0.0.1", 6379) as relay:
            queue = tenure.connect(f"redis://{relay.host}:{relay.port}")
            relay.freeze()

    `way` is what clients say ("requests"), what the server says ("replies"), or None for both. A
    change holds for the connections that there are and for new ones, until it is taken back.
    `target` is the host and port to which new connections lead, `accepted` counts those made so
    far. `clock` is what delays go by, the system's by default.
    """

    def __init__(self, host: str, port: int, *, clock: Clock | None = None) -> None:
        self.host = "127.0.0.1"
        self.port: int = 0  # known once it is open
        self.target: tuple[str, int] = host, port
        self.accepted: int = 0
        self._clock = clock or SystemClock()
        self._door: socket.socket | None = None
        self._listening = False
        self._turning_away = False
        self._delays: dict[Way, float] = dict.fromkeys(_WAYS, 0.0)
        self._flowing = {way: asyncio.Event() for way in _WAYS}
        self._dropping: set[Way] = set()
        self._links: dict[asyncio.Task[None], _Link] = {}
        self.thaw()

    async def __aenter__(self) -> "Relay":
        self.accept()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.refuse()
        if self._door is not None:
            self._door.close()
            self._door = None
        self.cut()
        while self._links:
            await asyncio.wait(list(self._links))

    # --- what becomes of the bytes --------------------------------------------------------------

    def delay(self, seconds: float, way: Way | None = None) -> None:
        """Hold each piece that comes in for so long, and what follows it; 0 takes that back.

        What is said while a piece is held waits behind it and is held in its turn, so that it takes
        twice as long at the most.
        """
        for each in _ways(way):
            self._delays[each] = seconds

    def freeze(self, way: Way | None = None) -> None:
        """Carry nothing, and tell nobody: also no end of a connection, and no reset.

        Connections are accepted. What is said is held, and goes on when it thaws.
        """
        for each in _ways(way):
            self._flowing[each].clear()

    def thaw(self, way: Way | None = None) -> None:
        """Let what is frozen go on."""
        for each in _ways(way):
            self._flowing[each].set()

    def drop_replies(self) -> None:
        """Let requests reach the server and its answers vanish, until `pass_replies`.

        A connection that has lost anything carries no answer ever after: there are no gaps in what
        TCP carries.
        """
        self._dropping.add("replies")

    def pass_replies(self) -> None:
        """Drop no more answers on connections that have lost none."""
        self._dropping.discard("replies")

    # --- what becomes of the connections --------------------------------------------------------

    def forget(self) -> None:
        """Let the connections that there are carry nothing any more; new ones are as ever.

        Nobody is told, as when a device between the two has lost its state.
        """
        for link in self._links.values():
            link.lost.update(_WAYS)

    def cut(self) -> None:
        """Reset all connections, also frozen ones; new ones can be made.

        It is done when the event loop has turned.
        """
        for task, link in self._links.items():
            link.reset = True
            task.cancel()

    def refuse(self) -> None:
        """Let nobody connect: the port is as if closed. The connections that there are go on."""
        if self._door is not None and self._listening:
            self._listening = False
            asyncio.get_running_loop().remove_reader(self._door)
            self._door.close()
            self._door = _bound(self.host, self.port)  # so that nobody else takes the port

    def turn_away(self) -> None:
        """Accept whoever connects, and end the connection at once."""
        self.accept()
        self._turning_away = True

    def accept(self) -> None:
        """Let clients connect again, on the same port."""
        self._turning_away = False
        if self._listening:
            return
        if self._door is None:
            self._door = _bound(self.host, self.port)
        self._door.listen(128)
        self.port = self._door.getsockname()[1]
        asyncio.get_running_loop().add_reader(self._door, self._admit, self._door)
        self._listening = True

    def restore(self) -> None:
        """Take everything back: clients are accepted, and all is carried at once."""
        self.accept()
        self.delay(0.0)
        self.pass_replies()
        self.thaw()

    # --- the work -------------------------------------------------------------------------------

    def _admit(self, door: socket.socket) -> None:
        try:
            client, _ = door.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # it has gone away meanwhile
        client.setblocking(False)
        self.accepted += 1
        link = _Link(client)
        if self._turning_away:
            link.close()
            return
        task = asyncio.get_running_loop().create_task(self._serve(link), name="relay")
        self._links[task] = link
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        # Not in the task: one that is cut before its first step would leave its sockets behind.
        self._links.pop(task).close()

    async def _serve(self, link: "_Link") -> None:
        """Carry both ways until both have ended, or one has broken."""
        try:
            await self._flowing["requests"].wait()
            server = await _connected(*self.target)
            link.sockets.append(server)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._carry("requests", link.client, server, link))
                group.create_task(self._carry("replies", server, link.client, link))
        except* OSError:
            link.reset = True  # as the one side broke off, so does the other

    async def _carry(
        self, way: Way, source: socket.socket, sink: socket.socket, link: "_Link"
    ) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                data = await loop.sock_recv(source, _PIECE)
                if self._delays[way]:
                    await self._clock.sleep(self._delays[way])
                await self._flowing[way].wait()
                if way in self._dropping:
                    link.lost.add(way)
                if not data:
                    break
                if way not in link.lost:
                    await loop.sock_sendall(sink, data)
        except OSError:
            await self._flowing[way].wait()
            raise
        if way not in link.lost:
            with suppress(OSError):  # the other side has gone first
                sink.shutdown(socket.SHUT_WR)


class _Link:
    """One connection: the sockets to both sides, and what it carries no more."""

    def __init__(self, client: socket.socket) -> None:
        self.client = client
        self.sockets = [client]
        self.lost: set[Way] = set()
        self.reset = False

    def close(self) -> None:
        for each in self.sockets:
            if self.reset:
                with suppress(OSError):
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            each.close()


def _ways(way: Way | None) -> Sequence[Way]:
    return _WAYS if way is None else (way,)


def _bound(host: str, port: int) -> socket.socket:
    door = socket.socket()
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    door.setblocking(False)
    try:
        door.bind((host, port))
    except OSError:
        door.close()
        raise
    return door


async def _connected(host: str, port: int) -> socket.socket:
    """A connection to the first of the host's addresses that takes one."""
    loop = asyncio.get_running_loop()
    errors: list[OSError] = []
    for family, kind, protocol, _, address in await loop.getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    ):
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        try:
            await loop.sock_connect(made, address)
        except OSError as error:
            errors.append(error)
            made.close()
        except BaseException:
            made.close()
            raise
        else:
            return made
    raise errors[0] if errors else OSError(f"{host} has no address")
