"""The stores that are measured, and the reference that each figure is compared with.

The reference is the plainest thing that is durable in the same way: a loop of one-row commits with
the standard library's `sqlite3`, on the same disk, before each measurement of the same round.
"""

import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAYLOAD", "STORES", "Mismatch", "Store", "one_row_commits"]

PAYLOAD = {
    "to": "someone@example.com",
    "subject": "about a hundred and ten bytes",
    "body": 40 * "x",
}

COMMITS = 500


class Mismatch(Exception):
    """The store and the handlers do not agree on what was done, so there is no figure."""


@dataclass(frozen=True, kw_only=True)
class Store:
    """`synchronous` is SQLite's setting; None is a store in memory, which keeps nothing."""

    name: str
    synchronous: str | None

    @property
    def durability(self) -> str:
        return self.synchronous or "none"

    @property
    def shared(self) -> bool:
        """Whether another process can open it."""
        return self.synchronous is not None

    def url(self, folder: Path) -> str:
        if self.synchronous is None:
            return "memory://"
        return f"sqlite:///{folder / 'jobs.db'}?synchronous={self.synchronous}"


STORES = {
    store.name: store
    for store in (
        Store(name="sqlite-full", synchronous="FULL"),
        Store(name="sqlite-normal", synchronous="NORMAL"),
        Store(name="memory", synchronous=None),
    )
}


def one_row_commits(store: Store, folder: Path) -> float:
    """Commits per second of a loop that inserts a row of about the payload's size in each."""
    path = ":memory:" if store.synchronous is None else str(folder / "reference.db")
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {store.synchronous or 'OFF'}")
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
        body = str(PAYLOAD)
        began = time.perf_counter()
        for _ in range(COMMITS):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO t (body) VALUES (?)", (body,))
            connection.execute("COMMIT")
        seconds = time.perf_counter() - began
        (rows,) = connection.execute("SELECT count(*) FROM t").fetchone()
    finally:
        connection.close()
    if rows != COMMITS:
        raise Mismatch(f"the reference stored {rows} of {COMMITS} rows")
    return COMMITS / seconds
