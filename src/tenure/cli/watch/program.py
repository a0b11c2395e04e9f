"""The part in the program that starts the worker processes: a thread that serves the health port.

It hears from the supervisor what becomes of the processes, asks them how they are, and tells who
asks and systemd. It never keeps the supervisor waiting, and opens no store.
"""

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from http import HTTPStatus
from types import TracebackType
from typing import Self

from tenure._processes.terms import Stage
from tenure.cli.notify import Notifier
from tenure.cli.watch.board import Board, Verdict
from tenure.cli.watch.http import Answer, Server
from tenure.cli.watch.lines import Line
from tenure.cli.watch.terms import Family
from tenure.clock import Clock

__all__ = ["Watching", "listening_on"]

_STATUS = 5.0  # seconds between two looks for `systemctl status`, at most
_UNTIL_READY = 0.25
_END = 5.0

Written = Callable[[Sequence[Family]], bytes]


def listening_on(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises `OSError`."""
    family, _, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    return socket.create_server((address[0], address[1]), family=family, backlog=128)


class Watching:
    """An `Onlooker`, and the thread behind it, for as long as it is entered.

    `listening` is the health port; `written` makes the text of metrics, None where there are none.
    """

    def __init__(
        self,
        wanted: int,
        clock: Clock,
        *,
        listening: socket.socket | None,
        written: Written | None,
        notifier: Notifier | None,
    ) -> None:
        self._wanted = wanted
        self._clock = clock
        self._listening = listening
        self._written = written
        self._notifier = notifier
        self._loop = asyncio.new_event_loop()
        self._over: asyncio.Event | None = None
        self._entered: Future[None] = Future()
        self._board: Board | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = self._clock.spawn("tenure-health", self._run)
        self._entered.result()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._thread is not None
        if self._over is not None:
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(_END)

    # --- what the supervisor tells, in its thread -------------------------------------------------

    def started(self, place: int, pid: int, line: socket.socket) -> None:
        self._loop.call_soon_threadsafe(self._begin, place, pid, line)

    def ready(self, place: int) -> None:
        self._tell(lambda board: board.ready(place))

    def ended(self, place: int) -> None:
        self._tell(lambda board: self._close(board.ended(place)))

    def asked(self, stage: Stage) -> None:
        self._tell(self._stop)

    def turned(self) -> None:
        if self._board is not None:
            self._board.turned()

    def _tell(self, what: Callable[[Board], None]) -> None:
        assert self._board is not None
        self._loop.call_soon_threadsafe(what, self._board)

    # --- in the thread --------------------------------------------------------------------------

    def _run(self) -> None:
        # Signals are the supervisor's, which waits for them in its own thread.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._work())

    async def _work(self) -> None:
        board = self._board = Board(self._wanted, self._clock)
        over = self._over = asyncio.Event()
        server = Server({"/livez": self._livez, "/readyz": self._readyz, "/metrics": self._metrics})
        if self._listening is not None:
            try:
                await server.start(self._listening)
            except OSError as error:
                self._entered.set_exception(error)
                return
        notifying = asyncio.create_task(self._notify(board))
        self._entered.set_result(None)
        try:
            await over.wait()
        finally:
            notifying.cancel()
            await asyncio.wait([notifying, *self._closing])
            await server.close()
            if self._notifier is not None:
                self._notifier.close()

    def _begin(self, place: int, pid: int, line: socket.socket) -> None:
        line.setblocking(False)
        assert self._board is not None
        self._board.started(Line(place, pid, line, self._clock, self._board.bury))

    def _close(self, line: Line | None) -> None:
        if line is not None:
            task = self._loop.create_task(line.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _stop(self, board: Board) -> None:
        board.stopping()
        if self._notifier is not None:
            self._notifier.stopping()

    # --- pages ----------------------------------------------------------------------------------

    async def _livez(self) -> Answer:
        verdict = await self._looked()
        return _answer(verdict.not_live, f"live: {_processes(verdict)}")

    async def _readyz(self) -> Answer:
        verdict = await self._looked()
        return _answer(verdict.not_ready, f"ready: {_processes(verdict)}")

    async def _metrics(self) -> Answer:
        if self._written is None:
            missing = b"there are no metrics: pip install 'tenure[metrics]'\n"
            return Answer(status=HTTPStatus.NOT_FOUND, body=missing)
        assert self._board is not None
        body = self._written(await self._board.families())
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return Answer(status=HTTPStatus.OK, body=body, kind=kind)

    async def _looked(self) -> Verdict:
        assert self._board is not None
        return await self._board.verdict()

    # --- systemd --------------------------------------------------------------------------------

    async def _notify(self, board: Board) -> None:
        notifier, told = self._notifier, False
        if notifier is None:
            return
        half = _STATUS if notifier.watchdog is None else notifier.watchdog / 2
        while True:
            began = self._clock.monotonic()
            verdict = await board.verdict()
            if verdict.some_ready and not told:
                notifier.ready()
                told = True
            notifier.status(_status(verdict))
            if notifier.watchdog is not None and not verdict.not_live:
                notifier.alive()
            pause = min(half, _STATUS if told else _UNTIL_READY)
            await self._clock.sleep(max(0.0, began + pause - self._clock.monotonic()))


def _answer(wrong: Sequence[str], well: str) -> Answer:
    status = HTTPStatus.SERVICE_UNAVAILABLE if wrong else HTTPStatus.OK
    return Answer(status=status, body="".join(f"{line}\n" for line in wrong or [well]).encode())


def _processes(verdict: Verdict) -> str:
    number = verdict.processes
    return f"{number} {'process' if number == 1 else 'processes'}"


def _status(verdict: Verdict) -> str:
    wrong = [*verdict.not_live, *verdict.not_ready]
    if wrong:
        return wrong[0].replace("\n", " ")
    return f"{_processes(verdict)}, {verdict.used} of {verdict.slots} slots in use"
