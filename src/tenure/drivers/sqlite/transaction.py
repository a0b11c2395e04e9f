"""What an operation sees: one transaction, its time, and what it owes at the end.

An operation is a function of a transaction. It may run more than once (a group that failed is run
again one by one), so it keeps what it learns in its return value only. It never begins, commits
or rolls back; the clerk does.
"""

import sqlite3
from collections.abc import Callable, Generator, Sequence
from datetime import datetime
from typing import Any, TypeVar

from tenure.clock import Clock
from tenure.drivers.sqlite.encoding import COMPLETED, json_list, micros
from tenure.drivers.sqlite.statements import statement
from tenure.standing import Limit, governing

__all__ = ["Operation", "Row", "Transaction"]

R = TypeVar("R")
Row = tuple[Any, ...]
Operation = Callable[["Transaction"], R]

_ADD = statement("totals_add")
_NEWEST = statement("newest_seq")
_GONE_ANY = statement("gone_any")
_LIMITS = statement("limits_all")
_LIMIT_OF = statement("limits_on")

_FEW = 50  # limits


class Transaction:
    """One transaction on one connection, shared by the operations of a group."""

    __slots__ = (
        "_clock",
        "_connection",
        "_gone",
        "_kept",
        "_limits",
        "_moved",
        "_newest",
        "_now",
        "execute",
        "executemany",
        "wakes",
    )

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._now: int | None = None
        self._newest: int | None = None
        self._gone: bool | None = None
        self._limits: list[Limit] | None = None
        self._moved: dict[tuple[str, int], int] = {}
        self._kept: dict[str, int] = {}
        self.execute: Callable[..., sqlite3.Cursor] = connection.execute
        self.executemany: Callable[..., sqlite3.Cursor] = connection.executemany
        # Set by an operation that may have made something claimable.
        self.wakes: bool = False

    @property
    def alive(self) -> bool:
        """Whether it can go on; an error of the disk ends it, that of one statement does not."""
        return self._connection.in_transaction

    def time(self, now: datetime | None) -> int:
        """The given instant, or the store's now, in microseconds.

        The store's is read once, under the write lock, so that due times follow the order of
        arrival, also across processes.
        """
        if now is not None:
            return micros(now)
        if self._now is None:
            self._now = micros(self._clock.now())
        return self._now

    def arrivals(self, count: int) -> range:
        """The next arrival numbers. Nobody else can give out any before the commit."""
        newest: int | None = self._newest
        if newest is None:
            (newest,) = self.execute(_NEWEST).fetchone()
            assert newest is not None  # the statement says 0 for none
        self._newest = newest + count
        return range(newest + 1, newest + 1 + count)

    def remembers_deleted(self) -> bool:
        """Whether any deleted id is still known: nearly always not, so asked once for a group."""
        if self._gone is None:
            (found,) = self.execute(_GONE_ANY).fetchone()
            self._gone = bool(found)
        return self._gone

    def deleted_some(self) -> None:
        """Note that this transaction has added to the deleted ids."""
        self._gone = True

    def limit_of(self, key: str) -> Limit | None:
        """The limit that governs a key. A few are read at once, for the group; many one by one."""
        if self._limits is None:
            self._limits = [
                Limit(key=name, per_second=rate, concurrent=most)
                for name, rate, most in self.rows(_LIMITS, (_FEW + 1,))
            ]
        if len(self._limits) <= _FEW:
            return governing(key, self._limits)
        names = [key, *(f"{key[:length]}*" for length in range(len(key) + 1))]
        rows = self.rows(_LIMIT_OF, (json_list(names),))
        return governing(
            key, (Limit(key=name, per_second=rate, concurrent=most) for name, rate, most in rows)
        )

    def forget_limits(self) -> None:
        """Note that this transaction has changed the limits."""
        self._limits = None

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """All rows of a query."""
        try:
            return self.execute(sql, parameters).fetchall()
        except sqlite3.OperationalError as error:
            return self._reread(error, sql, parameters)

    def each(self, sql: str, parameters: Sequence[object] = ()) -> Generator[Row]:
        """The rows of a query, read one by one, for a caller that may stop early."""
        given = 0
        try:
            for row in self.execute(sql, parameters):
                yield row
                given += 1
        except sqlite3.OperationalError as error:
            yield from self._reread(error, sql, parameters)[given:]

    def _reread(
        self, error: sqlite3.OperationalError, sql: str, parameters: Sequence[object]
    ) -> list[Row]:
        """The rows of a query that failed for a stored text that is no UTF-8.

        STRICT tables do not look into text. Left alone, one such text would fail every query that
        meets it, and so harm the jobs that were asked for with it (I12).
        """
        if "decode" not in str(error):
            raise error
        self._connection.text_factory = _lenient
        try:
            return self.execute(sql, parameters).fetchall()
        finally:
            self._connection.text_factory = str

    def moved(self, queue: str, before: int | None, after: int | None, n: int = 1) -> None:
        """Note that n jobs went from one state to another; None is outside the store."""
        moved = self._moved
        if before is not None:
            moved[queue, before] = moved.get((queue, before), 0) - n
        if after is not None:
            moved[queue, after] = moved.get((queue, after), 0) + n

    def kept(self, queue: str, size: int) -> None:
        """Note of how many bytes the jobs are that `moved` was told to be completed, or (below 0)
        to be so no longer.
        """
        self._kept[queue] = self._kept.get(queue, 0) + size

    def finish(self) -> None:
        """Write the totals, once for the whole group. Called right before the commit."""
        changes: list[tuple[str, int, int, int]] = []
        for (queue, state), n in self._moved.items():
            size = self._kept.get(queue, 0) if state == COMPLETED else 0
            if n or size:
                changes.append((queue, state, n, size))
        if changes:
            self.executemany(_ADD, changes)


def _lenient(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
