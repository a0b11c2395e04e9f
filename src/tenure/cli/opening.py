"""Runs what a command does on its store, and gives up soon where there is no answer.

A library may be patient for a worker's sake; who sits at a terminal wants to know. Never repeats
anything by itself. A store that is not there is made only by what stores something new: whoever
looks after one and has mistyped its name wants to know that, too.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

from tenure.cli.asked import Asked
from tenure.clock import SystemClock
from tenure.drivers.schemas import is_there
from tenure.errors import StoreUnavailable
from tenure.queue import Queue, connect

__all__ = ["NoStore", "Patience", "in_time", "on_new_store", "on_store"]

T = TypeVar("T")

# Seconds without an answer. With the start and the end of the process it is to be less than five,
# on a busy machine too, which takes a second or two to start it.
_OPENING = 2.5
_PATIENCE = 3.0
_CLOSING = 0.5
_LOCKED = 2.0  # for another process that holds the write lock of a file


class Patience:
    """How long a command waits for its store. Work of many steps renews it after each."""

    def __init__(self, limit: asyncio.Timeout) -> None:
        self._limit = limit
        self._began = asyncio.get_running_loop().time()
        self.opened: bool = False  # so that a call may have been done whose answer is lost

    def looked(self) -> None:
        """There is a store: opening it may take as long again."""
        self._began = asyncio.get_running_loop().time()
        self._limit.reschedule(self._began + _OPENING)

    def begin(self) -> None:
        """The store is open: the first step has what is left."""
        self.opened = True
        self._limit.reschedule(self._began + _PATIENCE)

    def renew(self, _: int = 0) -> None:
        """There was an answer: wait as long again for the next."""
        self._limit.reschedule(asyncio.get_running_loop().time() + _PATIENCE)

    def end(self) -> None:
        """Work that has no end from now on, and looks after each of its steps by itself."""
        self._limit.reschedule(None)


class NoStore(StoreUnavailable):
    """The address leads to no store of ours."""


def on_store(asked: Asked, work: Callable[[Queue, Patience], Awaitable[T]]) -> T:
    """Open the store, do the work, close it.

    Raises what the work raises, `NoStore` where there is none, and `StoreUnavailable` after some
    seconds without an answer.
    """
    return asyncio.run(_on_store(asked.url, work, _look_first))


def on_new_store(asked: Asked, work: Callable[[Queue, Patience], Awaitable[T]]) -> T:
    """The same for work that stores something: the store is made where there is none."""
    return asyncio.run(_on_store(asked.url, work, _look_at_nothing))


async def _look_first(url: str) -> None:
    if not await is_there(url, SystemClock()):
        raise NoStore("there is no store of tenure at this address")


async def _look_at_nothing(_: str) -> None: ...


async def _on_store(
    url: str,
    work: Callable[[Queue, Patience], Awaitable[T]],
    look: Callable[[str], Awaitable[None]],
) -> T:
    queue = connect(_bounded(url))

    async def opened(patience: Patience) -> T:
        await look(url)
        patience.looked()
        await queue.driver()
        patience.begin()
        return await work(queue, patience)

    try:
        return await _with_patience(opened)
    finally:
        try:
            async with asyncio.timeout(_CLOSING):
                await queue.close()
        except TimeoutError:
            pass  # the process ends, and with it what is left


async def in_time(look: Callable[[], Awaitable[T]]) -> T:
    """What changes nothing, with the same patience."""
    return await _with_patience(lambda _: look())


async def _with_patience(work: Callable[[Patience], Awaitable[T]]) -> T:
    unsure = False
    try:
        async with asyncio.timeout(_OPENING) as limit:
            patience = Patience(limit)
            try:
                return await work(patience)
            finally:
                unsure = patience.opened
    except TimeoutError as error:
        raise StoreUnavailable(
            "the store has not answered for some seconds", ambiguous=unsure
        ) from error


def _bounded(url: str) -> str:
    """The URL with a bound that keeps a file's writers from being waited for too long."""
    parts = urlsplit(url)
    if parts.scheme != "sqlite" or "busy_timeout" in dict(parse_qsl(parts.query)) or "#" in url:
        return url
    return f"{url}{'&' if parts.query else '?'}busy_timeout={_LOCKED}"
