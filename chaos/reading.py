"""What the store says when a run is over."""

from typing import Any

import tenure

__all__ = ["read_all", "waiting"]


async def waiting(queue: tenure.Queue) -> int:
    """How many jobs have not ended."""
    counts = await queue.counts()
    return counts.pending + counts.scheduled + counts.processing


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
