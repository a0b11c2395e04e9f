# /// script
# requires-python = ">=3.11"
# dependencies = ["saq[redis,postgres,hiredis]==0.26.4"]
# [tool.bench]
# package = "saq"
# stores = ["redis", "postgres"]
# settings = "ttl -1 (finished jobs are not kept), max_concurrent_ops 50, hiredis"
# ///
"""saq: an asyncio queue on Redis lists, or on a PostgreSQL table through psycopg.

`ttl` -1 deletes a job when it is done, which spares what keeping it costs; `max_concurrent_ops`
lets 50 dispatches through at once (default 20). On PostgreSQL its pool is the default, of 4 to 20
connections, and workers are woken by notifications (`poll_interval` 0, the default).
"""

import asyncio
from collections.abc import Callable
from typing import Any

from saq import Queue, Worker

from benchmarks.protocol.client import Client, Count, Setting
from benchmarks.protocol.serving import Handlers, serve


def connect(setting: Setting) -> Queue:
    if setting.store == "redis":
        return Queue.from_url(setting.url, max_concurrent_ops=50)
    return Queue.from_url(setting.url)


class SaqClient(Client):
    bulk = False

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    async def open(self) -> None:
        self._queue = connect(self._setting)
        await self._queue.connect()

    async def dispatch(self, handler: str, argument: object) -> None:
        await self._queue.enqueue(handler, argument=argument, ttl=-1)

    async def count(self) -> Count:
        return Count(unfinished=await self._queue.count("incomplete"), finished=None)


def taking_a_context(handler: Callable[[Any], Any]) -> Callable[..., Any]:
    async def wrapped(_: Any, *, argument: Any) -> None:
        await handler(argument)

    return wrapped


async def run(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    queue = connect(setting)
    await queue.connect()
    functions = [(name, taking_a_context(handler)) for name, handler in handlers.items()]
    worker = Worker(queue, functions, concurrency=setting.concurrency)
    start()
    await worker.start()


def work(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    asyncio.run(run(setting, handlers, start))


if __name__ == "__main__":
    serve(client=SaqClient, work=work)
