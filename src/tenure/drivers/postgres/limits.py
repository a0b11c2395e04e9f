"""The operations on limits. What follows from them, claims see to (functions/claim.sql)."""

from tenure.drivers.postgres.pool import Runner
from tenure.standing import Limit

__all__ = ["drop", "look", "put"]


async def put(runner: Runner, limit: Limit) -> None:
    """See `Driver.put_limit`."""
    await runner.fetch("put_limit", limit.key, limit.per_second, limit.concurrent)


async def drop(runner: Runner, key: str) -> bool:
    """See `Driver.drop_limit`."""
    return bool(await runner.fetch("drop_limit", key))


async def look(runner: Runner) -> list[Limit]:
    """See `Driver.limits`."""
    return [
        Limit(key=key, per_second=per_second, concurrent=concurrent)
        for key, per_second, concurrent in await runner.fetch("limits")
    ]
