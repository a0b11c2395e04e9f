"""The raw limit of PostgreSQL: the driver's exchange back to back, on two connections.

The server works for one while the answer of the other is read; more connections do not help.
"""

import asyncio
import time
from collections.abc import Sequence

import tenure
from benchmarks.raw.batches import completed, new_jobs, request
from tenure.drivers.postgres import record
from tenure.drivers.postgres.client import Connection, connect
from tenure.drivers.postgres.heads import Heads
from tenure.drivers.postgres.rows import Row
from tenure.drivers.postgres.statements import Statements

__all__ = ["settle_all"]

_CONNECTIONS = 2
_FILL = 1000
_SCHEMA = "tenure"
_TIMEOUT = 60.0


class _OneConnection:
    """Runs statements by their names; what the driver's operations want of its pool."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._statements = Statements(_SCHEMA)

    async def fetch(self, statement: str, *arguments: object) -> list[Row]:
        text = self._statements.text(statement)
        return await self._connection.fetch(text, arguments, _TIMEOUT)


def settle_all(url: str, jobs: int, batch: int) -> float:
    """Jobs that are claimed and recorded in a second."""
    return asyncio.run(_settle_all(url, jobs, batch))


async def _settle_all(url: str, jobs: int, batch: int) -> float:
    async with tenure.connect(url, schema=_SCHEMA) as queue:
        driver = await queue.driver()
        for first in range(0, jobs, _FILL):
            await driver.enqueue(new_jobs(min(_FILL, jobs - first)))
    clock = tenure.SystemClock()
    connections = [await connect(url, clock, prepare=True) for _ in range(_CONNECTIONS)]
    try:
        began = time.perf_counter()
        settled = await asyncio.gather(*(_exchange(each, batch) for each in connections))
        seconds = time.perf_counter() - began
    finally:
        for connection in connections:
            await connection.close()
    if sum(settled) != jobs:
        raise AssertionError(f"{sum(settled)} of {jobs} jobs were settled")
    return jobs / seconds


async def _exchange(connection: Connection, batch: int) -> int:
    runner = _OneConnection(connection)
    heads = Heads(tenure.SystemClock())
    held: Sequence[tenure.Claim] = ()
    settled = 0
    while True:
        items = completed(held)
        _, claims = await record.exchange(runner, items, request(batch), None, heads, whole=False)
        settled += len(held)
        held = claims
        if not held:
            return settled
