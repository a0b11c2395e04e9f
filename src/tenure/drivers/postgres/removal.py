"""Removes a schema with all jobs in it. For stores that were made for a while only."""

from tenure.clock import Clock
from tenure.drivers.postgres.client import Refusal, connect
from tenure.drivers.postgres.options import Options
from tenure.drivers.postgres.statements import quoted

__all__ = ["remove"]

_TIMEOUT = 30.0


async def remove(url: str, schema: str, clock: Clock) -> None:
    """Drop the schema, where there is one. Raises `StoreError`."""
    options = Options(
        url=url, schema=schema, migrate=False, pool_size=1, timeout=_TIMEOUT, pooled=None
    )
    connection = await connect(options.address, clock, prepare=False)
    try:
        await connection.fetch(
            f"DROP SCHEMA IF EXISTS {quoted(options.schema)} CASCADE", (), _TIMEOUT
        )
    except Refusal as refusal:
        raise refusal.error from refusal
    finally:
        await connection.close()
