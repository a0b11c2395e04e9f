"""A store of its own beside that of a URL: empty, in use for a while, and removed again.

Like the rest of `tenure.drivers` it knows drivers by name, and imports each on demand. Touches
nothing that it has not made.
"""

import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit
from uuid import uuid4

from msgspec import Struct

from tenure.clock import Clock
from tenure.drivers import connect
from tenure.drivers.examinations import examined
from tenure.errors import StoreError, StoreUnavailable

__all__ = ["Spare", "removed", "spare"]

_PREFIX = "tenure_bench_"
_SETTINGS = ("durability", "persistence")  # what findings call them


class Spare(Struct, frozen=True, kw_only=True):
    """A store that is empty, what kind of store it is, and what it does for what was accepted.

    `alone`: each connection to the URL has a store of its own.
    """

    url: str
    kind: str
    durability: str
    alone: bool = False


@asynccontextmanager
async def spare(url: str, clock: Clock) -> AsyncGenerator[Spare]:
    """A store with the settings of another: beside its file, or on its server.

    Raises as `connect` does, `StoreError`, and `OSError` where no file can be made. What was made
    is removed at the end; where that fails, the error says what is left.
    """
    connect(url, {}, clock)  # what is wrong with the URL is told as always
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    name = f"{_PREFIX}{uuid4().hex[:12]}"
    match parts.scheme:
        case "memory":
            yield Spare(url=url, kind="memory", durability="none", alone=True)
        case "sqlite" if parts.path == "/:memory:":
            yield Spare(url=url, kind="SQLite in memory", durability="none", alone=True)
        case "sqlite":
            import sqlite3

            with tempfile.TemporaryDirectory(
                prefix=f".{_PREFIX}", dir=_folder_of(parts.path)
            ) as own:
                # Beside the file: another disk would be another store.
                yield Spare(
                    url=f"sqlite:///{quote(f'{own}/jobs.db')}{'?' if query else ''}{parts.query}",
                    kind=f"SQLite {sqlite3.sqlite_version}",
                    durability=f"synchronous={query.get('synchronous', 'FULL')}",
                )
        case _:
            option = "schema" if parts.scheme in ("postgresql", "postgres") else "namespace"
            findings = await examined(url, clock)
            settings = [f.message.partition(":")[0] for f in findings if f.about in _SETTINGS]
            own_url = urlunsplit(parts._replace(query=urlencode({**query, option: name})))
            try:
                yield Spare(
                    url=own_url,
                    kind=next((f.message for f in findings if f.about == "server"), parts.scheme),
                    durability=", ".join(settings) or "not told",
                )
            finally:
                await _cleared(own_url, f"the {option} {name}", clock)


def _folder_of(path: str) -> Path:
    """The folder of the file of a URL."""
    return Path(unquote(path)[1:]).absolute().parent


async def _cleared(url: str, what: str, clock: Clock) -> None:
    try:
        await removed(url, clock)
    except StoreError as error:
        kind = StoreUnavailable if isinstance(error, StoreUnavailable) else StoreError
        raise kind(f"{what} could not be removed, and is left: {error}") from error


async def removed(url: str, clock: Clock) -> None:
    """Remove the whole store: the namespace or schema that the URL names, with all that is in it.

    Raises `StoreError`. For stores on servers; legal where there is none.
    """
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    if parts.scheme in ("postgresql", "postgres"):
        from tenure.drivers.postgres.removal import remove as remove_schema

        await remove_schema(url, query.get("schema", "tenure"), clock)
    else:
        from tenure.drivers.redis.removal import remove as remove_namespace

        await remove_namespace(url, query.get("namespace", "tenure"))
