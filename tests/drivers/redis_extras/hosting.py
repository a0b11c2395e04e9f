"""A worker on a real server, whose handlers wait until they are let go, and what was reported."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import tenure
from tenure.errors import StoreUnavailable

__all__ = ["Host", "hosting", "until"]


class Host:
    def __init__(self, queue: tenure.Queue) -> None:
        self.queue = queue
        self.go = asyncio.Event()
        self.started: list[int] = []
        self.interrupted: list[int] = []
        self.finished: list[int] = []
        self.errors: list[tenure.QueueError] = []

    async def gated(self, number: int) -> int:
        self.started.append(number)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.interrupted.append(number)
            raise
        self.finished.append(number)
        return number

    async def quick(self, number: int) -> int:
        self.started.append(number)
        return number

    async def failing(self, number: int) -> int:
        self.started.append(number)
        await self.go.wait()
        raise ValueError(number)

    async def collect(self, handle: tenure.WorkerHandle) -> None:
        async for error in handle.errors():
            self.errors.append(error)

    async def dispatch(self, name: str, numbers: range, **options: Any) -> list[tenure.JobHandle]:
        return [await self.queue.dispatch(name, number, **options) for number in numbers]

    async def running(self, count: int) -> None:
        async def started() -> bool:
            return len(self.started) >= count

        await until(started)

    async def completed(self, count: int) -> None:
        async def counted() -> bool:
            try:
                return (await self.queue.counts()).completed == count
            except StoreUnavailable:
                return False

        await until(counted)

    async def reported(self, kind: type[tenure.QueueError]) -> list[tenure.QueueError]:
        """The errors of that kind, as soon as there are any."""

        async def any_of_them() -> bool:
            return any(isinstance(error, kind) for error in self.errors)

        await until(any_of_them)
        return [error for error in self.errors if isinstance(error, kind)]


async def until(holds: Callable[[], Awaitable[bool]], seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not await holds():  # noqa: ASYNC110  # nothing tells of it
            await asyncio.sleep(0.02)


@asynccontextmanager
async def hosting(
    url: str,
    namespace: str | None = None,
    lease: float = 30.0,
    concurrency: int = 8,
    retry: tenure.RetryPolicy | None = None,
    **options: Any,
) -> AsyncGenerator[Host]:
    async with tenure.connect(url, namespace=namespace or uuid4().hex, **options) as queue:
        host = Host(queue)
        worker = tenure.Worker(queue, concurrency=concurrency, lease=lease)
        worker.register("gated", host.gated)
        worker.register("quick", host.quick)
        worker.register("failing", host.failing, retry=retry)
        handle = worker.run()
        collecting = asyncio.ensure_future(host.collect(handle))
        try:
            yield host
        finally:
            host.go.set()
            await handle.shutdown(5.0)
            await collecting
