# /// script
# requires-python = ">=3.11"
# dependencies = ["pgqueuer[asyncpg]==1.6.0"]
# [tool.bench]
# package = "pgqueuer"
# stores = ["postgres"]
# settings = "batch_size = concurrency, tasks unbounded; asyncpg, a pool of 4 to 10 for dispatches"
# ///
"""pgqueuer: an asyncio queue on PostgreSQL, through asyncpg.

Batches are as large as the concurrency that is measured, and what runs at once is not bounded,
which is its default: with `max_concurrent_tasks` at that concurrency it drains half as fast. A
worker has one connection, as in its guide. Finished jobs move to a log that it sums up by itself,
so the store counts what is left.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from benchmarks.protocol.client import Client, Count, Setting
from benchmarks.protocol.serving import Handlers, serve


class PgqueuerClient(Client):
    def __init__(self, setting: Setting) -> None:
        self._url = setting.url

    async def open(self) -> None:
        self._pool = await asyncpg.create_pool(self._url, min_size=4, max_size=10)
        self._queries = Queries(AsyncpgPoolDriver(self._pool))
        await self._queries.install()

    async def dispatch(self, handler: str, argument: object) -> None:
        await self._queries.enqueue(handler, json.dumps(argument).encode())

    async def dispatch_many(self, handler: str, arguments: Sequence[object]) -> None:
        payloads = [json.dumps(argument).encode() for argument in arguments]
        await self._queries.enqueue([handler] * len(payloads), payloads, [0] * len(payloads))

    async def count(self) -> Count:
        left = await self._pool.fetchval("SELECT count(*) FROM pgqueuer")
        return Count(unfinished=left, finished=None)


def taking_a_job(handler: Callable[[Any], Any]) -> Callable[[Job], Any]:
    async def wrapped(job: Job) -> None:
        await handler(json.loads(job.payload or b"null"))

    return wrapped


async def run(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    connection = await asyncpg.connect(setting.url)
    queue = PgQueuer.from_asyncpg_connection(connection)
    for name, handler in handlers.items():
        queue.entrypoint(name)(taking_a_job(handler))
    start()
    await queue.run(batch_size=setting.concurrency)


def work(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    asyncio.run(run(setting, handlers, start))


if __name__ == "__main__":
    serve(client=PgqueuerClient, work=work)
