"""What schema the store of a URL has, and the SQL that makes one; asked without changing anything.

Like the rest of `tenure.drivers` it knows drivers by name, and imports each on demand.
"""

import asyncio
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct

from tenure.clock import Clock
from tenure.driver import Driver
from tenure.drivers import connect
from tenure.errors import SchemaMismatch, Unsupported

__all__ = ["SchemaState", "is_there", "schema_script", "schema_state"]


class SchemaState(Struct, frozen=True, kw_only=True):
    """The version that is there, None where nothing is, and the one that this code works with.

    Since `oldest` it works with older ones, too.
    """

    found: int | None
    expected: int
    oldest: int

    @property
    def works(self) -> bool:
        """Whether this code can work with what is there, or make it."""
        return self.found is None or self.oldest <= self.found <= self.expected


async def schema_state(url: str, clock: Clock) -> SchemaState:
    """Look at the schema. Raises as `connect` does, and `StoreError`.

    A namespace of Redis is marked with the version by the look, as by any other use.
    """
    build = connect(url, {}, clock)  # what is wrong with the URL is told as always
    match urlsplit(url).scheme:
        case "sqlite":
            from tenure.drivers.sqlite import script as sqlite

            there = await asyncio.to_thread(sqlite.found, _path(url))
            return SchemaState(found=there, expected=sqlite.expected(), oldest=sqlite.OLDEST)
        case "postgresql" | "postgres":
            from tenure.drivers.postgres import script as postgres

            there = await postgres.found(url, _schema(url), clock)
            return SchemaState(found=there, expected=postgres.expected(), oldest=postgres.OLDEST)
        case "memory":
            raise Unsupported("schemas")
        case _:
            return await _redis(build())


async def is_there(url: str, clock: Clock) -> bool:
    """Whether to open the store would find one, instead of making tables. Raises as above.

    Redis and memory have nothing to be made, and so are always there.
    """
    if urlsplit(url).scheme not in ("sqlite", "postgresql", "postgres"):
        return True
    return (await schema_state(url, clock)).found is not None


async def _redis(driver: Driver) -> SchemaState:
    from tenure.drivers.redis import RedisDriver
    from tenure.drivers.redis.scripts import OLDEST, SCHEMA_VERSION

    assert isinstance(driver, RedisDriver)
    try:
        await driver.open()
        found = driver.schema_version
    except SchemaMismatch as error:
        found = error.found
    finally:
        await driver.close()
    return SchemaState(found=found, expected=SCHEMA_VERSION, oldest=OLDEST)


def schema_script(url: str, clock: Clock) -> str:
    """The SQL that makes the schema in an empty store; connects to nothing.

    Raises `Unsupported` for a store that has no SQL.
    """
    connect(url, {}, clock)
    match urlsplit(url).scheme:
        case "sqlite":
            from tenure.drivers.sqlite.script import script

            return script()
        case "postgresql" | "postgres":
            from tenure.drivers.postgres.script import script as of_schema

            return of_schema(url, _schema(url))
        case _:
            raise Unsupported("a script of its schema: it has no SQL")


def _path(url: str) -> str:
    return unquote(urlsplit(url).path)[1:]


def _schema(url: str) -> str:
    return dict(parse_qsl(urlsplit(url).query)).get("schema", "tenure")
