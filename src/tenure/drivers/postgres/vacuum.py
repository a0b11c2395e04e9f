"""Has the table of jobs vacuumed while this process makes it churn.

The server by itself looks once a minute, and a fast churn leaves a million dead rows in a minute.
Owns one task at most, and one connection for as long as that runs, so that no call ever waits for
it. Does nothing where little is written, and never raises: without it claims are slower, no more.

Several processes share the work: whoever finds that the table has just been vacuumed leaves it.
"""

import asyncio
import logging
import random
from collections.abc import Callable

from msgspec import Struct

from tenure.clock import Clock
from tenure.drivers.postgres.client import Connection, Refusal, connect
from tenure.drivers.postgres.options import Options
from tenure.drivers.postgres.rows import Row
from tenure.drivers.postgres.statements import Statements
from tenure.errors import StoreError, StoreUnavailable

__all__ = ["Churn", "Vacuum", "are_stuck"]

_WRITTEN = 30_000  # row versions of this process, before it looks
_DEAD = 10_000  # rows that are worth a vacuum
_APART = 3.0  # seconds between two vacuums, of whomever
_APART_STUCK = 10.0
_SHARE = 10.0  # times as long as the last one took, so that it takes a tenth of the time at most
_LONGEST = 60.0  # the server looks as often by itself
_TIMEOUT = 60.0
_LOCKED = "55P03"
_logger = logging.getLogger("tenure.postgres")


class Churn(Struct, frozen=True, kw_only=True):
    """A look at what the server counts; see queries/churn.sql."""

    dead: int
    died: int
    vacuums: int
    age: float | None


def are_stuck(before: Churn, after: Churn) -> bool:
    """Whether a vacuum that began and ended between two looks had to leave the dead rows.

    It has to where a transaction is open that is older than they are. Those that died while it ran
    stay too, but are few beside those that were dead before.
    """
    removed = before.dead + (after.died - before.died) - after.dead
    return before.dead >= _DEAD and removed < before.dead / 2


class Vacuum:
    """What one event loop does against dead rows."""

    def __init__(
        self,
        options: Options,
        statements: Statements,
        clock: Clock,
        told: Callable[[bool], None],
    ) -> None:
        """`told` hears after each look whether dead rows are stuck: cannot be removed now."""
        self._options = options
        self._statements = statements
        self._clock = clock
        self._told = told
        self._written = 0
        self._rests_until = float("-inf")
        self._stuck = False
        self._ended = False
        self._before: Churn | None = None
        self._task: asyncio.Task[None] | None = None
        self._connection: Connection | None = None

    def wrote(self, versions: int) -> None:
        """So many rows were claimed or settled."""
        self._written += versions
        # Where dead rows are stuck it looks again even if little is written: that may be over.
        if self._written < _WRITTEN and not self._stuck:
            return
        if self._task or self._ended or self._clock.monotonic() < self._rests_until:
            return
        self._task = asyncio.get_running_loop().create_task(self._turn())

    async def close(self) -> None:
        """End what is going on now. A vacuum that has begun is finished by the server alone."""
        self._ended = True
        if self._task is None:
            return
        if self._connection is None:
            self._task.cancel()
        else:
            self._connection.terminate()
        await asyncio.wait([self._task])

    async def _turn(self) -> None:
        begun = self._clock.monotonic()
        self._written = 0
        stuck = False
        try:
            stuck = await self._connected()
        except Refusal as refusal:
            self._failed(refusal.error)
        except StoreError as error:
            self._failed(error)
        finally:
            self._stuck = stuck
            self._told(stuck)
            ended = self._clock.monotonic()
            apart = _APART_STUCK if stuck else _APART
            rest = min(max(apart, _SHARE * (ended - begun)), _LONGEST)
            # Not alike in all processes, so that each has its turn.
            self._rests_until = ended + random.uniform(rest, rest * 1.5)
            self._task = None

    def _failed(self, error: StoreError) -> None:
        if isinstance(error, StoreUnavailable):  # callers are told of that by their own calls
            _logger.debug("the table of jobs was not vacuumed", extra={"reason": str(error)})
        elif not self._ended:
            self._give_up(str(error))

    def _give_up(self, reason: str) -> None:
        self._ended = True
        _logger.warning(
            "the table of jobs is left to the vacuum of the server, which looks once a minute",
            extra={"reason": reason},
        )

    async def _connected(self) -> bool:
        connection = await connect(self._options.address, self._clock, prepare=False)
        self._connection = connection
        try:
            return await self._work(connection)
        finally:
            self._connection = None
            await connection.close()

    async def _work(self, connection: Connection) -> bool:
        """Vacuum, unless that was just done; whether dead rows are stuck."""
        look = await self._look(connection)
        stuck = self._stuck
        # Of two vacuums since a look the second began after it, whoever did them.
        if self._before is not None and look.vacuums - self._before.vacuums >= 2:
            stuck = are_stuck(self._before, look)
            self._before = look
        if look.age is not None and look.age < _APART:
            self._before = self._before or look
            return stuck
        if look.dead < _DEAD:
            self._before = None
            return False
        with connection.warnings() as warnings:
            await self._fetch(connection, "vacuum")
        if any(sqlstate != _LOCKED for sqlstate in warnings):
            self._give_up("the user of the URL may not vacuum it; make it the owner of the schema")
            return False
        if warnings:
            return stuck
        self._before = await self._look(connection)
        return are_stuck(look, self._before)

    async def _look(self, connection: Connection) -> Churn:
        dead, died, vacuums, age = (await self._fetch(connection, "churn"))[0]
        return Churn(dead=dead, died=died, vacuums=vacuums, age=age)

    async def _fetch(self, connection: Connection, statement: str) -> list[Row]:
        return await connection.fetch(self._statements.text(statement), (), _TIMEOUT)
