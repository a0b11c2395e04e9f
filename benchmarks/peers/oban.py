# /// script
# requires-python = ">=3.12"
# dependencies = ["oban==0.7.0"]
# [tool.bench]
# package = "oban"
# stores = ["postgres"]
# settings = "a pool of 4 to 10 connections; bulk: enqueue_many of 1000"
# ///
"""oban: the Python port of the Elixir queue, on PostgreSQL through psycopg.

Needs Python 3.12, so it may run on a newer one than the others. Finished jobs are kept for a day,
as they are by default. The store counts both kinds.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from oban import Oban, worker
from oban.schema import install

from benchmarks.protocol.client import Client, Count, Setting
from benchmarks.protocol.serving import Handlers, serve

CHUNK = 1000
COUNT = """
SELECT count(*) FILTER (WHERE state IN ('available', 'executing', 'scheduled', 'retryable')),
       count(*) FILTER (WHERE state = 'completed')
FROM oban_jobs
"""
given: dict[str, Callable[[Any], Any]] = {}


@worker(queue="default")
class Nothing:
    async def process(self, job: Any) -> None:
        await given["nothing"](job.args["argument"])


@worker(queue="default")
class Nap:
    async def process(self, job: Any) -> None:
        await given["nap"](job.args["argument"])


@worker(queue="default")
class Delay:
    async def process(self, job: Any) -> None:
        await given["delay"](job.args["argument"])


WORKERS: dict[str, Any] = {"nothing": Nothing, "nap": Nap, "delay": Delay}


class ObanClient(Client):
    def __init__(self, setting: Setting) -> None:
        self._url = setting.url

    async def open(self) -> None:
        self._pool = await Oban.create_pool(self._url, min_size=4, max_size=10)
        await install(self._pool)
        self._oban = Oban(pool=self._pool)
        await self._oban.start()

    async def dispatch(self, handler: str, argument: object) -> None:
        await self._oban.enqueue(WORKERS[handler].new({"argument": argument}))

    async def dispatch_many(self, handler: str, arguments: Sequence[object]) -> None:
        for first in range(0, len(arguments), CHUNK):
            chunk = arguments[first : first + CHUNK]
            new = WORKERS[handler].new
            await self._oban.enqueue_many([new({"argument": argument}) for argument in chunk])

    async def count(self) -> Count:
        async with self._pool.connection() as connection:
            unfinished, finished = await (await connection.execute(COUNT)).fetchone()
        return Count(unfinished=unfinished, finished=finished)


async def run(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    given.update(handlers)
    pool = await Oban.create_pool(setting.url, min_size=4, max_size=10)
    start()
    async with Oban(pool=pool, queues={"default": setting.concurrency}):
        await asyncio.Event().wait()


def work(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    asyncio.run(run(setting, handlers, start))


if __name__ == "__main__":
    serve(client=ObanClient, work=work)
