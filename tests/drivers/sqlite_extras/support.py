"""What the tests of this folder share: stores on a temporary file, and scripts in processes."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tenure.clock import SystemClock
from tenure.drivers.sqlite import SqliteDriver
from tenure.types import Claim, ClaimRequest, NewJob, QueueLimit

__all__ = ["LIMIT", "claim", "jobs", "log_of", "opened", "run_script", "start_script"]

LIMIT = 60.0  # seconds that a script may take; far more than it needs


@asynccontextmanager
async def opened(path: Path | str, busy_timeout: float = 30.0) -> AsyncGenerator[SqliteDriver]:
    driver = SqliteDriver(
        str(path), synchronous="NORMAL", busy_timeout=busy_timeout, clock=SystemClock()
    )
    await driver.open()
    try:
        yield driver
    finally:
        await driver.close()


def jobs(count: int, prefix: str = "job", queue: str = "default") -> list[NewJob]:
    return [NewJob(id=f"{prefix}-{n}", name="work", queue=queue) for n in range(count)]


async def claim(driver: SqliteDriver, limit: int = 100, *, token: str = "token") -> list[Claim]:
    request = ClaimRequest(
        token=token, queues=(QueueLimit("default", limit),), limit=limit, worker="w", lease=30.0
    )
    return list(await driver.claim(request))


def log_of(path: Path) -> list[int]:
    """What changes with each write to the file."""
    status = Path(f"{path}-wal").stat()
    return [status.st_size, status.st_mtime_ns]


def start_script(text: str, *arguments: str) -> "subprocess.Popen[str]":
    """Run Python text in a process of its own, with its input and output in pipes."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", text, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


async def run_script(text: str, *arguments: str) -> str:
    """The output of a script that must succeed."""
    process = start_script(text, *arguments)
    try:
        output, errors = await asyncio.to_thread(process.communicate, timeout=LIMIT)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    return output
