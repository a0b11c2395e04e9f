"""The stores that are measured, and the reference that each figure is compared with.

The reference is the plainest thing that is durable in the same way, one write at a time: one-row
commits with `sqlite3` or psycopg, LPUSH with redis-py. It is measured on the same disk or server,
before each measurement of the same round. Servers are our own, in a temporary folder, on a free
port: those of the tests.
"""

import sqlite3
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks.protocol.client import PAYLOAD

__all__ = ["STORES", "Mismatch", "Place", "Store", "named"]

COMMITS = 200


class Mismatch(Exception):
    """The store and the handlers do not agree on what was done, so there is no figure."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where one kind of store is while it is measured.

    `fresh` empties it and gives its URL, or the path of a file in the folder; `forget` gives up
    what was there. `reference` writes so many times, and gives how many are there afterwards.
    `commands` watches the store at a URL for so many seconds, and gives how many commands or
    transactions it was asked for; None where nobody but its user knows.
    """

    version: str
    fresh: Callable[[Path], str]
    forget: Callable[[str], None]
    reference: Callable[[Path, int], int]
    commands: Callable[[str, float], int] | None

    def writes(self, folder: Path) -> float:
        """One-at-a-time writes per second."""
        began = time.perf_counter()
        stored = self.reference(folder, COMMITS)
        seconds = time.perf_counter() - began
        if stored != COMMITS:
            raise Mismatch(f"the reference stored {stored} of {COMMITS} rows")
        return COMMITS / seconds


@dataclass(frozen=True, kw_only=True)
class Store:
    """A store at one setting. `open` starts what it needs."""

    name: str
    kind: str
    durability: str
    open: Callable[[ExitStack], Place]


# --- in a file ----------------------------------------------------------------------------------


def _file(synchronous: str) -> Callable[[ExitStack], Place]:
    place = Place(
        version=f"SQLite {sqlite3.sqlite_version}",
        fresh=lambda folder: str(folder / "jobs.db"),
        forget=lambda url: None,
        reference=lambda folder, writes: _commits(
            str(folder / "reference.db"), synchronous, writes
        ),
        commands=None,
    )
    return lambda stack: place


def _commits(path: str, synchronous: str, writes: int) -> int:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
        for _ in range(writes):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO t (body) VALUES (?)", (str(PAYLOAD),))
            connection.execute("COMMIT")
        (rows,) = connection.execute("SELECT count(*) FROM t").fetchone()
    finally:
        connection.close()
    return int(rows)


# --- on a server of our own ---------------------------------------------------------------------


def _redis(*options: str) -> Callable[[ExitStack], Place]:
    def open_place(stack: ExitStack) -> Place:
        from tests.servers.redis import running

        server = stack.enter_context(running(stack.enter_context(_folder()), *options))
        client: Any = stack.enter_context(server.client())

        def fresh(folder: Path) -> str:
            client.flushall()
            # Else the log of all turns so far is rewritten in the middle of some later one.
            client.bgrewriteaof()
            while client.info("persistence")["aof_rewrite_in_progress"]:
                time.sleep(0.01)
            return server.url

        def pushes(folder: Path, writes: int) -> int:
            for _ in range(writes):
                client.lpush("reference", str(PAYLOAD))
            pushed = int(client.llen("reference"))
            client.delete("reference")
            return pushed

        return Place(
            version=f"Redis {client.info('server')['redis_version']}",
            fresh=fresh,
            forget=lambda url: None,
            reference=pushes,
            commands=lambda url, seconds: _monitored(client, seconds),
        )

    return open_place


def _monitored(client: Any, seconds: float) -> int:
    """How many commands come from outside; INFO would count those inside of scripts as well."""
    commands, end = 0, time.monotonic() + seconds
    with client.monitor() as monitor:
        while (left := end - time.monotonic()) > 0:
            if monitor.connection.can_read(timeout=left):
                commands += monitor.next_command()["client_type"] != "lua"
    return commands


def _postgres(stack: ExitStack) -> Place:
    from tests.servers.postgres import running

    server = stack.enter_context(running(durable=True))
    client = stack.enter_context(server.client())

    def fresh(folder: Path) -> str:
        name = f"bench_{uuid4().hex}"
        client.execute(f"CREATE DATABASE {name}".encode())
        return f"{server.url.rpartition('/')[0]}/{name}"

    def forget(url: str) -> None:
        client.execute(f"DROP DATABASE {_database(url)} WITH (FORCE)".encode())

    def inserts(folder: Path, writes: int) -> int:
        client.execute("DROP TABLE IF EXISTS reference")
        client.execute("CREATE TABLE reference (id bigserial PRIMARY KEY, body text)")
        for _ in range(writes):
            client.execute("INSERT INTO reference (body) VALUES (%s)", (str(PAYLOAD),))
        return int(server.ask("SELECT count(*) FROM reference")[0][0])

    def ended(url: str) -> int:
        """Transactions; from another database, so that looking adds none."""
        (done,) = server.ask(
            "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = %s",
            _database(url),
        )[0]
        return int(done)

    def transactions(url: str, seconds: float) -> int:
        before = ended(url)
        time.sleep(seconds)
        return ended(url) - before

    return Place(
        version=f"PostgreSQL {server.ask('SHOW server_version')[0][0]}",
        fresh=fresh,
        forget=forget,
        reference=inserts,
        commands=transactions,
    )


def _database(url: str) -> str:
    return url.rpartition("/")[2]


@contextmanager
def _folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as name:
        yield Path(name)


_AOF = ("--appendonly", "yes", "--appendfsync")

STORES: Mapping[str, Store] = {
    store.name: store
    for store in (
        Store(name="sqlite-full", kind="sqlite", durability="FULL", open=_file("FULL")),
        Store(name="sqlite-normal", kind="sqlite", durability="NORMAL", open=_file("NORMAL")),
        Store(
            name="redis-everysec",
            kind="redis",
            durability="AOF everysec",
            open=_redis(*_AOF, "everysec"),
        ),
        Store(
            name="redis-always", kind="redis", durability="AOF always", open=_redis(*_AOF, "always")
        ),
        Store(name="postgres", kind="postgres", durability="commit on", open=_postgres),
    )
}

# What is meant by the name of a kind, and by nothing at all.
_USUAL = ("sqlite-full", "sqlite-normal", "redis-everysec", "postgres")


def named(text: str) -> list[Store]:
    """The stores of names and kinds, such as "redis", "sqlite-full,postgres", "all"."""
    found: dict[str, Store] = {}
    for word in text.split(","):
        names = [name for name in _USUAL if word in ("all", STORES[name].kind)] or [word]
        found |= {name: STORES[name] for name in names}
    return list(found.values())
