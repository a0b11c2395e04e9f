"""What pruning costs: no look at what is kept, and never a long wait for others."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tenure.clock import SystemClock
from tenure.drivers.sqlite.claim import claim as take
from tenure.drivers.sqlite.connection import Patience, Settings, close, connect
from tenure.drivers.sqlite.deletion import Pruned, prune
from tenure.drivers.sqlite.enqueue import enqueue
from tenure.drivers.sqlite.fork import Gate
from tenure.drivers.sqlite.record import record
from tenure.drivers.sqlite.transaction import Transaction
from tenure.outcomes import Completed
from tenure.types import ClaimRequest, NewJob, QueueLimit, Retention
from tests.drivers.sqlite_extras.support import claim, jobs, opened

T0 = datetime(2030, 1, 1, tzinfo=UTC)
MEGABYTE = 1_000_000


def steps_of_a_prune(path: Path, kept: int, beyond: int) -> int:
    """How many instructions of SQLite's machine it takes to delete `beyond` of more jobs."""
    settings = Settings(path=str(path), synchronous="NORMAL", busy_timeout=5.0, migrate=True)
    connection = connect(settings, Patience(5.0, Gate()), reading=False)
    transaction = Transaction(connection, SystemClock())
    enqueue(jobs(kept + beyond), T0)(transaction)
    request = ClaimRequest(
        token="t", queues=(QueueLimit("default", 9000),), limit=9000, worker="w", lease=30.0
    )
    claims = take(request, T0)(transaction)
    record([(each.hold, Completed()) for each in claims], T0)(transaction)
    transaction.finish()
    taken = 0

    def step() -> int:
        nonlocal taken
        taken += 1
        return 0

    connection.set_progress_handler(step, 1)
    keep = Retention(completed_bytes=kept * len(b"null"))
    later = T0 + timedelta(minutes=2)
    pruned = prune(keep, 500, later)(Transaction(connection, SystemClock()))
    connection.set_progress_handler(None, 1)
    close(connection, Gate())
    assert pruned == Pruned(number=beyond, cut=False)
    return taken


def test_a_prune_looks_at_no_job_that_stays(tmp_path: Path) -> None:
    for beyond in (0, 3):
        few = steps_of_a_prune(tmp_path / f"few-{beyond}.db", 10, beyond)
        many = steps_of_a_prune(tmp_path / f"many-{beyond}.db", 5000, beyond)
        assert many <= few * 1.2


async def test_large_jobs_are_deleted_in_steps_between_which_others_write(tmp_path: Path) -> None:
    """All in one transaction would keep the lock for seconds."""
    ended = datetime.now(UTC) - timedelta(hours=1)
    async with opened(tmp_path / "jobs.db") as driver:
        await driver.enqueue(
            [NewJob(id=f"job-{n}", name="work", payload=bytes(MEGABYTE)) for n in range(40)]
        )
        claims = [each for _ in range(5) for each in await claim(driver, 100)]
        assert len(claims) == 40
        await driver.record([(each.hold, Completed()) for each in claims], now=ended)
        pruning = asyncio.create_task(driver.prune(Retention(completed_bytes=0), 500))
        left: list[int] = []
        while not pruning.done():
            await driver.enqueue([NewJob(id=random.randbytes(8).hex(), name="work")])
            left.append((await driver.counts()).completed)
        assert await pruning == 40
        between = {number for number in left if 0 < number < 40}
        assert len(between) >= 2, f"others saw {left}"
