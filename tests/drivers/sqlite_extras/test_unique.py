"""Unique keys in a file: two connections at once, what plain jobs pay, and damaged records (I8)."""

import asyncio
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tenure.clock import SystemClock
from tenure.drivers.sqlite.claim import claim as take
from tenure.drivers.sqlite.connection import Patience, Settings, close, connect
from tenure.drivers.sqlite.enqueue import enqueue
from tenure.drivers.sqlite.fork import Gate
from tenure.drivers.sqlite.record import record
from tenure.drivers.sqlite.transaction import Transaction
from tenure.errors import StoreError
from tenure.outcomes import Completed
from tenure.types import (
    ClaimRequest,
    Enqueued,
    Held,
    NewJob,
    QueueLimit,
    Recorded,
    Retention,
    UniqueKey,
)
from tests.drivers.sqlite_extras.support import claim, jobs, opened

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def keyed(job_id: str, key: str = "key", period: float | None = None) -> NewJob:
    return NewJob(id=job_id, name="work", unique=UniqueKey(key=key, period=period))


def held_keys(path: Path) -> list[tuple[str, str]]:
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT key, holder FROM tenure_unique ORDER BY key").fetchall()
    connection.close()
    return rows


async def test_of_two_connections_that_dispatch_one_key_exactly_one_creates(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    async with opened(path) as one, opened(path) as other:
        for turn in range(20):
            answers = await asyncio.gather(
                one.enqueue([keyed(f"a{turn}", f"key{turn}")]),
                other.enqueue([keyed(f"b{turn}", f"key{turn}")]),
            )
            first, second = answers[0][0], answers[1][0]
            assert Enqueued.CREATED in (first, second)
            assert Held(f"a{turn}") in (first, second) or Held(f"b{turn}") in (first, second)


async def test_a_job_whose_record_of_its_key_is_damaged_frees_the_key(tmp_path: Path) -> None:
    """I8: the key is found by its holder, whatever the job's own record says."""
    path = tmp_path / "jobs.db"
    async with opened(path) as driver:
        await driver.enqueue([keyed("a")])
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("UPDATE tenure_jobs SET unique_key = '{broken'")
        other.close()
        claims = await claim(driver)
        assert claims[0].damage is not None
        await driver.record([(claims[0].hold, Completed())])
        assert held_keys(path) == []
        assert await driver.enqueue([keyed("b")]) == [Enqueued.CREATED]


async def test_prune_drops_keys_whose_time_is_over_in_bounded_steps(tmp_path: Path) -> None:
    """I16: such a key is free already; this is only about what is left of it."""
    path = tmp_path / "jobs.db"
    async with opened(path) as driver:
        some = [keyed(f"j{n}", f"key{n:05}", period=0.001) for n in range(10_100)]
        await driver.enqueue([*some, keyed("kept")], now=NOW)
        later = NOW + timedelta(seconds=1)
        await driver.prune(Retention(), 1, now=later)
        assert len(held_keys(path)) == 101
        await driver.prune(Retention(), 1, now=later)
        assert held_keys(path) == [("key", "kept")]


def test_jobs_without_a_unique_key_touch_no_key(tmp_path: Path) -> None:
    settings = Settings(
        path=str(tmp_path / "jobs.db"), synchronous="NORMAL", busy_timeout=5.0, migrate=True
    )
    connection = connect(settings, Patience(5.0, Gate()), reading=False)
    transaction = Transaction(connection, SystemClock())
    enqueue([keyed("held")], None)(transaction)
    seen: list[str] = []
    connection.set_trace_callback(seen.append)
    enqueue([*jobs(5, queue="plain")], None)(transaction)
    request = ClaimRequest(
        token="t", queues=(QueueLimit("plain", 5),), limit=5, worker="w", lease=30.0
    )
    claims = take(request, None)(transaction)
    record([(claimed.hold, Completed()) for claimed in claims], None)(transaction)
    connection.set_trace_callback(None)
    assert len(claims) == 5
    assert [text for text in seen if "UPDATE tenure_jobs" in text]
    assert not [text for text in seen if "tenure_unique" in text]
    close(connection, Gate())


async def test_a_claim_half_that_cannot_free_a_key_has_taken_nothing(tmp_path: Path) -> None:
    """I15, I2: a job that is unique until it starts keeps its key, and the outcomes stand."""
    path = tmp_path / "jobs.db"
    async with opened(path) as driver:
        key = UniqueKey(key="key", until="started")
        await driver.enqueue([*jobs(1), NewJob(id="keyed", name="work", unique=key)])
        (held,) = await claim(driver, 1)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute(
            "CREATE TRIGGER no BEFORE DELETE ON tenure_unique BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
        request = ClaimRequest(
            token="t", queues=(QueueLimit("default", 9),), limit=9, worker="w", lease=30.0
        )
        answer = await driver.exchange([(held.hold, Completed())], request)
        assert answer.recorded == (Recorded.APPLIED,)
        assert answer.claims == ()
        assert isinstance(answer.error, StoreError)
        assert held_keys(path) == [("key", "keyed")]
        other.execute("DROP TRIGGER no")
        other.close()
        assert [claimed.job.id for claimed in await claim(driver)] == ["keyed"]
