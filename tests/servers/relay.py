"""A network of our own before a server: it can fall silent, forget connections, and end them."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

__all__ = ["Relay", "relaying"]


class Relay:
    """Passes on what clients and the server say to each other; runs on the loop of the test.

    `target` is the port to which new connections lead. With `closing` set, who connects is accepted
    and sent away at once. `accepted` counts the connections made so far.
    """

    def __init__(self, target: int) -> None:
        self.port = 0
        self.accepted = 0
        self.closing = False
        self.target = target
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._forgotten: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Nobody is there any more; `start` brings it back on the same port."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        self.cut()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def cut(self) -> None:
        """End all connections; new ones can be made."""
        for task in self._tasks:
            task.cancel()

    def forget(self) -> None:
        """From now on the connections that there are carry nothing, and nobody is told."""
        self._forgotten |= self._writers

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        if self.closing:
            writer.close()
        else:
            self._spawn(self._pass_both(reader, writer))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _pass_both(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        try:
            with suppress(OSError):
                from_server, to_server = await asyncio.open_connection("127.0.0.1", self.target)
                writers.append(to_server)
                self._writers.update(writers)
                back = self._spawn(self._pass(from_server, writer))
                try:
                    await self._pass(reader, to_server)
                finally:
                    back.cancel()
        finally:
            for each in writers:
                each.close()
            self._writers.difference_update(writers)
            self._forgotten.difference_update(writers)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if writer not in self._forgotten:
                    writer.write(data)
                    await writer.drain()
        writer.close()


@asynccontextmanager
async def relaying(target: int) -> AsyncGenerator[Relay]:
    """A relay to that port, which is taken down afterwards."""
    relay = Relay(target)
    await relay.start()
    try:
        yield relay
    finally:
        await relay.stop()
