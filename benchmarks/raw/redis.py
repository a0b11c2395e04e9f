"""The raw limit of Redis: the driver's scripts over one connection, two calls under way at a time.

The server runs one script while the answer to the other is read, so it is never without work.
"""

import asyncio
import time
from typing import Any, cast

import redis

import tenure
from benchmarks.raw.batches import completed, new_jobs, request
from tenure.drivers.redis import replies, requests
from tenure.drivers.redis.links import command_of
from tenure.drivers.redis.scripts import Keys, script

__all__ = ["settle_all"]

_UNDER_WAY = 2
_FILL = 1000
_NAMESPACE = "tenure"
_EXCHANGE = script("exchange")


def settle_all(url: str, jobs: int, batch: int) -> float:
    """Jobs that are claimed and recorded in a second."""
    asyncio.run(_fill(url, jobs))
    keys = Keys(_NAMESPACE)
    client: Any = cast(Any, redis.Redis).from_url(url, protocol=2)
    with client:
        client.script_load(_EXCHANGE.text)
        command = command_of(_EXCHANGE, keys, whole=False)
        held: list[list[tenure.Claim]] = [[] for _ in range(_UNDER_WAY)]
        began, settled = time.perf_counter(), 0
        while True:
            asked = [request(batch) for _ in held]
            pipeline = client.pipeline(transaction=False)
            for claims, asking in zip(held, asked, strict=True):
                items = requests.settled(completed(claims))
                pipeline.execute_command(*command, "", *items, *requests.claimed(asking))
            settled += sum(map(len, held))
            held = [
                list(replies.claims(taken, asking.token))
                for (_, taken), asking in zip(pipeline.execute(), asked, strict=True)
            ]
            if not any(held):
                break
        seconds = time.perf_counter() - began
    if settled != jobs:
        raise AssertionError(f"{settled} of {jobs} jobs were settled")
    return jobs / seconds


async def _fill(url: str, jobs: int) -> None:
    async with tenure.connect(url, namespace=_NAMESPACE) as queue:
        driver = await queue.driver()
        for first in range(0, jobs, _FILL):
            await driver.enqueue(new_jobs(min(_FILL, jobs - first)))
