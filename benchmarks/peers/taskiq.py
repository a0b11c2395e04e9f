# /// script
# requires-python = ">=3.11"
# dependencies = ["taskiq==0.13.0", "taskiq-redis==1.2.4", "redis[hiredis]"]
# [tool.bench]
# package = "taskiq"
# stores = ["redis"]
# settings = "list broker, max_prefetch = max_async_tasks, parameters not validated, hiredis"
# ///
"""taskiq: an asyncio queue with many brokers, here the one on a Redis list.

`max_prefetch` lets as many messages wait in the worker as run; parameters are not validated, and
results go nowhere, which is the default. A message is gone from the list as soon as a worker has
it, so the store counts only what no worker took.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from taskiq.api import run_receiver_task
from taskiq_redis import ListQueueBroker

from benchmarks.protocol.client import Client, Count, Setting
from benchmarks.protocol.serving import Handlers, serve

QUEUE = "bench"
NAMES = ("nothing", "nap", "delay")


async def unknown(argument: Any) -> None:
    raise AssertionError("a client runs nothing")


class TaskiqClient(Client):
    bulk = False

    def __init__(self, setting: Setting) -> None:
        self._broker = ListQueueBroker(setting.url, queue_name=QUEUE)
        self._tasks = {name: self._broker.register_task(unknown, name) for name in NAMES}

    async def open(self) -> None:
        await self._broker.startup()

    async def dispatch(self, handler: str, argument: object) -> None:
        await self._tasks[handler].kiq(argument)

    async def count(self) -> Count:
        from redis.asyncio import Redis

        async with Redis(connection_pool=self._broker.connection_pool) as client:
            return Count(unfinished=await client.llen(QUEUE), finished=None)


async def run(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    broker = ListQueueBroker(setting.url, queue_name=QUEUE)
    for name, handler in handlers.items():
        broker.register_task(handler, name)
    start()
    await run_receiver_task(
        broker,
        max_async_tasks=setting.concurrency,
        max_prefetch=setting.concurrency,
        validate_params=False,
        run_startup=True,
    )


def work(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    asyncio.run(run(setting, handlers, start))


if __name__ == "__main__":
    serve(client=TaskiqClient, work=work)
