"""What the store says when a run is over, and how its numbers are printed."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import tenure

__all__ = ["completed", "print_table", "read_all", "wait_until_completed"]


async def completed(queue: tenure.Queue) -> int:
    return (await queue.counts()).completed


async def wait_until_completed(queue: tenure.Queue, number: int, *, seconds: float = 240.0) -> None:
    """Wait until so many jobs are completed. Raises `TimeoutError` when they are not in time."""
    deadline = time.monotonic() + seconds
    while (done := await completed(queue)) < number:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{done:,} instead of {number:,} jobs completed in {seconds:g} s")
        await asyncio.sleep(0.05)


async def read_all(queue: tenure.Queue) -> list[tenure.Job[Any]]:
    """Every job in the store, page by page."""
    jobs: list[tenure.Job[Any]] = []
    cursor: str | None = None
    while True:
        page = await queue.list(limit=1000, cursor=cursor)
        jobs += page.jobs
        cursor = page.cursor
        if cursor is None:
            return jobs


def print_table(numbers: Mapping[str, str]) -> None:
    width = max(map(len, numbers))
    for name, number in numbers.items():
        print(f"  {name:<{width}}  {number}")
