# /// script
# requires-python = ">=3.11"
# dependencies = ["arq==0.28.0"]
# [tool.bench]
# package = "arq"
# stores = ["redis"]
# settings = "poll_delay 10 ms (default 500), keep_result 0, queue_read_limit 5 x max_jobs"
# ///
"""arq: an asyncio queue on Redis that finds its jobs by polling a sorted set.

`poll_delay` 0.01 makes the idle pick-up 40 times shorter than the default and doubles the drain;
`keep_result` 0 spares a write for each job; `queue_read_limit` is arq's own default of five times
`max_jobs`, and at least 100. A job is finished when its key is gone, so the store counts what is
left.
"""

import asyncio
from collections.abc import Callable
from functools import wraps
from typing import Any

from arq import Worker, create_pool, func
from arq.connections import RedisSettings

from benchmarks.protocol.client import Client, Count, Setting
from benchmarks.protocol.serving import Handlers, serve


class ArqClient(Client):
    bulk = False

    def __init__(self, setting: Setting) -> None:
        self._settings = RedisSettings.from_dsn(setting.url)

    async def open(self) -> None:
        self._pool = await create_pool(self._settings)

    async def dispatch(self, handler: str, argument: object) -> None:
        await self._pool.enqueue_job(handler, argument)

    async def count(self) -> Count:
        # Waiting jobs and running ones alike stay in the queue, and keep their key.
        return Count(unfinished=await self._pool.zcard("arq:queue"), finished=None)


def taking_a_context(handler: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(handler)
    async def wrapped(_: dict[str, Any], argument: Any) -> None:
        await handler(argument)

    return wrapped


def work(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    asyncio.set_event_loop(asyncio.new_event_loop())
    worker = Worker(
        [
            func(taking_a_context(handler), name=name, keep_result=0)
            for name, handler in handlers.items()
        ],
        redis_settings=RedisSettings.from_dsn(setting.url),
        max_jobs=setting.concurrency,
        queue_read_limit=max(5 * setting.concurrency, 100),
        poll_delay=0.01,
        keep_result=0,
    )
    start()
    worker.run()


if __name__ == "__main__":
    serve(client=ArqClient, work=work)
