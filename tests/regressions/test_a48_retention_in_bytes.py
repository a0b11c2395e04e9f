"""A48: finished jobs are kept by count; with large payloads they fill the store, and all stops.

The kind of fault: retention without a bound in bytes or time. Here completed jobs of a queue keep
no more bytes than they may, and all that a store has of them has an end.

https://github.com/twentyhq/twenty/issues/26219

Days of work go by in each test: every call is given its instant.
"""

import asyncio
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from tenure.clock import SystemClock
from tenure.driver import Driver
from tenure.drivers.redis import RedisDriver
from tenure.drivers.sqlite import SqliteDriver
from tenure.errors import StoreError
from tenure.outcomes import Completed, Failed, Failure
from tenure.states import State
from tenure.types import (
    ClaimRequest,
    Counts,
    Enqueued,
    Job,
    JobFilter,
    NewJob,
    QueueLimit,
    Retention,
    UniqueKey,
)
from tests.model.subjects import SUBJECTS
from tests.servers.postgres import postgres_server
from tests.servers.redis import RedisServer, redis_server, running

__all__ = ["postgres_server", "redis_server"]  # fixtures

T0 = datetime(2030, 1, 1, tzinfo=UTC)
WAVE = 50  # jobs between two prunes, which are 61 s apart: what no prune may delete
DEAD = 100  # one job of so many fails
FAILURE = Failure(kind="error", message="no", at=T0, attempt=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """So many jobs of so many bytes, half of them a result, with so many bytes to be kept."""

    jobs: int
    size: int
    bound: int

    @property
    def retention(self) -> Retention:
        return Retention(completed_count=1000, completed_bytes=self.bound)

    def batch(self, first: int) -> list[NewJob]:
        payload = b"p" * (self.size // 2)
        return [
            NewJob(id=f"job-{n}", name="work", payload=payload, unique=UniqueKey(key=f"key-{n}"))
            for n in range(first, first + WAVE)
        ]


SMALL = Recipe(jobs=300, size=100_000, bound=10_000_000)
FULL = Recipe(jobs=2000, size=1_000_000, bound=64_000_000)


async def work(driver: Driver, jobs: list[NewJob], size: int, now: datetime) -> None:
    """Dispatch and run the jobs; a few of them fail."""
    assert set(await driver.enqueue(jobs, now=now)) == {Enqueued.CREATED}
    request = ClaimRequest(
        token=uuid4().hex,
        queues=(QueueLimit("default", WAVE),),
        limit=WAVE,
        worker="w",
        lease=30.0,
        max_bytes=2**40,
    )
    result = b"r" * (size - size // 2)
    await driver.record(
        [
            (
                claim.hold,
                Failed(FAILURE) if int(claim.job.id[4:]) % DEAD == 0 else Completed(result),
            )
            for claim in await driver.claim(request, now=now)
        ],
        now=now,
    )


async def prune(driver: Driver, retention: Retention, now: datetime) -> None:
    """As the pruning loop of a worker."""
    while await driver.prune(retention, 500, now=now) == 500:
        pass


async def stored(driver: Driver) -> list[Job[bytes]]:
    found: list[Job[bytes]] = []
    page = await driver.list(JobFilter(), None, 50)
    while True:
        found += page.jobs
        if page.cursor is None:
            return found
        page = await driver.list(JobFilter(), page.cursor, 50)


async def follow(driver: Driver, recipe: Recipe) -> None:
    """The recipe, and what is left of it: after a minute, and when all time is over."""
    now = T0
    for first in range(0, recipe.jobs, WAVE):
        await work(driver, recipe.batch(first), recipe.size, now)
        now += timedelta(seconds=61)
        await prune(driver, recipe.retention, now)
        counts = await driver.counts(now=now)
        assert counts.completed * recipe.size <= recipe.bound, "of bytes more than the bound"
    counts = await driver.counts(now=now)
    assert counts.failed == recipe.jobs // DEAD
    assert counts.completed >= recipe.bound // recipe.size - 1, "no more is deleted than has to be"

    left = [job for job in await stored(driver) if job.state is State.COMPLETED]
    assert sum(len(job.payload) + len(job.result or b"") for job in left) <= recipe.bound
    newest = range(recipe.jobs - 1, 0, -1)
    expected = [f"job-{n}" for n in newest if n % DEAD][: recipe.bound // recipe.size]
    assert {job.id for job in left} == set(expected)

    again = NewJob(id="again", name="work", unique=UniqueKey(key="key-1"))
    assert list(await driver.enqueue([again], now=now)) == [Enqueued.CREATED]
    assert list(await driver.cancel(["again"], now=now))
    now += timedelta(days=15)
    await prune(driver, recipe.retention, now)
    assert await driver.counts(now=now) == Counts()


@pytest.mark.parametrize("name", SUBJECTS)
async def test_completed_jobs_of_a_queue_keep_no_more_bytes_than_they_may(
    name: str, request: pytest.FixtureRequest
) -> None:
    driver = SUBJECTS[name](request)().connect()
    await driver.open()
    try:
        await follow(driver, SMALL)
    finally:
        await driver.close()


@pytest.mark.store("sqlite")
async def test_a_file_stops_growing(tmp_path: Path) -> None:
    """Pages of deleted jobs are used again."""
    path = tmp_path / "jobs.db"
    driver = SqliteDriver(str(path), synchronous="NORMAL", clock=SystemClock())
    await driver.open()
    try:
        await follow(driver, SMALL)
    finally:
        await driver.close()
    connection = sqlite3.connect(path)
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    fresh_and_failed = (WAVE + SMALL.jobs // DEAD) * SMALL.size
    assert pages * size < 1.2 * (SMALL.bound + fresh_and_failed)


@contextmanager
def bounded(folder: Path, memory: str) -> Generator[RedisServer]:
    options = ("--maxmemory", memory, "--maxmemory-policy", "noeviction", "--appendonly", "no")
    with running(folder, *options) as server:
        yield server


@pytest.mark.store("redis")
async def test_a_server_that_was_full_takes_jobs_again_once_they_are_pruned(tmp_path: Path) -> None:
    """Nothing is deleted of the last minute, so that a burst may fill it; a prune needs no room."""
    with bounded(tmp_path, "30mb") as server:
        driver = RedisDriver(server.url, namespace="full", clock=SystemClock())
        await driver.open()
        try:
            waves = [SMALL.batch(first) for first in range(0, 2 * SMALL.jobs, WAVE)]
            done = 0
            with pytest.raises(StoreError):  # noqa: PT012  # which of the waves is open
                for wave in waves:
                    await work(driver, wave, SMALL.size, T0)
                    done += 1
            with pytest.raises(StoreError):
                await work(driver, waves[done + 1], SMALL.size, T0)
            later = T0 + timedelta(seconds=61)
            await prune(driver, SMALL.retention, later)
            await work(driver, waves[done + 2], SMALL.size, later)
        finally:
            await driver.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SUBJECTS, "redis_of_256_mb"])
def test_two_gigabytes_of_jobs_go_through(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    async def run(driver: Driver) -> None:
        await driver.open()
        try:
            await follow(driver, FULL)
        finally:
            await driver.close()

    if name in SUBJECTS:
        asyncio.run(run(SUBJECTS[name](request)().connect()))
    else:
        with bounded(tmp_path, "256mb") as server:
            asyncio.run(run(RedisDriver(server.url, namespace="full", clock=SystemClock())))
