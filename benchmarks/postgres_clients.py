"""Which client library the PostgreSQL driver should use: the same statements through both.

    python -m benchmarks.postgres_clients [--seconds 2] [--rounds 3]

One connection each, prepared statements, a server of our own with the disk waited for. *claim +
record* is the driver's own statement: it settles 64 jobs and takes the next 64.
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from statistics import median
from typing import Any
from uuid import uuid4

import asyncpg
import psycopg

import tenure
from benchmarks.protocol.client import PAYLOAD
from tenure.clock import SystemClock
from tenure.driver import RecordItem
from tenure.drivers.postgres import PostgresDriver, record
from tenure.drivers.postgres.heads import Heads
from tenure.drivers.postgres.statements import Statements
from tenure.types import Claim, ClaimRequest, QueueLimit
from tests.servers.postgres import running

BATCH = 64
Fetch = Callable[[str, Sequence[object]], Awaitable[Sequence[Any]]]


class Runner:
    """Runs the driver's statements through one client."""

    def __init__(self, statements: Statements, fetch: Fetch) -> None:
        self._statements = statements
        self._fetch = fetch

    async def fetch(self, statement: str, *arguments: object) -> list[Any]:
        return [*await self._fetch(self._statements.text(statement), arguments)]


async def through_asyncpg(url: str, use: Callable[[Fetch], Awaitable[float]]) -> float:
    connection = await asyncpg.connect(url)
    try:
        return await use(lambda sql, arguments: connection.fetch(sql, *arguments))
    finally:
        await connection.close()


async def through_psycopg(url: str, use: Callable[[Fetch], Awaitable[float]]) -> float:
    async with await psycopg.AsyncConnection.connect(
        url, autocommit=True, cursor_factory=psycopg.AsyncRawCursor, prepare_threshold=0
    ) as connection:

        async def fetch(sql: str, arguments: Sequence[object]) -> Sequence[Any]:
            cursor = await connection.execute(sql.encode(), arguments, binary=True)
            return await cursor.fetchall()

        return await use(fetch)


async def round_trips(fetch: Fetch, seconds: float) -> float:
    """Statements a second that do nothing."""
    began, calls = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        await fetch("SELECT 1", ())
        calls += 1
    return calls / (time.perf_counter() - began)


async def claims_and_records(fetch: Fetch, schema: str, seconds: float) -> float:
    """Jobs a second that are settled while as many are claimed."""
    runner = Runner(Statements(schema), fetch)
    heads = Heads(tenure.SystemClock())
    held: Sequence[Claim] = ()
    began, done = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        request = ClaimRequest(
            token=uuid4().hex,
            queues=(QueueLimit("default", BATCH),),
            limit=BATCH,
            worker="w",
            lease=30.0,
        )
        items: list[RecordItem] = [(claim.hold, tenure.Completed()) for claim in held]
        _, held = await record.exchange(runner, items, request, None, heads, whole=False)
        done += len(items)
        if not held:
            break
    return done / (time.perf_counter() - began)


async def measure(url: str, seconds: float, rounds: int) -> None:
    figures: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        for name, through in (("asyncpg", through_asyncpg), ("psycopg", through_psycopg)):
            trips = await through(url, lambda fetch: round_trips(fetch, seconds))
            figures.setdefault(("round trips/s", name), []).append(trips)
            schema = f"t_{uuid4().hex}"
            driver = PostgresDriver(url, schema=schema, clock=SystemClock())
            async with tenure.Queue(driver) as queue:
                jobs = int(40_000 * seconds)
                await queue.dispatch_many(tenure.Call("nothing", PAYLOAD) for _ in range(jobs))
            both = await through(
                url,
                lambda fetch, schema=schema: claims_and_records(fetch, schema, seconds),  # type: ignore[misc]
            )
            figures.setdefault(("claim + record, jobs/s", name), []).append(both)
    print("| measurement | client | median (least-greatest) |\n|---|---|---|")
    for (measurement, name), values in sorted(figures.items()):
        low, high = min(values), max(values)
        print(f"| {measurement} | {name} | {median(values):,.0f} ({low:,.0f}-{high:,.0f}) |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compare asyncpg and psycopg.")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    with running(durable=True) as server:
        asyncio.run(measure(server.url, chosen.seconds, chosen.rounds))
