"""Calls that go on whoever waits for them, and calls of one kind that share a round trip.

A call that was sent is never cancelled: its answer would be lost and its connection with it. Every
task here is owned, and awaited or cancelled by `close`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from tenure.errors import StoreError, StoreUnavailable

__all__ = ["Calls", "Sharing"]

T = TypeVar("T")
A = TypeVar("A")


class Calls:
    """The calls in flight of one event loop."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, call: Coroutine[Any, Any, T]) -> T:
        """The result of the call; a caller that is cancelled leaves it running."""
        return await asyncio.shield(self.start(call))

    def start(self, call: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Begin a call without waiting for it."""
        task = asyncio.get_running_loop().create_task(call)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def settle(self, timeout: float) -> None:
        """Wait for all of them, for so long at most."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout)

    async def cancel(self) -> None:
        """End those that are left."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _Waiting(Struct, Generic[T, A]):
    """A caller, with what it brought."""

    item: T
    keys: frozenset[str]
    answer: "asyncio.Future[A]"


class Sharing(Generic[T, A]):
    """Runs one batch at a time; callers that come meanwhile make up the next one.

    No timer: a caller that comes alone is served at once. `run` takes several items and answers
    them positionally, or None where it did nothing because they do not fit together; they are then
    run one by one, as they are where it failed. Items that share a key never come together.
    """

    def __init__(
        self, calls: Calls, run: Callable[[Sequence[T]], Awaitable[Sequence[A] | None]], most: int
    ) -> None:
        self._calls = calls
        self._run = run
        self._most = most
        self._waiting: list[_Waiting[T, A]] = []
        self._running = False

    async def call(self, item: T, keys: frozenset[str]) -> A:
        """The answer to one item. A caller that is cancelled before its batch runs is left out."""
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(item, keys, answer))
        if not self._running:
            self._running = True
            self._calls.start(self._work())
        return await answer

    async def _work(self) -> None:
        try:
            while batch := self._next():
                await self._serve(batch)
        finally:
            self._running = False
            for left in self._waiting:
                if not left.answer.done():
                    left.answer.set_exception(StoreUnavailable("the store was closed"))
            self._waiting.clear()

    def _next(self) -> list[_Waiting[T, A]]:
        """The callers that go together now, in the order in which they came."""
        batch: list[_Waiting[T, A]] = []
        later: list[_Waiting[T, A]] = []
        keys: set[str] = set()
        for each in self._waiting:
            if each.answer.done():
                continue
            fits = not batch or (len(keys) + len(each.keys) <= self._most)
            if later or not fits or not keys.isdisjoint(each.keys):
                later.append(each)
            else:
                batch.append(each)
                keys |= each.keys
        self._waiting = later
        return batch

    async def _serve(self, batch: Sequence[_Waiting[T, A]]) -> None:
        try:
            answers = await self._run([each.item for each in batch])
        except StoreError as error:
            # What may have been done is not done again here; nor is what cannot be done at all.
            if len(batch) == 1 or isinstance(error, StoreUnavailable):
                for each in batch:
                    _fail(each.answer, error)
                return
            answers = None
        except BaseException:
            for each in batch:
                _fail(each.answer, StoreUnavailable("the store was closed", ambiguous=True))
            raise
        if answers is not None:
            for each, answer in zip(batch, answers, strict=True):
                if not each.answer.done():
                    each.answer.set_result(answer)
            return
        for each in batch:
            await self._serve([each])


def _fail(answer: "asyncio.Future[Any]", error: StoreError) -> None:
    if answer.done():
        return
    answer.set_exception(error)
    answer.exception()  # a caller that was cancelled will not fetch it, which is no mistake
