"""Looks at a server's settings and state for what may lose jobs or slow them down. Reads only."""

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from tenure.clock import Clock
from tenure.drivers.findings import Finding, error, fine, skew, warning
from tenure.drivers.postgres.client import Refusal, connect
from tenure.drivers.postgres.options import Options
from tenure.drivers.postgres.session import is_pooled
from tenure.drivers.postgres.statements import Statements

__all__ = ["ServerFacts", "examine", "judged"]

_TIMEOUT = 3.0
_OLDEST = 150_000
_LONG = 300.0  # seconds
_FULL = 0.9


class ServerFacts(Struct, frozen=True, kw_only=True):
    """See queries/examination.sql."""

    version: int
    fsync: str
    synchronous_commit: str
    full_page_writes: str
    standby: bool
    connections: int
    most: int
    open_for: float | None
    open_by: int | None


async def examine(url: str, clock: Clock) -> list[Finding]:
    """What there is to say of the server. Raises `StoreError`."""
    options = Options(
        url=url, schema="tenure", migrate=False, pool_size=1, timeout=_TIMEOUT, pooled=None
    )
    connection = await connect(options.address, clock, prepare=False)
    try:
        text = Statements(options.schema).text("examination")
        *row, there = (await connection.fetch(text, (), _TIMEOUT))[0]
        pooled = await is_pooled(connection, options)
    except Refusal as refusal:
        raise refusal.error from refusal
    finally:
        await connection.close()
    found = list(judged(ServerFacts(**dict(zip(ServerFacts.__struct_fields__, row, strict=True)))))
    found.append(_between(pooled))
    assert isinstance(there, datetime)
    found.append(skew((clock.now() - there).total_seconds()))
    return found


def judged(facts: ServerFacts) -> Iterator[Finding]:
    """What the facts say."""
    version = f"PostgreSQL {facts.version // 10_000}.{facts.version % 10_000}"
    if facts.version < _OLDEST:
        yield error("server", f"{version} is too old", "use PostgreSQL 15 or later")
    else:
        yield fine("server", version)
    if facts.fsync != "on":
        yield error("durability", "fsync is off: a crash may damage everything", "set fsync on")
    elif facts.synchronous_commit == "off":
        yield warning(
            "durability",
            "synchronous_commit is off: a crash loses the jobs of the last moment",
            "set synchronous_commit on where no accepted job may be lost",
        )
    else:
        yield fine("durability", f"fsync, synchronous_commit {facts.synchronous_commit}")
    if facts.full_page_writes != "on":
        yield warning(
            "durability", "full_page_writes is off: a crash may damage pages", "set it on"
        )
    if facts.standby:
        yield error("role", "this server is a standby", "name the primary in the URL")
    if facts.connections > _FULL * facts.most:
        yield warning(
            "connections",
            f"{facts.connections} of {facts.most} are in use",
            "raise max_connections, lower pool_size, or put PgBouncer in front of the dispatchers",
        )
    if facts.open_for is not None and facts.open_for > _LONG:
        yield warning(
            "transactions",
            f"process {facts.open_by} has had a transaction open for {facts.open_for:,.0f} s, "
            "which keeps dead rows alive",
            "end it, and set idle_in_transaction_session_timeout",
        )


def _between(pooled: bool) -> Finding:
    if pooled:
        return warning(
            "pooler",
            "connected through a pooler: workers look for jobs every half second",
            "give workers the server's own address; programs that only dispatch may stay",
        )
    return fine("pooler", "none")
