# /// script
# requires-python = ">=3.11"
# dependencies = ["bullmq==3.4.4", "redis[hiredis]"]
# [tool.bench]
# package = "bullmq"
# stores = ["redis"]
# settings = "removeOnComplete; bulk: addBulk of 1000; hiredis"
# ///
"""bullmq: the Python port of the Node queue, on Redis with Lua scripts.

Finished jobs are removed. A job is in a list or a sorted set in each of its states, so the store
counts what is left.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from bullmq import Queue, Worker

from benchmarks.protocol.client import Client, Count, Setting
from benchmarks.protocol.serving import Handlers, serve

QUEUE = "bench"
OPTIONS = {"removeOnComplete": True}
CHUNK = 1000


class BullmqClient(Client):
    def __init__(self, setting: Setting) -> None:
        self._url = setting.url

    async def open(self) -> None:
        self._queue = Queue(QUEUE, {"connection": self._url})

    async def dispatch(self, handler: str, argument: object) -> None:
        await self._queue.add(handler, {"argument": argument}, OPTIONS)

    async def dispatch_many(self, handler: str, arguments: Sequence[object]) -> None:
        jobs = [{"name": handler, "data": {"argument": a}, "opts": OPTIONS} for a in arguments]
        for first in range(0, len(jobs), CHUNK):
            await self._queue.addBulk(jobs[first : first + CHUNK])

    async def count(self) -> Count:
        left = await self._queue.getJobCounts("waiting", "active", "delayed", "failed")
        return Count(unfinished=sum(left.values()), finished=None)


async def run(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    async def process(job: Any, _: str) -> None:
        await handlers[job.name](job.data["argument"])

    start()
    Worker(QUEUE, process, {"connection": setting.url, "concurrency": setting.concurrency})
    await asyncio.Event().wait()


def work(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    asyncio.run(run(setting, handlers, start))


if __name__ == "__main__":
    serve(client=BullmqClient, work=work)
