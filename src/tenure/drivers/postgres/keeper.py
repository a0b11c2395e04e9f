"""What the keeper's thread extends leases through: a connection and an event loop of its own.

Nothing here touches the loop of the driver, which may be blocked; every call is bounded in time.
"""

import asyncio
import os
from collections.abc import Sequence

from tenure.clock import Clock
from tenure.drivers.postgres import leases
from tenure.drivers.postgres.options import Options
from tenure.drivers.postgres.pool import Pool
from tenure.drivers.postgres.statements import Statements
from tenure.errors import StoreUnavailable
from tenure.types import Hold, Kept

__all__ = ["Keeper"]

_AT_ONCE = 1.0  # seconds


class Keeper:
    """A `KeeperHandle`. Built anywhere, used and closed by one thread."""

    def __init__(
        self, options: Options, statements: Statements, clock: Clock, *, pooled: bool
    ) -> None:
        self._options = options
        self._statements = statements
        self._clock = clock
        self._pooled = pooled
        self._runner: asyncio.Runner | None = None
        self._pool: Pool | None = None
        self._process = os.getpid()

    def extend(self, holds: Sequence[Hold], lease: float) -> Sequence[Kept]:
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(self._extend(holds, lease))

    async def _extend(self, holds: Sequence[Hold], lease: float) -> list[Kept]:
        if self._pool is None:
            self._pool = Pool(self._options, self._statements, self._clock, pooled=self._pooled)
        begun = self._clock.monotonic()
        try:
            return await leases.extend(self._pool, holds, lease, None)
        except StoreUnavailable as error:
            if not error.ambiguous or self._clock.monotonic() - begun > _AT_ONCE:
                raise
            # This loop turns only during calls, so that the end of a connection shows only when it
            # is used again. To extend twice does no harm; to be late would.
            return await leases.extend(self._pool, holds, lease, None)

    def close(self) -> None:
        runner, self._runner = self._runner, None
        pool, self._pool = self._pool, None
        if runner is None or self._process != os.getpid():
            return
        try:
            if pool is not None:
                runner.run(pool.close())
        finally:
            runner.close()
