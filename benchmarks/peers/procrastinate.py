# /// script
# requires-python = ">=3.11"
# dependencies = ["procrastinate==3.10.0", "psycopg[binary]"]
# [tool.bench]
# package = "procrastinate"
# stores = ["postgres"]
# settings = "a pool of 10 connections, psycopg's binary; bulk: batch_defer_async of 1000"
# ///
"""procrastinate: an asyncio queue on PostgreSQL, in functions and triggers, through psycopg.

Finished jobs are kept, as they are by default. The store counts both kinds.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from procrastinate import App, PsycopgConnector

from benchmarks.protocol.client import Client, Count, Setting
from benchmarks.protocol.serving import Handlers, serve

NAMES = ("nothing", "nap", "delay")
CHUNK = 1000
COUNT = """
SELECT count(*) FILTER (WHERE status IN ('todo', 'doing')) AS unfinished,
       count(*) FILTER (WHERE status = 'succeeded') AS finished
FROM procrastinate_jobs
"""


def application(setting: Setting) -> App:
    return App(connector=PsycopgConnector(conninfo=setting.url, min_size=4, max_size=10))


async def unknown(argument: Any) -> None:
    raise AssertionError("a client runs nothing")


class ProcrastinateClient(Client):
    def __init__(self, setting: Setting) -> None:
        self._app = application(setting)
        self._tasks = {name: self._app.task(name=name)(unknown) for name in NAMES}

    async def open(self) -> None:
        await self._app.open_async()
        await self._app.schema_manager.apply_schema_async()

    async def dispatch(self, handler: str, argument: object) -> None:
        await self._tasks[handler].defer_async(argument=argument)

    async def dispatch_many(self, handler: str, arguments: Sequence[object]) -> None:
        for first in range(0, len(arguments), CHUNK):
            chunk = [{"argument": argument} for argument in arguments[first : first + CHUNK]]
            await self._tasks[handler].batch_defer_async(*chunk)

    async def count(self) -> Count:
        row = await self._app.connector.execute_query_one_async(COUNT)
        return Count(unfinished=row["unfinished"], finished=row["finished"])


async def run(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    app = application(setting)
    for name, handler in handlers.items():
        app.task(name=name)(taking_a_keyword(handler))
    async with app.open_async():
        start()
        await app.run_worker_async(concurrency=setting.concurrency)


def taking_a_keyword(handler: Callable[[Any], Any]) -> Callable[..., Any]:
    async def wrapped(argument: Any) -> None:
        await handler(argument)

    return wrapped


def work(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    asyncio.run(run(setting, handlers, start))


if __name__ == "__main__":
    serve(client=ProcrastinateClient, work=work)
