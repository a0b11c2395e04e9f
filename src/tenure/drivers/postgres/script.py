"""The schema from outside: which version a database has, and the SQL that makes it.

Changes nothing. The SQL is for people whose deployments may not make tables; `schema.py` is what
programs use.
"""

from tenure.clock import Clock
from tenure.drivers.postgres.client import Refusal, connect
from tenure.drivers.postgres.options import Options
from tenure.drivers.postgres.statements import OLDEST, Statements, quoted

__all__ = ["OLDEST", "expected", "found", "script"]

_TIMEOUT = 10.0


def expected() -> int:
    """The version that this code works with."""
    return len(Statements("tenure").migrations())


async def found(url: str, schema: str, clock: Clock) -> int | None:
    """The version of a schema in a database; None where there is none of ours.

    Raises `StoreUnavailable` or another `StoreError`.
    """
    options = _options(url, schema)
    statements = Statements(schema)
    connection = await connect(options.address, clock, prepare=False)
    try:
        text = statements.text("schema_found")
        _, present = (await connection.fetch(text, (schema,), _TIMEOUT))[0]
        if not present:
            return None
        rows = await connection.fetch(statements.text("schema_version"), (), _TIMEOUT)
        return int(rows[0][0]) if rows else 0
    except Refusal as refusal:
        raise refusal.error from refusal
    finally:
        await connection.close()


def script(url: str, schema: str) -> str:
    """All commands that make the schema where there is none, as one transaction."""
    name = _options(url, schema).schema
    statements = Statements(name)
    steps = statements.migrations()
    return "\n".join(
        [
            "BEGIN;",
            f"CREATE SCHEMA IF NOT EXISTS {quoted(name)};",
            *(step.replace(" CONCURRENTLY", "").rstrip() for step in steps),
            "SET LOCAL check_function_bodies = off;",
            *(f"{function.rstrip().rstrip(';')};" for function in statements.functions()),
            f"INSERT INTO {quoted(name)}.version (version) VALUES ({len(steps)});",
            "COMMIT;",
            "",
        ]
    )


def _options(url: str, schema: str) -> Options:
    return Options(
        url=url, schema=schema, migrate=False, pool_size=1, timeout=_TIMEOUT, pooled=None
    )
