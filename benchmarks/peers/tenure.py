# /// script
# requires-python = ">=3.11"
# dependencies = []
# [tool.bench]
# package = "tenure"
# stores = ["sqlite", "redis", "postgres"]
# settings = "the defaults"
# ///
"""tenure itself, through the same protocol as its peers, from the environment of the suite.

Nothing is set but the concurrency. Completed jobs are kept, as they are by default.
"""

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence

import tenure
from benchmarks.protocol.client import Client, Count, Setting
from benchmarks.protocol.serving import Handlers, serve


def connect(setting: Setting) -> tenure.Queue:
    if setting.store == "sqlite":
        return tenure.connect(f"sqlite:///{setting.url}", synchronous=setting.durability)
    return tenure.connect(setting.url)


class TenureClient(Client):
    def __init__(self, setting: Setting) -> None:
        self._queue = connect(setting)

    async def open(self) -> None:
        await self._queue

    async def dispatch(self, handler: str, argument: object) -> None:
        await self._queue.dispatch(handler, argument)

    async def dispatch_many(self, handler: str, arguments: Sequence[object]) -> None:
        await self._queue.dispatch_many([tenure.Call(handler, each) for each in arguments])

    async def count(self) -> Count:
        counts = await self._queue.counts()
        if counts.failed or counts.cancelled:
            raise RuntimeError(f"{counts.failed} failed, {counts.cancelled} cancelled")
        unfinished = counts.pending + counts.scheduled + counts.blocked + counts.processing
        return Count(unfinished=unfinished, finished=counts.completed)


async def run(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with connect(setting) as queue:
        worker = tenure.Worker(queue, concurrency=setting.concurrency)
        for name, handler in handlers.items():
            worker.register(name, handler)
        start()
        async with worker.run() as handle:
            await ended.wait()
            error = await handle.shutdown()
    if error is not None:
        sys.exit(f"the worker reported {error!r}")


def work(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    asyncio.run(run(setting, handlers, start))


if __name__ == "__main__":
    serve(client=TenureClient, work=work)
