# /// script
# requires-python = ">=3.11"
# dependencies = ["chancy==0.26.0", "psycopg[binary]"]
# [tool.bench]
# package = "chancy"
# stores = ["postgres"]
# settings = "the executor for asyncio, eager_polling, polling_interval 1 s (default 5)"
# ///
"""chancy: an asyncio queue on PostgreSQL, through psycopg.

`eager_polling` looks for jobs as soon as one has ended. Outcomes are written once a second.
Finished jobs are kept, as they are by default. The store counts both kinds.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from chancy import Chancy, Job, Queue, Worker

from benchmarks.protocol.client import Client, Count, Setting
from benchmarks.protocol.serving import Handlers, serve

MODULE = "benchmarks.peers.chancy"
COUNT = """
SELECT count(*) FILTER (WHERE state IN ('pending', 'running', 'retrying')) AS unfinished,
       count(*) FILTER (WHERE state = 'succeeded') AS finished
FROM chancy_jobs
"""
given: dict[str, Callable[[Any], Any]] = {}


async def nothing(argument: Any) -> None:
    await given["nothing"](argument)


async def nap(argument: Any) -> None:
    await given["nap"](argument)


async def delay(argument: Any) -> None:
    await given["delay"](argument)


def job(handler: str, argument: object) -> Job:
    return Job(func=f"{MODULE}.{handler}", kwargs={"argument": argument})


class ChancyClient(Client):
    def __init__(self, setting: Setting) -> None:
        self._chancy = Chancy(setting.url)

    async def open(self) -> None:
        await self._chancy.__aenter__()
        await self._chancy.migrate()

    async def dispatch(self, handler: str, argument: object) -> None:
        await self._chancy.push(job(handler, argument))

    async def dispatch_many(self, handler: str, arguments: Sequence[object]) -> None:
        async for _ in self._chancy.push_many([job(handler, each) for each in arguments]):
            pass

    async def count(self) -> Count:
        async with self._chancy.pool.connection() as connection:
            row: Any = await (await connection.execute(COUNT)).fetchone()
        unfinished, finished = row.values() if isinstance(row, dict) else row
        return Count(unfinished=unfinished, finished=finished)


async def run(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    from benchmarks.peers import chancy as loaded  # as jobs name it; this program is __main__

    loaded.given.update(handlers)
    async with Chancy(setting.url) as app:
        queue = Queue(
            "default",
            concurrency=setting.concurrency,
            executor=Chancy.Executor.Async,
            polling_interval=1,
            eager_polling=True,
        )
        await app.declare(queue, upsert=True)
        start()
        async with Worker(app) as worker:
            await worker.wait_for_shutdown()


def work(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    asyncio.run(run(setting, handlers, start))


if __name__ == "__main__":
    serve(client=ChancyClient, work=work)
