"""What the tests of this folder share: stores, jobs, outcomes, and random operations."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from tenure.clock import SystemClock
from tenure.drivers.redis import RedisDriver
from tenure.outcomes import (
    Cancelled,
    Completed,
    Failed,
    Failure,
    Outcome,
    Released,
    Retried,
    Snoozed,
)
from tenure.standing import Limit
from tenure.types import (
    Claim,
    ClaimRequest,
    JobFilter,
    ManualRetry,
    Move,
    NewJob,
    QueueLimit,
    Retention,
    UniqueKey,
)
from tests.servers.redis import RedisServer

__all__ = ["FAILURE", "OUTCOMES", "claim", "jobs", "opened", "request", "step", "until"]

FAILURE = Failure(kind="error", message="no", at=datetime(2030, 1, 1, tzinfo=UTC), attempt=1)
_THROTTLE = UniqueKey(key="t", mode="throttle", period=50.0)
_LIMITS = [
    Limit(key="a", concurrent=1),
    Limit(key="b-*", concurrent=2),
    Limit(key="rate", per_second=1),
]
OUTCOMES: list[Outcome] = [
    Completed(b"1" * 100),
    Completed(),
    Failed(FAILURE),
    Cancelled("asked"),
    Released("full"),
    Released("full", 5.0),
    Retried(5.0, FAILURE),
    Snoozed(0.0),
]


@asynccontextmanager
async def opened(
    server: RedisServer | str, namespace: str | None = None, **options: Any
) -> AsyncGenerator[RedisDriver]:
    url = server if isinstance(server, str) else server.url
    driver = RedisDriver(url, namespace=namespace or uuid4().hex, clock=SystemClock(), **options)
    await driver.open()
    try:
        yield driver
    finally:
        await driver.close()


def jobs(count: int, prefix: str = "job", queue: str = "default") -> list[NewJob]:
    return [NewJob(id=f"{prefix}-{n}", name="work", queue=queue) for n in range(count)]


def request(limit: int = 100, *, token: str | None = None, queue: str = "default") -> ClaimRequest:
    return ClaimRequest(
        token=token or uuid4().hex,
        queues=(QueueLimit(queue, limit),),
        limit=limit,
        worker="w",
        lease=30.0,
    )


async def claim(driver: RedisDriver, limit: int = 100, now: datetime | None = None) -> list[Claim]:
    return list(await driver.claim(request(limit), now=now))


async def until(holds: Callable[[], bool]) -> None:
    """Wait for what a server does in its own time."""
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110  # nothing tells of it
            await asyncio.sleep(0.01)


async def step(
    driver: RedisDriver, chance: random.Random, ids: Iterable[str], now: datetime
) -> None:
    """One random operation, sensible or not."""
    some = chance.choices(list(ids), k=5)
    match chance.randrange(10):
        case 0 | 1 | 2:
            fresh = [
                NewJob(
                    id=job_id,
                    name="work",
                    queue=chance.choice(["default", "other"]),
                    priority=chance.choice([0, 0, 5]),
                    payload=b"p" * 25 * int(job_id.removeprefix("job-")),
                )
                for job_id in set(some)
            ]
            await driver.enqueue(fresh, now=now)
        case 3 | 4:
            claims = await claim(driver, 3, now)
            items = [(claimed.hold, chance.choice(OUTCOMES)) for claimed in claims]
            await driver.record(items[:2], now=now)
        case 5:
            await driver.reclaim(10, [0.0, 5.0], now=now)
        case 6:
            await driver.cancel(some, now=now)
            await driver.retry([ManualRetry(job_id) for job_id in some[:2]], now=now)
        case 7:
            await driver.delete(some[:2], now=now)
            limit = chance.choice(_LIMITS)
            if not await driver.drop_limit(limit.key):
                await driver.put_limit(limit)
        case 8:
            await driver.move([Move(job_id=some[0], queue=chance.choice(["a", "b"]))], now=now)
            await driver.purge(JobFilter(queue="a"), 1, now=now)
        case _:
            await driver.prune(Retention(completed=60.0, completed_count=2), 3, now=now)
            await driver.prune(Retention(completed_bytes=1000), 2, now=now)
