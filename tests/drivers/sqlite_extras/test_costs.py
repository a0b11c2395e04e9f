"""What a statement costs, as SQLite plans it and in steps of its machine: never in seconds."""

import random
import re
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec.structs import replace

from tenure.clock import SystemClock
from tenure.drivers.sqlite import SqliteDriver, inspection
from tenure.drivers.sqlite.claim import claim as take
from tenure.drivers.sqlite.connection import Patience, Settings, close, connect
from tenure.drivers.sqlite.enqueue import enqueue
from tenure.drivers.sqlite.exchange import exchange
from tenure.drivers.sqlite.fork import Gate
from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Operation, Transaction
from tenure.outcomes import (
    Cancelled,
    Completed,
    Failed,
    Failure,
    Outcome,
    Released,
    Retried,
    Snoozed,
)
from tenure.states import State
from tenure.types import ClaimRequest, JobFilter, ManualRetry, Move, NewJob, QueueLimit, Retention
from tests.drivers.sqlite_extras.support import claim, jobs, log_of, opened

T = TypeVar("T")

HOT = [
    "claim_due",
    "claim_news",
    "claim_take",
    "claim_whole",
    "claims_add",
    "claims_drop",
    "claims_forget",
    "claims_recent",
    "contents_by_ids",
    "due_after",
    "due_count",
    "finished_before",
    "gone_by_ids",
    "gone_forget",
    "gone_remember",
    "history_add",
    "history_cut",
    "history_delete",
    "history_of",
    "holder_change",
    "holder_mark",
    "holds_get",
    "holds_set",
    "job_get",
    "jobs_delete",
    "kept_due_after",
    "kept_due_count",
    "kept_later_count",
    "lane_at",
    "lane_by_head",
    "lane_change",
    "lane_job",
    "lane_keep",
    "lane_key_after",
    "lane_next",
    "lane_parked",
    "lane_queue_after",
    "lanes_exposed",
    "later_count",
    "lease_extend",
    "limits_on",
    "marks_by_ids",
    "newest_seq",
    "priority_below",
    "purge_check",
    "rate_over",
    "schedule_drop",
    "schedule_pause",
    "schedule_resume",
    "settle_completed",
    "settle_find",
    "settle_other",
    "settle_plain",
    "tick_open",
    "tick_pass",
    "unique_forget",
    "unique_free",
    "unique_held",
]
# These look at all running jobs, and sort them.
RUNNING = ["claim_held", "holds_true", "leases_expired"]
# These stop after a fixed number of rows.
LISTS = ["list_floor", "list_page"]
STATES = [None, State.PROCESSING, State.FAILED, State.CANCELLED]
SMALL = r"USING INDEX tenure_(jobs_processing|jobs_unsuccessful|holds_free)"
A_TABLE = re.compile(rf"SCAN (tenure_(?!queues)\w+|[ghjlu])\b(?! {SMALL})")


async def plan(folder: Path, sql: str) -> list[str]:
    async with opened(folder / "jobs.db"):
        pass
    connection = sqlite3.connect(folder / "jobs.db")
    given = [1] * len(set(re.findall(r"\?\d+", sql)))
    steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", given)]
    connection.close()
    return steps


@pytest.mark.parametrize("name", HOT + RUNNING)
async def test_hot_statements_seek(tmp_path: Path, name: str) -> None:
    """No step walks a table of jobs, and only what looks at running jobs sorts."""
    steps = await plan(tmp_path, statement(name))
    assert not [step for step in steps if A_TABLE.match(step)], steps
    if name in HOT:
        assert not [step for step in steps if "TEMP B-TREE" in step], steps


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("state", STATES)
async def test_lists_follow_an_index_in_order(
    tmp_path: Path, name: str, state: State | None
) -> None:
    steps = await plan(tmp_path, statement(name).format(source=inspection.source(state)))
    assert not [step for step in steps if A_TABLE.match(step)], steps
    assert not [step for step in steps if "TEMP B-TREE" in step], steps


def steps_of_a_claim(path: Path, ahead: int) -> int:
    """How many instructions of SQLite's machine a claim of sixteen takes, with others ahead."""
    settings = Settings(path=str(path), synchronous="NORMAL", busy_timeout=5.0, migrate=True)
    connection = connect(settings, Patience(5.0, Gate()), reading=False)
    transaction = Transaction(connection, SystemClock())
    later = datetime.now(UTC) + timedelta(days=1)
    future = [NewJob(id=f"f{n}", name="work", at=later, priority=9) for n in range(ahead)]
    enqueue([*future, *jobs(100)], None)(transaction)
    taken = 0

    def step() -> int:
        nonlocal taken
        taken += 1
        return 0

    connection.set_progress_handler(step, 1)
    request = ClaimRequest(
        token="t", queues=(QueueLimit("default", 16),), limit=16, worker="w", lease=30.0
    )
    assert len(take(request, None)(transaction)) == 16
    connection.set_progress_handler(None, 1)
    close(connection, Gate())
    return taken


def test_future_jobs_of_a_better_priority_cost_a_claim_nothing(tmp_path: Path) -> None:
    few = steps_of_a_claim(tmp_path / "few.db", 1)
    many = steps_of_a_claim(tmp_path / "many.db", 20_000)
    assert many <= few * 1.5


async def test_an_empty_claim_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    async with opened(path) as driver:
        before = log_of(path)
        assert await claim(driver) == []
        assert log_of(path) == before


FAILURE = Failure(kind="error", message="no", at=datetime(2030, 1, 1, tzinfo=UTC), attempt=1)
OUTCOMES: list[Outcome] = [
    Completed(b"1" * 100),
    Completed(),
    Failed(FAILURE),
    Cancelled("asked"),
    Released("full"),
    Released("full", 5.0),
    Retried(5.0, FAILURE),
    Snoozed(0.0),
]


@pytest.mark.parametrize("seed", range(5))
async def test_totals_equal_a_full_count_after_anything(tmp_path: Path, seed: int) -> None:
    """Random operations, bad ones among them; then the kept totals against counted jobs."""
    path = tmp_path / "jobs.db"
    chance = random.Random(seed)
    async with opened(path) as driver:
        now = datetime(2030, 1, 1, tzinfo=UTC)
        ids = [f"job-{n}" for n in range(40)]
        for turn in range(120):
            now += timedelta(seconds=chance.choice([0, 1, 20, 70]))
            await step(driver, chance, ids, turn, now)
    connection = sqlite3.connect(path)
    kept = connection.execute(
        "SELECT queue, state, n, bytes FROM tenure_totals WHERE n <> 0 OR bytes <> 0"
    ).fetchall()
    counted = connection.execute(
        "SELECT queue, state, count(*), "
        "sum(iif(state = 3, length(payload) + ifnull(length(result), 0), 0)) "
        "FROM tenure_jobs GROUP BY queue, state"
    ).fetchall()
    assert sorted(kept) == sorted(counted)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


async def step(
    driver: SqliteDriver, chance: random.Random, ids: list[str], turn: int, now: datetime
) -> None:
    some = chance.choices(ids, k=5)
    match chance.randrange(10):
        case 0 | 1 | 2:
            fresh = [
                NewJob(
                    id=job_id,
                    name="work",
                    queue=chance.choice(["default", "other"]),
                    payload=b"p" * 500 * int(job_id.removeprefix("job-")),
                )
                for job_id in set(some)
            ]
            await driver.enqueue(fresh, now=now)
        case 3 | 4:
            claims = await claim(driver, 3, token=f"t{turn}")
            items = [(claimed.hold, chance.choice(OUTCOMES)) for claimed in claims]
            await driver.record(items[:2], now=now)
        case 5:
            await driver.reclaim(10, [0.0, 5.0], now=now)
        case 6:
            await driver.cancel(some, now=now)
            await driver.retry([ManualRetry(job_id) for job_id in some[:2]], now=now)
        case 7:
            await driver.delete(some[:2], now=now)
        case 8:
            await driver.move([Move(job_id=some[0], queue=chance.choice(["a", "b"]))], now=now)
            await driver.purge(JobFilter(queue="a"), 1, now=now)
        case _:
            await driver.prune(Retention(completed=60.0, completed_count=2), 3, now=now)
            await driver.prune(Retention(completed_bytes=9000), 2, now=now)


def test_a_batch_takes_a_fixed_number_of_statements(tmp_path: Path) -> None:
    """Each statement takes and gives up the interpreter's lock, as does each row that is read."""
    settings = Settings(
        path=str(tmp_path / "jobs.db"), synchronous="NORMAL", busy_timeout=5.0, migrate=True
    )
    connection = connect(settings, Patience(5.0, Gate()), reading=False)
    statements: list[str] = []

    def run(operation: Operation[T]) -> T:
        transaction = Transaction(connection, SystemClock())
        connection.set_trace_callback(statements.append)
        answer = operation(transaction)
        transaction.finish()
        connection.set_trace_callback(None)
        return answer

    try:
        for size in (16, 64):
            request = ClaimRequest(
                token=f"t{size}",
                queues=(QueueLimit("default", size),),
                limit=size,
                worker="w",
                lease=30.0,
            )
            run(enqueue(jobs(3 * size, f"s{size}"), None))
            claims = run(take(request, None))
            statements.clear()
            done = [(claimed.hold, Completed()) for claimed in claims]
            answer = run(exchange(done, replace(request, token=f"u{size}"), None))
            assert len(answer.claims) == size
            assert len(statements) <= 10, statements
    finally:
        close(connection, Gate())
