"""What is to be said of the store of a URL, beside its jobs.

Like the rest of `tenure.drivers` it knows drivers by name, and imports each on demand.
"""

import asyncio
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from tenure.clock import Clock
from tenure.drivers import connect
from tenure.drivers.findings import Finding, fine

__all__ = ["examined"]


async def examined(url: str, clock: Clock) -> Sequence[Finding]:
    """Look at the store. Raises as `connect` does, and `StoreError` where it cannot be reached."""
    connect(url, {}, clock)  # what is wrong with the URL is told as always
    match urlsplit(url).scheme:
        case "sqlite":
            from tenure.drivers.sqlite.examination import examine as of_file

            path = unquote(urlsplit(url).path)[1:]
            return await asyncio.to_thread(lambda: list(of_file(path)))
        case "postgresql" | "postgres":
            from tenure.drivers.postgres.examination import examine as of_database

            return await of_database(url, clock)
        case "memory":
            return [fine("store", "in this process only")]
        case _:
            from tenure.drivers.redis.examination import examine as of_redis

            return await of_redis(url, clock)
