"""A small HTTP server for probes: GET and HEAD of a few paths, one request for each connection.

Bounded in all that a client can do: the size of a request, the time of a whole exchange, the number
of connections, of which the oldest gives way. It never reads a body and never keeps a connection.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus

__all__ = ["Answer", "Page", "Server"]

_LARGEST = 8192  # bytes of a request with its headers
_LONGEST = 5.0  # seconds of a whole exchange
_MOST = 64  # connections
_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a page answers."""

    status: HTTPStatus
    body: bytes
    kind: str = _TEXT


Page = Callable[[], Awaitable[Answer]]


class Server:
    """Serves pages by their paths, on one event loop."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], None] = {}  # the oldest first

    async def start(self, listening: socket.socket) -> None:
        """Serve what connects to a socket that listens already."""
        self._server = await asyncio.start_server(self._begin, sock=listening, limit=_LARGEST)

    async def close(self) -> None:
        """Serve nobody any more, and cut who is still there."""
        if self._server is not None:
            self._server.close()
        cut = list(self._open)
        for task in cut:
            task.cancel()
        if cut:
            await asyncio.wait(cut)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= _MOST:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.cancel()
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._open[task] = None
        task.add_done_callback(lambda done: self._end(done, writer))

    def _end(self, done: "asyncio.Task[None]", writer: asyncio.StreamWriter) -> None:
        """Cut a connection, also one whose task was cancelled before its first step."""
        self._open.pop(done, None)
        writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_LONGEST):
                await self._exchange(reader, writer)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            answer, head = _plain(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE), False
        else:
            answer, head = await self._answer(request)
        writer.write(_written(answer, head=head))
        await writer.drain()
        writer.write_eof()
        while await reader.read(_LARGEST):  # until the client closes: else it may lose the answer
            pass

    async def _answer(self, request: bytes) -> tuple[Answer, bool]:
        """The answer, and whether only its head is wanted."""
        line = request.partition(b"\r\n")[0].split(b" ")
        if len(line) != 3 or not line[2].startswith(b"HTTP/1."):
            return _plain(HTTPStatus.BAD_REQUEST), False
        method, target, _ = line
        if method not in (b"GET", b"HEAD"):
            return _plain(HTTPStatus.METHOD_NOT_ALLOWED), False
        page = self._pages.get(target.partition(b"?")[0].decode("latin-1"))
        if page is None:
            paths = ", ".join(self._pages)
            return _plain(HTTPStatus.NOT_FOUND, f"there are {paths}"), method == b"HEAD"
        return await page(), method == b"HEAD"


def _plain(status: HTTPStatus, text: str = "") -> Answer:
    return Answer(status=status, body=f"{text or status.phrase}\n".encode())


def _written(answer: Answer, *, head: bool) -> bytes:
    lines = [
        f"HTTP/1.1 {answer.status} {answer.status.phrase}",
        f"Content-Type: {answer.kind}",
        f"Content-Length: {len(answer.body)}",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    if answer.status is HTTPStatus.METHOD_NOT_ALLOWED:
        lines.append("Allow: GET, HEAD")
    text = "\r\n".join([*lines, "", ""]).encode("latin-1")
    return text if head else text + answer.body
