# /// script
# requires-python = ">=3.11"
# dependencies = ["streaq==7.2.0"]
# [tool.bench]
# package = "streaq"
# stores = ["redis"]
# settings = "ttl 0 (results are not kept); bulk: enqueue_many of 1000"
# ///
"""streaq: an asyncio queue on Redis streams, through coredis.

`ttl` 0 keeps no results. It prefetches as many tasks as run at once, by default. A task stays in
its stream until it is done, so the store counts what is left.
"""

from collections.abc import Callable, Sequence
from typing import Any

from streaq import Worker

from benchmarks.protocol.client import Client, Count, Setting
from benchmarks.protocol.serving import Handlers, serve

NAMES = ("nothing", "nap", "delay")
CHUNK = 1000


async def unknown(argument: Any) -> None:
    raise AssertionError("a client runs nothing")


class StreaqClient(Client):
    def __init__(self, setting: Setting) -> None:
        self._worker: Worker[Any] = Worker(setting.url)
        self._tasks = {name: self._worker.task(name=name, ttl=0)(unknown) for name in NAMES}

    async def open(self) -> None:
        await self._worker.__aenter__()

    async def dispatch(self, handler: str, argument: object) -> None:
        await self._tasks[handler].enqueue(argument)

    async def dispatch_many(self, handler: str, arguments: Sequence[object]) -> None:
        task = self._tasks[handler]
        for first in range(0, len(arguments), CHUNK):
            chunk = arguments[first : first + CHUNK]
            await self._worker.enqueue_many([task.enqueue(argument) for argument in chunk])

    async def count(self) -> Count:
        return Count(unfinished=await self._worker.queue_size(), finished=None)


def work(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    worker: Worker[Any] = Worker(setting.url, concurrency=setting.concurrency)
    for name, handler in handlers.items():
        worker.task(name=name, ttl=0)(handler)
    start()
    worker.run_sync()


if __name__ == "__main__":
    serve(client=StreaqClient, work=work)
