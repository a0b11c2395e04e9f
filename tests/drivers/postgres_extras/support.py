"""What the tests of this folder share: stores, jobs, and waiting for what a server does."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from tenure.clock import SystemClock
from tenure.drivers.postgres import PostgresDriver
from tenure.drivers.postgres.statements import Statements
from tenure.outcomes import Failure
from tenure.types import Claim, ClaimRequest, NewJob, QueueLimit
from tests.servers.postgres import PostgresServer

__all__ = [
    "FAILURE",
    "Forward",
    "claim",
    "fresh",
    "jobs",
    "locked",
    "made",
    "opened",
    "request",
    "run_script",
    "sessions",
    "sql",
    "until",
]

FAILURE = Failure(kind="error", message="no", at=datetime(2030, 1, 1, tzinfo=UTC), attempt=1)
LIMIT = 60.0  # seconds that a script may take; far more than it needs


class Forward(SystemClock):
    """The time of the machine, set forward for durations when it is told."""

    def __init__(self) -> None:
        self._by = 0.0

    def forward(self, seconds: float) -> None:
        self._by += seconds

    def monotonic(self) -> float:
        return super().monotonic() + self._by


def fresh() -> str:
    """The name of a schema that nobody used."""
    return f"t_{uuid4().hex}"


def made(url: str, schema: str | None = None, **options: Any) -> PostgresDriver:
    """An unopened driver, of a store of its own where no schema is given."""
    return PostgresDriver(url, schema=schema or fresh(), clock=SystemClock(), **options)


@asynccontextmanager
async def opened(
    url: str, schema: str | None = None, **options: Any
) -> AsyncGenerator[PostgresDriver]:
    driver = made(url, schema, **options)
    await driver.open()
    try:
        yield driver
    finally:
        await driver.close()


def jobs(count: int, prefix: str = "job", queue: str = "default") -> list[NewJob]:
    return [NewJob(id=f"{prefix}-{n}", name="work", queue=queue) for n in range(count)]


def request(limit: int = 100, *, token: str | None = None, lease: float = 30.0) -> ClaimRequest:
    return ClaimRequest(
        token=token or uuid4().hex,
        queues=(QueueLimit("default", limit),),
        limit=limit,
        worker="w",
        lease=lease,
    )


async def claim(driver: PostgresDriver, limit: int = 100, lease: float = 30.0) -> list[Claim]:
    return list(await driver.claim(request(limit, lease=lease)))


@contextmanager
def locked(server: PostgresServer, schema: str, *ids: str) -> Generator[None]:
    """Rows that somebody else has locked in a transaction that stays open."""
    with server.client() as client:
        client.execute("BEGIN")
        lock = f"SELECT FROM {schema}.jobs WHERE id = ANY (%s) FOR UPDATE".encode()
        client.execute(lock, [list(ids)])
        yield
        client.execute("ROLLBACK")


def sql(name: str, schema: str) -> str:
    """A statement of the driver as psycopg takes it, its arguments by name p1, p2 ..."""
    text = Statements(schema).text(name).replace("%", "%%")
    for number in range(30, 0, -1):
        text = text.replace(f"${number}", f"%(p{number})s")
    return text


def sessions(server: PostgresServer, like: str = "%") -> list[int]:
    """The server processes of clients whose last statement is like that, but for the asking one."""
    rows = server.ask(
        "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' "
        "AND pid <> pg_backend_pid() AND query ILIKE %s",
        like,
    )
    return [pid for (pid,) in rows]


async def until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for what a server does in its own time."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110  # nothing tells of it
            await asyncio.sleep(0.01)


def start_script(text: str, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", text, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


async def run_script(text: str, *arguments: str) -> str:
    """The output of Python text, run in a process of its own, that must succeed."""
    process = start_script(text, *arguments)
    try:
        output, errors = await asyncio.to_thread(process.communicate, timeout=LIMIT)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    return output
