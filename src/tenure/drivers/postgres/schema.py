"""Makes the schema where there is none, or brings it up to date, one process at a time.

Never touches anything outside the schema, and never a schema that is newer than this code. All of
it is one transaction under a lock of that transaction, so that it works through a pooler too; a
migration that has to build an index concurrently will need a direct connection, and must say so.
"""

from tenure.drivers.postgres.client import Connection, Refusal
from tenure.drivers.postgres.options import Options
from tenure.drivers.postgres.rows import Row
from tenure.drivers.postgres.statements import Statements, quoted
from tenure.errors import SchemaMismatch

__all__ = ["prepare"]

_PATIENCE = 60.0  # seconds for one of these statements; the lock is held while others migrate


async def prepare(connection: Connection, options: Options, statements: Statements) -> None:
    """Bring the schema to the version of this code. Raises `SchemaMismatch` or `StoreError`.

    A schema without our tables gets them in any case; `migrate` allows to change existing ones.
    """
    work = _Preparation(connection, options, statements)
    try:
        if await work.version() != work.expected:
            await work.upgrade()
    except Refusal as refusal:
        raise refusal.error from refusal


class _Preparation:
    """One look at a schema, and what follows from it."""

    def __init__(self, connection: Connection, options: Options, statements: Statements) -> None:
        self._connection = connection
        self._options = options
        self._statements = statements
        self._steps = statements.migrations()
        self.expected = len(self._steps)

    async def version(self) -> int | None:
        """The version of our tables; None where there are none."""
        _, present = (await self._fetch("schema_found", self._options.schema))[0]
        if not present:
            return None
        rows = await self._fetch("schema_version")
        return int(rows[0][0]) if rows else 0

    async def upgrade(self) -> None:
        connection, schema = self._connection, self._options.schema
        await connection.script("BEGIN")
        try:
            await self._fetch("schema_lock", schema)
            # Asked again under the lock: another process may have done it meanwhile.
            found = await self.version()
            self._judge(found)
            if found != self.expected:
                await self._apply(found or 0)
            await connection.script("COMMIT")
        except BaseException:
            # The server rolls back by itself, also where the connection is broken already.
            connection.terminate()
            raise

    async def _apply(self, found: int) -> None:
        script = self._connection.script
        schema = quoted(self._options.schema)
        exists, _ = (await self._fetch("schema_found", self._options.schema))[0]
        if not exists:  # IF NOT EXISTS would ask for the right to create even where it does
            await script(f"CREATE SCHEMA {schema}")
        for step in self._steps[found:]:
            await script(step)
        # They may use each other in any order.
        await script("SET LOCAL check_function_bodies = off")
        for function in self._statements.functions():
            await script(function)
        await script(
            f"DELETE FROM {schema}.version; "
            f"INSERT INTO {schema}.version (version) VALUES ({self.expected})"
        )

    def _judge(self, found: int | None) -> None:
        if found is None or found == self.expected:
            return
        if found > self.expected:
            raise SchemaMismatch(
                found=found, expected=self.expected, remedy="upgrade tenure in this environment"
            )
        if not self._options.migrate:
            raise SchemaMismatch(
                found=found,
                expected=self.expected,
                remedy="open it once with migrate=True, when no older tenure uses it any more",
            )

    async def _fetch(self, statement: str, *arguments: object) -> list[Row]:
        return await self._connection.fetch(self._statements.text(statement), arguments, _PATIENCE)
