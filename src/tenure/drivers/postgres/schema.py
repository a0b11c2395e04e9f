"""Makes the schema where there is none, or brings it up to date, one process at a time.

Never touches anything outside the schema, and never a schema that is newer than this code. A little
older one is worked with as it is, unless it is to be upgraded.

To make it is one transaction, so that it works through a pooler too; to upgrade it needs the server
itself, since an index is built without stopping anybody, which no transaction can do.

Whoever finds the lock taken asks again instead of waiting for it: an index that is built
concurrently waits for every transaction that is open, and one that waits for the lock of the
builder would be among them.
"""

import logging

from tenure.clock import Clock
from tenure.drivers.postgres.client import Connection, Refusal
from tenure.drivers.postgres.options import Options
from tenure.drivers.postgres.rows import Row
from tenure.drivers.postgres.statements import OLDEST, Statements, quoted
from tenure.errors import SchemaMismatch, StoreUnavailable

__all__ = ["judge", "prepare"]

_logger = logging.getLogger("tenure.postgres")

_TIMEOUT = 60.0  # seconds for one of these statements
_PATIENCE = 60.0  # seconds for others to finish
_PAUSE = 0.05


async def prepare(
    connection: Connection, options: Options, statements: Statements, clock: Clock
) -> None:
    """Bring the schema to the version of this code.

    A schema without our tables gets them in any case; `migrate` allows to change existing ones, and
    without it those since `OLDEST` stay as they are.
    Raises `SchemaMismatch` or another `StoreError`.
    """
    work = _Preparation(connection, options, statements)
    end = clock.monotonic() + _PATIENCE
    try:
        while not await work.done():
            if clock.monotonic() >= end:
                raise StoreUnavailable(
                    "another process has been changing the schema for a minute; wait until it is "
                    "done, then open the store again"
                )
            await clock.sleep(_PAUSE)
    except Refusal as refusal:
        raise refusal.error from refusal
    except BaseException:
        # The server rolls back, and gives up the lock, by itself.
        connection.terminate()
        raise


class _Preparation:
    """One look at a schema after another, and what follows from it."""

    def __init__(self, connection: Connection, options: Options, statements: Statements) -> None:
        self._connection = connection
        self._options = options
        self._statements = statements
        self._steps = statements.migrations()
        self._expected = len(self._steps)

    async def done(self) -> bool:
        """Whether the schema is as it should be, now; False where somebody else works on it."""
        found = await self._version()
        if found is None:
            return await self._make()
        judge(found, self._expected, migrate=self._options.migrate)
        if found == self._expected or not self._options.migrate:
            if found < self._expected:
                _logger.warning(
                    "the store has schema version %d, older than this tenure's, and works; run "
                    "`tenure schema migrate` when all programs have been upgraded",
                    found,
                )
            return True
        return await self._upgrade()

    async def _version(self) -> int | None:
        """The version of our tables; None where there are none."""
        _, present = (await self._fetch("schema_found", self._options.schema))[0]
        if not present:
            return None
        rows = await self._fetch("schema_version")
        return int(rows[0][0]) if rows else 0

    async def _make(self) -> bool:
        script = self._connection.script
        await script("BEGIN")
        # Asked again under the lock: another process may have done it meanwhile.
        free = (await self._fetch("schema_lock", self._options.schema))[0][0]
        if not free or await self._version() is not None:
            await script("ROLLBACK")
            return False
        schema = quoted(self._options.schema)
        exists, _ = (await self._fetch("schema_found", self._options.schema))[0]
        if not exists:  # IF NOT EXISTS would ask for the right to create even where it does
            await script(f"CREATE SCHEMA {schema}")
        for step in self._steps:
            await script(step.replace(" CONCURRENTLY", ""))  # nobody is there to be stopped
        await self._finish(self._expected)
        return True

    async def _upgrade(self) -> bool:
        schema = self._options.schema
        if not (await self._fetch("schema_lock_long", schema))[0][0]:
            return False
        found = await self._version()  # again under the lock, as above
        for number, step in enumerate(self._steps[found:], (found or 0) + 1):
            await self._apply(number, step)
        await self._fetch("schema_unlock", schema)
        return False  # to be looked at once more

    async def _apply(self, number: int, step: str) -> None:
        """One migration. One that builds an index concurrently holds that command alone."""
        script = self._connection.script
        if " CONCURRENTLY" not in step:
            await script("BEGIN")
            await script(step)
        else:
            # One that was begun and not finished is useless, and takes the name.
            for (leftover,) in await self._fetch("schema_leftovers", self._options.schema):
                await script(f"DROP INDEX {quoted(self._options.schema)}.{quoted(leftover)}")
            await script(step)
            await script("BEGIN")
        await self._finish(number)

    async def _finish(self, version: int) -> None:
        script = self._connection.script
        if version == self._expected:
            # They may use each other in any order.
            await script("SET LOCAL check_function_bodies = off")
            for function in self._statements.functions():
                await script(function)
        table = f"{quoted(self._options.schema)}.version"
        await script(f"DELETE FROM {table}; INSERT INTO {table} (version) VALUES ({version})")
        await script("COMMIT")

    async def _fetch(self, statement: str, *arguments: object) -> list[Row]:
        return await self._connection.fetch(self._statements.text(statement), arguments, _TIMEOUT)


def judge(found: int, expected: int, *, migrate: bool) -> None:
    """Raises `SchemaMismatch` for a version that is newer, or is too old and not to be upgraded."""
    if found > expected:
        raise SchemaMismatch(
            found=found, expected=expected, remedy="upgrade tenure in this environment"
        )
    if found < OLDEST and not migrate:
        raise SchemaMismatch(
            found=found,
            expected=expected,
            remedy="run `await tenure.migrate(url)`, or open it once with migrate=True, when "
            "no older tenure uses it any more",
        )
