"""`tenure top`: what happens in a store, look after look, until somebody has seen enough."""

import asyncio
import logging
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import click

from tenure.cli.asked import Asked, asked, shared
from tenure.cli.exits import Exit
from tenure.cli.looks import Look, Looks
from tenure.cli.opening import Patience, on_store
from tenure.cli.panes import Line, pane
from tenure.cli.screens import Screen, is_terminal
from tenure.cli.shows import document, document_line
from tenure.cli.values import duration
from tenure.errors import StoreError
from tenure.queue import Queue

__all__ = ["rest", "top"]

_ANSWER = 3.0  # seconds that a store may take for one look
_SHORTEST = 0.1
_SHARE = 9.0  # of a look's time is the least until the next one
_WIDE = 160  # columns where there is no terminal that has fewer


@click.command("top")
@click.option(
    "--interval", type=duration, default="1s", metavar="DURATION", help="Between two looks; 1s."
)
@click.option("--once", is_flag=True, help="Print one frame, with its rates, and end.")
@shared
def top(interval: float, once: bool) -> int:
    """Watch the queues, workers and latest failures of the store.

    On a terminal it draws until q or Ctrl-C; elsewhere it prints a frame after each interval, with
    --json a document in each line. A store that stops answering is waited for.
    """
    if interval < _SHORTEST:
        raise click.BadParameter(f"must be at least {_SHORTEST:g} s", param_hint="--interval")
    told = asked()
    if once:
        look = on_store(told, lambda store, patience: _twice(store, patience, interval))
        if told.json:
            document(look)
        else:
            _print(look, told)
        return Exit.DONE
    if told.json or not is_terminal():
        return on_store(told, lambda store, patience: _print_each(store, patience, interval, told))
    if not told.debug:
        logging.getLogger("tenure").setLevel(logging.CRITICAL)  # it would write over the frame
    return on_store(told, lambda store, patience: _Live(store, interval, told).run(patience))


def rest(interval: float, took: float) -> float:
    """Seconds until the next look: so many that a store spends a tenth of its time on them."""
    return max(interval, _SHARE * took)


async def _twice(store: Queue, patience: Patience, interval: float) -> Look:
    """The second of two looks, which knows the rates."""
    looks = Looks(store)
    await looks.take()
    patience.end()
    await store.clock.sleep(interval)
    async with asyncio.timeout(_ANSWER):
        return await looks.take()


def _print(look: Look, told: Asked) -> None:
    for line in pane(look, where=told.shown(), trouble="", width=_WIDE, height=None):
        click.echo(line.text)


async def _print_each(store: Queue, patience: Patience, interval: float, told: Asked) -> int:
    """Print look after look; the first has to come off, and later ones are told of."""
    watching = _Watching(store)
    await watching.begin(patience)
    while True:
        if watching.trouble:
            click.echo(f"{watching.trouble}; tried again in {interval:g} s", err=True)
        elif told.json:
            document_line(watching.last)
        else:
            _print(watching.last, told)
            click.echo()
        await store.clock.sleep(rest(interval, watching.took))
        await watching.look()


class _Watching:
    """The last look that came off, and what has kept others from coming off since."""

    def __init__(self, store: Queue) -> None:
        self._looks = Looks(store)
        self._seen: Look | None = None
        self.trouble: str = ""
        self.took = 0.0  # seconds of a look that came off
        self._clock = store.clock

    @property
    def last(self) -> Look:
        assert self._seen is not None
        return self._seen

    async def begin(self, patience: Patience) -> None:
        """The first look, which has to come off in time."""
        self._seen = await self._looks.take()
        patience.end()

    async def look(self) -> None:
        """Look again. An outage is told and not raised."""
        began, self.took = self._clock.monotonic(), 0.0
        try:
            async with asyncio.timeout(_ANSWER):
                self._seen = await self._looks.take()
        except TimeoutError:
            self.trouble = f"the store has not answered for {_ANSWER:g} s"
        except StoreError as error:
            self.trouble = f"the store cannot be looked at: {error}"
        else:
            self.trouble, self.took = "", self._clock.monotonic() - began


class _Live:
    """Draws on a terminal until it is told to end."""

    def __init__(self, store: Queue, interval: float, told: Asked) -> None:
        self._store = store
        self._interval = interval
        self._where = f"q ends; every {interval:g} s; {told.shown()}"
        self._watching = _Watching(store)
        self._screen = Screen()
        self._end: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()

    async def run(self, patience: Patience) -> Exit:
        """The first look has to come off before the terminal is taken."""
        await self._watching.begin(patience)
        with self._screen, self._heard():
            self._draw()
            while not await self._store.clock.wait(self._end, self._rest()):
                looking = asyncio.create_task(self._watching.look())
                either: set[asyncio.Future[Any]] = {looking, self._end}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if self._end.done():
                    looking.cancel()
                    await asyncio.wait([looking])
                else:
                    self._draw()
        return self._end.result()

    def _rest(self) -> float:
        return rest(self._interval, self._watching.took)

    def _draw(self) -> None:
        look, trouble = self._watching.last, self._watching.trouble
        width, height = self._screen.size()
        told = f"{trouble}; this is of {look.at:%H:%M:%S}Z, tried again" if trouble else ""
        self._screen.draw(
            pane(look, where=self._where, trouble=told, width=width, height=height)
            if height > 1
            else [Line(told[:width] or f"{look.all.waiting:,} waiting"[:width])]
        )

    # --- keys and signals -----------------------------------------------------------------------

    @contextmanager
    def _heard(self) -> Generator[None]:
        """Hear keys and signals on the running loop."""
        loop, keys = asyncio.get_running_loop(), self._screen.keys
        heard = {
            signal.SIGINT: lambda: self._ended(Exit.INTERRUPTED),
            signal.SIGTERM: lambda: self._ended(Exit.INTERRUPTED),
            signal.SIGHUP: lambda: self._ended(Exit.INTERRUPTED),
            signal.SIGWINCH: self._draw,
            signal.SIGTSTP: self._suspended,
        }
        for number, told in heard.items():
            loop.add_signal_handler(number, told)
        if keys is not None:
            loop.add_reader(keys, self._pressed, keys)
        try:
            yield
        finally:
            if keys is not None:
                loop.remove_reader(keys)
            for number in heard:
                loop.remove_signal_handler(number)

    def _ended(self, code: Exit) -> None:
        if not self._end.done():
            self._end.set_result(code)

    def _pressed(self, keys: int) -> None:
        try:
            pressed = os.read(keys, 64)
        except OSError:  # the terminal is gone
            pressed = b""
        if not pressed or pressed[:1] in b"qQ":
            self._ended(Exit.DONE if pressed else Exit.INTERRUPTED)

    def _suspended(self) -> None:
        """Ctrl-Z: the shell gets its terminal as it was, and has it until it lets us go on."""
        self._screen.give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._screen.take()
        self._draw()
