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

__all__ = ["PAYLOAD", "STORES", "Mismatch", "Place", "Store"]

PAYLOAD = {
    "to": "someone@example.com",
    "subject": "about a hundred and ten bytes",
    "body": 40 * "x",
}

COMMITS = 500


class Mismatch(Exception):
    """The store and the handlers do not agree on what was done, so there is no figure."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where one kind of store is while it is measured.

    `fresh` gives the URL of an empty store, below a folder where it needs one; `reference` writes
    so many times, and gives how many are there afterwards.
    """

    fresh: Callable[[Path], str]
    reference: Callable[[Path, int], int]

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
    """A store at one setting. `open` starts what it needs. `shared`: by several processes."""

    name: str
    durability: str
    open: Callable[[ExitStack], Place]
    shared: bool = True


# --- in this process, or in a file --------------------------------------------------------------


def _file(synchronous: str) -> Callable[[ExitStack], Place]:
    place = Place(
        fresh=lambda folder: f"sqlite:///{folder / 'jobs.db'}?synchronous={synchronous}",
        reference=lambda folder, count: _commits(str(folder / "reference.db"), synchronous, count),
    )
    return lambda stack: place


def _memory(stack: ExitStack) -> Place:
    return Place(
        fresh=lambda folder: "memory://",
        reference=lambda folder, count: _commits(":memory:", "OFF", count),
    )


def _commits(path: str, synchronous: str, count: int) -> int:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
        for _ in range(count):
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

        def pushes(folder: Path, count: int) -> int:
            with server.client() as client:
                client.delete("reference")
                for _ in range(count):
                    client.lpush("reference", str(PAYLOAD))
                return int(client.llen("reference"))

        return Place(fresh=lambda folder: f"{server.url}?namespace={uuid4().hex}", reference=pushes)

    return open_place


def _postgres(stack: ExitStack) -> Place:
    from tests.servers.postgres import running

    server = stack.enter_context(running(durable=True))

    def inserts(folder: Path, count: int) -> int:
        with server.client() as client:
            client.execute("DROP TABLE IF EXISTS reference")
            client.execute("CREATE TABLE reference (id bigserial PRIMARY KEY, body text)")
            for _ in range(count):
                client.execute("INSERT INTO reference (body) VALUES (%s)", (str(PAYLOAD),))
            rows: Any = client.execute("SELECT count(*) FROM reference").fetchone()
            return int(rows[0])

    return Place(fresh=lambda folder: f"{server.url}?schema=t_{uuid4().hex}", reference=inserts)


@contextmanager
def _folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as name:
        yield Path(name)


_AOF = ("--appendonly", "yes", "--appendfsync")

STORES: Mapping[str, Store] = {
    store.name: store
    for store in (
        Store(name="sqlite-full", durability="FULL", open=_file("FULL")),
        Store(name="sqlite-normal", durability="NORMAL", open=_file("NORMAL")),
        Store(name="redis-everysec", durability="AOF everysec", open=_redis(*_AOF, "everysec")),
        Store(name="redis-always", durability="AOF always", open=_redis(*_AOF, "always")),
        Store(name="postgres", durability="commit on", open=_postgres),
        Store(name="memory", durability="none", open=_memory, shared=False),
    )
}
