"""100,000 jobs in all states go from SQLite to PostgreSQL, and are compared by SQL."""

import asyncio
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tenure.clock import SystemClock
from tenure.driver import Driver
from tenure.drivers.sqlite import SqliteDriver
from tenure.outcomes import Cancelled, Completed, Failed, Failure, Outcome, Retried
from tenure.standing import Limit
from tenure.types import Claim, ClaimRequest, NewJob, QueueLimit, UniqueKey
from tests.edge.cli.running import run
from tests.servers.postgres import PostgresServer

NUMBER = 100_000
_BATCH = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STATES = ("pending", "blocked", "processing", "completed", "failed", "cancelled")
# Of each 100 jobs, by queue: how many wait, are due later, have failed and wait again, ...
_SHARES = {
    **{"waiting": 25, "scheduled": 10, "retrying": 10, "processing": 5, "completed": 30},
    **{"failed": 10, "cancelled": 5, "stalled": 5},
}


def _jobs(first: int) -> list[NewJob]:
    queues = [queue for queue, share in _SHARES.items() for _ in range(share)]
    return [_job(n, queues[n % len(queues)]) for n in range(first, first + _BATCH)]


def _job(n: int, queue: str) -> NewJob:
    return NewJob(
        id=f"job-{n:06}",
        name=f"task.{n % 7}",
        queue=queue,
        payload=bytes([n % 256, 255, 0])
        if n % 50 == 0
        else b'{"n":%d,"\xc3\xa9":"%d"}' % (n, n % 3),
        delay=86_400.0 + n if queue == "scheduled" else None,
        priority=n % 5 - 2,
        max_attempts=3 if n % 4 == 0 else None,
        timeout=n / 8 if n % 9 == 1 else None,
        unique=UniqueKey(key=f"key-{n}", period=1e7 if n % 2 else None) if n % 11 == 0 else None,
        limits=("api", f"customer:{n % 13}") if n % 6 == 0 else (),
        headers={"trace": str(n), "é": "日"} if n % 3 == 0 else {},
    )


async def _fill(path: Path) -> None:
    store = SqliteDriver(str(path), synchronous="NORMAL", clock=SystemClock())
    await store.open()
    try:
        await store.put_limit(Limit(key="customer:*", concurrent=100_000))
        for first in range(0, NUMBER, _BATCH):
            await store.enqueue(_jobs(first))
        await _claimed(store, "processing")
        stalled = await _claimed(store, "stalled", lease=0.001)
        later = SystemClock().now() + timedelta(seconds=1)
        ended = await store.reclaim(NUMBER, [0.0], now=later)
        assert len(ended) == len(stalled)
        for queue in ("retrying", "completed", "failed", "cancelled"):
            claims = await _claimed(store, queue)
            for start in range(0, len(claims), _BATCH):
                some = claims[start : start + _BATCH]
                await store.record([(each.hold, _outcome(queue, each)) for each in some])
    finally:
        await store.close()


async def _claimed(store: Driver, queue: str, lease: float = 3600.0) -> Sequence[Claim]:
    claims: list[Claim] = []
    while True:
        request = ClaimRequest(
            token=uuid4().hex,
            queues=(QueueLimit(queue, _BATCH),),
            limit=_BATCH,
            worker="a worker",
            lease=lease,
        )
        found = await store.claim(request)
        if not found:
            return claims
        claims += found


def _outcome(queue: str, claimed: Claim) -> Outcome:
    failure = Failure(
        kind="error", message=f"{claimed.job.id} é broke", trace="...", at=_EPOCH, attempt=1
    )
    match queue:
        case "retrying":
            return Retried(1e6, failure)
        case "completed":
            return Completed(claimed.job.payload if claimed.job.priority else None)
        case "failed":
            return Failed(failure)
        case _:
            return Cancelled("asked")


# --- both sides, each read by its own SQL ---------------------------------------------------------


def _json(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _in_sqlite(path: Path) -> tuple[list[tuple[Any, ...]], list[Any], list[Any]]:
    with sqlite3.connect(path) as file:
        jobs = [
            (
                *row[:15],
                *(_json(text) for text in row[15:19]),
                *(_bytes(value) for value in row[19:]),
            )
            for row in file.execute(
                "SELECT id, name, queue, state, priority, run_at, attempt, stalls, serial,"
                " max_attempts, timeout, cancel_requested, created_at, updated_at, finished_at,"
                " unique_key, limits, headers, error, content, progress, result, payload"
                " FROM tenure_jobs ORDER BY seq"
            )
        ]
        history = file.execute(
            "SELECT j.id, h.serial, h.attempt, h.outcome, h.started_at, h.ended_at, h.worker,"
            " h.kind, h.message FROM tenure_history AS h JOIN tenure_jobs AS j ON j.seq = h.job"
            " ORDER BY j.seq, h.serial"
        ).fetchall()
        keys = file.execute(
            "SELECT key, holder, until, throttle FROM tenure_unique ORDER BY key"
        ).fetchall()
    file.close()
    return jobs, history, keys


def _micros(column: str) -> str:
    return f"(extract(epoch FROM {column}) * 1000000)::bigint"


def _in_postgres(server: PostgresServer, schema: str) -> tuple[list[Any], list[Any], list[Any]]:
    jobs = [
        (
            *row[:15],
            _unique(row[15:20]),
            row[20],
            *(_json(text) for text in row[21:23]),
            *(_bytes(value) for value in row[23:]),
        )
        for row in server.ask(
            f"SELECT id, name, queue, state, priority, {_micros('run_at')}, attempt, stalls,"
            " serial,"
            f" max_attempts, timeout, cancel_requested::integer, {_micros('created_at')},"
            f" {_micros('updated_at')}, {_micros('finished_at')}, key, key_until, key_period,"
            " key_mode, key_max_wait, limits, headers, error, content, progress, result, payload"
            f" FROM {schema}.jobs ORDER BY seq"
        )
    ]
    history = [
        (*row[:3], how["outcome"], *row[3:6], how["kind"], how["message"])
        for *row, text in server.ask(
            f"SELECT j.id, h.serial, h.attempt, {_micros('h.started_at')}, {_micros('h.ended_at')},"
            f" h.worker, h.how FROM {schema}.history AS h JOIN {schema}.jobs AS j ON j.seq = h.job"
            " ORDER BY j.seq, h.serial"
        )
        for how in [json.loads(text)]
    ]
    keys = server.ask(
        f"SELECT key, job_id, {_micros('until')}, throttle::integer FROM {schema}.keys"
        ' ORDER BY key COLLATE "C"'
    )
    return jobs, history, keys


def _unique(columns: Sequence[Any]) -> Any:
    if columns[0] is None:
        return None
    return dict(zip(("key", "until", "period", "mode", "max_wait"), columns, strict=True))


def _moved(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row of a job as it is to arrive: one that was being processed waits again."""
    if _STATES[row[3]] != "processing":
        return row
    attempt, serial = row[6], row[8]
    return (*row[:3], 0, *row[4:6], attempt - 1, row[7], serial + 1, *row[9:])


@pytest.mark.slow
def test_a_hundred_thousand_jobs_in_all_states_are_moved(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    path, schema, file = tmp_path / "jobs.db", f"large_{uuid4().hex}", str(tmp_path / "all.ndjson")
    asyncio.run(_fill(path))
    clock = [time.monotonic()]
    exported = run("export", file, "--json", url=f"sqlite:///{path}")
    clock.append(time.monotonic())
    assert (exported.code, exported.err) == (0, "")
    assert exported.json["jobs"] == NUMBER
    imported = run("import", file, "--json", url=f"{postgres_server.url}?schema={schema}")
    clock.append(time.monotonic())
    assert (imported.code, imported.err) == (0, "")
    assert (imported.json["stored"], imported.json["known"]) == (NUMBER, 0)

    jobs, history, keys = _in_sqlite(path)
    found = _in_postgres(postgres_server, schema)
    states: Counter[str] = Counter(_STATES[int(row[3])] for row in jobs)
    assert len(jobs) == NUMBER
    assert set(states) == set(_STATES) - {"blocked"}
    assert exported.json["states"] == states
    assert [row[:23] for row in found[0]] == [_moved(row) for row in jobs]
    assert found[1] == history
    assert found[2] == keys
    again = run("import", file, "--json", url=f"{postgres_server.url}?schema={schema}")
    clock.append(time.monotonic())
    assert (again.json["stored"], again.json["known"]) == (0, NUMBER)
    times = ", ".join(f"{after - before:.1f} s" for before, after in pairwise(clock))
    size = Path(file).stat().st_size
    print(f"{dict(states)}, {len(history)} attempts, {len(keys)} keys, {size:,} bytes")
    print(f"export, import, import again: {times}")
