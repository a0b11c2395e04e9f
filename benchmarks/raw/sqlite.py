"""SQLite's raw limit: the driver's operations in one thread, one transaction after the other."""

import sqlite3
import time
from typing import TypeVar

from benchmarks.raw.batches import completed, new_jobs, request
from tenure import SystemClock
from tenure.drivers.sqlite.connection import Patience, Settings, close, connect
from tenure.drivers.sqlite.enqueue import enqueue
from tenure.drivers.sqlite.exchange import exchange
from tenure.drivers.sqlite.fork import Gate
from tenure.drivers.sqlite.transaction import Operation, Transaction

__all__ = ["settle_all"]

R = TypeVar("R")

_FILL = 1000
_CLOCK = SystemClock()


def settle_all(path: str, durability: str, jobs: int, batch: int) -> float:
    """Jobs that are claimed and recorded in a second."""
    settings = Settings(path=path, synchronous=durability, busy_timeout=30.0, migrate=True)
    gate = Gate()
    connection = connect(settings, Patience(settings.busy_timeout, gate), reading=False)
    try:
        for first in range(0, jobs, _FILL):
            _commit(connection, enqueue(new_jobs(min(_FILL, jobs - first)), None))
        began, settled = time.perf_counter(), 0
        claims = _commit(connection, exchange([], request(batch), None)).claims
        while claims:
            settled += len(claims)
            exchanged = _commit(connection, exchange(completed(claims), request(batch), None))
            claims = exchanged.claims
        seconds = time.perf_counter() - began
    finally:
        close(connection, gate)
    if settled != jobs:
        raise AssertionError(f"{settled} of {jobs} jobs were settled")
    return jobs / seconds


def _commit(connection: sqlite3.Connection, operation: Operation[R]) -> R:
    connection.execute("BEGIN IMMEDIATE")
    transaction = Transaction(connection, _CLOCK)
    result = operation(transaction)
    transaction.finish()
    connection.execute("COMMIT")
    return result
