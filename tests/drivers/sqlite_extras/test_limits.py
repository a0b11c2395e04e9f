"""Limits in a file: what claims pay, two connections at once, damage, and claims that fail."""

import asyncio
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tenure.clock import SystemClock
from tenure.drivers.sqlite.claim import claim as take
from tenure.drivers.sqlite.connection import Patience, Settings, close, connect
from tenure.drivers.sqlite.enqueue import enqueue
from tenure.drivers.sqlite.fork import Gate
from tenure.drivers.sqlite.limits import put_limit
from tenure.drivers.sqlite.record import record
from tenure.drivers.sqlite.transaction import Transaction
from tenure.errors import StoreError
from tenure.outcomes import Completed
from tenure.standing import Limit
from tenure.types import ClaimRequest, NewJob, QueueLimit, Recorded, Retention
from tests.drivers.sqlite_extras.support import claim, jobs, log_of, opened

ONE_AT_ONCE = Limit(key="key", concurrent=1)
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def limited(count: int, prefix: str = "limited") -> list[NewJob]:
    return [NewJob(id=f"{prefix}-{n}", name="work", limits=("key",)) for n in range(count)]


def request(token: str, limit: int = 16) -> ClaimRequest:
    return ClaimRequest(
        token=token, queues=(QueueLimit("default", limit),), limit=limit, worker="w", lease=30.0
    )


def ask(path: Path, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path, isolation_level=None)
    rows = connection.execute(sql).fetchall()
    connection.close()
    return rows


class Store:
    """One connection to a file, on which the test runs operations itself."""

    def __init__(self, path: Path) -> None:
        settings = Settings(path=str(path), synchronous="NORMAL", busy_timeout=5.0, migrate=True)
        self.connection = connect(settings, Patience(5.0, Gate()), reading=False)
        self.transaction = Transaction(self.connection, SystemClock())

    def steps(self, work: Callable[[], object]) -> int:
        """How many instructions of SQLite's machine it takes."""
        taken = 0

        def step() -> int:
            nonlocal taken
            taken += 1
            return 0

        self.connection.set_progress_handler(step, 1)
        work()
        self.connection.set_progress_handler(None, 1)
        return taken

    def statements(self, work: Callable[[], object]) -> list[str]:
        seen: list[str] = []
        self.connection.set_trace_callback(seen.append)
        work()
        self.connection.set_trace_callback(None)
        return seen

    def close(self) -> None:
        close(self.connection, Gate())


# --- what claims pay ----------------------------------------------------------------------------


def test_jobs_without_limits_touch_no_data_of_limits(tmp_path: Path) -> None:
    """But for one look, in the statement that asks for paused queues, which finds nothing."""
    store = Store(tmp_path / "jobs.db")
    put_limit(ONE_AT_ONCE)(store.transaction)

    def work() -> None:
        enqueue(jobs(5), None)(store.transaction)
        claims = take(request("t"), None)(store.transaction)
        assert len(claims) == 5
        record([(claimed.hold, Completed()) for claimed in claims], None)(store.transaction)

    tables = ("tenure_lanes", "tenure_claims", "tenure_limits", "tenure_holds", "SAVEPOINT")
    seen = store.statements(work)
    assert len([text for text in seen if "tenure_jobs" in text]) >= 4
    looks = [text for text in seen if any(table in text for table in tables)]
    assert len(looks) == 1
    assert "tenure_queues" in looks[0]
    store.close()


def steps_behind(path: Path, ahead: list[NewJob]) -> tuple[int, int]:
    """What a claim of sixteen others takes behind jobs of a full key: without them, and with."""
    store = Store(path)
    put_limit(ONE_AT_ONCE)(store.transaction)
    enqueue(limited(1, "holder"), None)(store.transaction)
    assert len(take(request("holder"), None)(store.transaction)) == 1
    few = jobs(50, "few")
    enqueue(few, None)(store.transaction)
    without = store.steps(lambda: take(request("few"), None)(store.transaction))
    enqueue(ahead, None)(store.transaction)
    enqueue(jobs(50, "many"), None)(store.transaction)
    assert len(take(request("rest", 34), None)(store.transaction)) == 34
    claims = store.steps(lambda: take(request("many"), None)(store.transaction))
    got = ask_within(store, "SELECT count(*) FROM tenure_jobs WHERE token = 'many'")
    assert got == 16
    store.close()
    return without, claims


def ask_within(store: Store, sql: str) -> int:
    (value,) = store.connection.execute(sql).fetchone()
    return int(value)


def test_jobs_of_a_full_key_cost_the_claims_of_others_nothing(tmp_path: Path) -> None:
    without, behind = steps_behind(tmp_path / "jobs.db", limited(20_000))
    assert behind <= without * 1.5


def test_nor_do_they_where_each_has_a_key_of_its_own_besides(tmp_path: Path) -> None:
    ahead = [NewJob(id=f"own-{n}", name="work", limits=("key", f"user:{n}")) for n in range(5000)]
    without, behind = steps_behind(tmp_path / "jobs.db", ahead)
    assert behind <= without * 1.5


def test_a_claim_looks_at_a_bounded_number_of_jobs_that_a_limit_then_holds(tmp_path: Path) -> None:
    """All came due when their common key had room: the look at each is shared among claims."""
    store = Store(tmp_path / "jobs.db")
    put_limit(ONE_AT_ONCE)(store.transaction)
    many = [NewJob(id=f"own-{n}", name="work", limits=("key", f"u{n}")) for n in range(9000)]
    enqueue([*many, *jobs(1)], None)(store.transaction)
    taken: list[int] = []
    for turn in range(4):
        store.transaction.wakes = False
        taken.append(len(take(request(f"t{turn}"), None)(store.transaction)))
        assert store.transaction.wakes == (turn < 2)
    assert taken == [1, 0, 1, 0]
    store.close()


async def test_an_empty_claim_writes_nothing_while_lanes_are_parked(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    async with opened(path) as driver:
        await driver.put_limit(ONE_AT_ONCE)
        await driver.enqueue(limited(3))
        assert len(await claim(driver)) == 1
        before = log_of(path)
        assert await claim(driver) == []
        assert log_of(path) == before


async def test_nothing_is_left_of_lanes_holds_and_claims(tmp_path: Path) -> None:
    """I16"""
    path = tmp_path / "jobs.db"
    async with opened(path) as driver:
        await driver.put_limit(Limit(key="key", per_second=100, concurrent=2))
        await driver.enqueue(limited(5), now=NOW)
        for n in range(3):
            claims = await driver.claim(request(f"t{n}"), now=NOW + timedelta(seconds=n))
            await driver.record([(claimed.hold, Completed()) for claimed in claims], now=NOW)
        assert ask(path, "SELECT * FROM tenure_lanes") == []
        assert ask(path, "SELECT * FROM tenure_holds") == []
        await driver.prune(Retention(), 10, now=NOW + timedelta(seconds=5))
        assert ask(path, "SELECT * FROM tenure_claims") == []


async def test_a_lane_that_waited_for_a_hold_then_waits_for_the_rate_no_longer_than_that(
    tmp_path: Path,
) -> None:
    """Two places come free at once, and the rate lets only one lane through at first."""
    async with opened(tmp_path / "jobs.db") as driver:
        await driver.put_limit(Limit(key="key", concurrent=3, per_second=1))
        await driver.enqueue(limited(3), now=NOW)
        seconds = [NOW + timedelta(seconds=n) for n in range(7)]
        holds = [(await driver.claim(request(f"t{n}"), now=seconds[n]))[0].hold for n in range(3)]
        await driver.enqueue(limited(1, "first"), now=seconds[4])
        other = NewJob(id="second", name="work", limits=("key", "other"))
        await driver.enqueue([other], now=seconds[4])
        await driver.record([(hold, Completed()) for hold in holds[:2]], now=seconds[5])
        first = await driver.claim(request("first"), now=seconds[5])
        assert [claimed.job.id for claimed in first] == ["first-0"]
        assert await driver.next_due(["default"], now=seconds[5]) == seconds[6]
        second = await driver.claim(request("second"), now=seconds[6])
        assert [claimed.job.id for claimed in second] == ["second"]


# --- two connections ----------------------------------------------------------------------------


async def test_two_connections_never_take_more_than_is_left(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    async with opened(path) as one, opened(path) as other:
        await one.put_limit(Limit(key="key", concurrent=3))
        await one.enqueue(limited(40))
        done = 0
        for turn in range(40):
            first, second = await asyncio.gather(
                claim(one, 2, token=f"a{turn}"), claim(other, 2, token=f"b{turn}")
            )
            claims = [*first, *second]
            assert len(claims) == min(3, 40 - done)
            await asyncio.gather(
                one.record([(claimed.hold, Completed()) for claimed in first]),
                other.record([(claimed.hold, Completed()) for claimed in second]),
            )
            done += len(claims)
            if done == 40:
                return


# --- damage and failures ------------------------------------------------------------------------


async def test_a_damaged_head_lets_the_next_of_its_lane_come(tmp_path: Path) -> None:
    """I12: it is claimed, with its damage, and nobody waits for it."""
    path = tmp_path / "jobs.db"
    async with opened(path) as driver:
        await driver.put_limit(ONE_AT_ONCE)
        await driver.enqueue(limited(3))
        ask(path, "UPDATE tenure_jobs SET limits = '{broken' WHERE id = 'limited-0'")
        claims = await claim(driver)
        assert [claimed.job.id for claimed in claims] == ["limited-0", "limited-1"]
        assert [claimed.damage is None for claimed in claims] == [False, True]
        await driver.record([(claimed.hold, Completed()) for claimed in claims])
        assert [claimed.job.id for claimed in await claim(driver)] == ["limited-2"]


async def test_a_damaged_running_job_holds_others_until_the_next_prune_only(tmp_path: Path) -> None:
    """I12"""
    path = tmp_path / "jobs.db"
    async with opened(path) as driver:
        await driver.put_limit(ONE_AT_ONCE)
        await driver.enqueue(limited(2))
        claims = await claim(driver)
        ask(path, "UPDATE tenure_jobs SET limits = '{broken' WHERE id = 'limited-0'")
        await driver.record([(claims[0].hold, Completed())])
        await driver.prune(Retention(), 10)
        assert [claimed.job.id for claimed in await claim(driver)] == ["limited-1"]


@pytest.mark.parametrize("refused", ["limited-1", "job-0"])
async def test_a_claim_half_that_fails_has_taken_nothing(tmp_path: Path, refused: str) -> None:
    """I15, I2: the outcomes of the exchange stand."""
    path = tmp_path / "jobs.db"
    async with opened(path) as driver:
        await driver.put_limit(Limit(key="key", concurrent=2, per_second=2))
        await driver.enqueue([*jobs(1, "first"), *limited(3), *jobs(1)])
        (held,) = await claim(driver, 1)
        tables = ["tenure_lanes", "tenure_holds", "tenure_claims"]
        before = [ask(path, f"SELECT * FROM {table}") for table in tables]
        ask(
            path,
            "CREATE TRIGGER no BEFORE UPDATE OF token ON tenure_jobs "
            f"WHEN NEW.id = '{refused}' AND NEW.state = 2 BEGIN SELECT RAISE(ABORT, 'no'); END",
        )
        answer = await driver.exchange([(held.hold, Completed())], request("t"))
        assert answer.recorded == (Recorded.APPLIED,)
        assert answer.claims == ()
        assert isinstance(answer.error, StoreError)
        assert [ask(path, f"SELECT * FROM {table}") for table in tables] == before
        assert ask(path, "SELECT count(*) FROM tenure_jobs WHERE state = 2") == [(0,)]
        ask(path, "DROP TRIGGER no")
        got = await driver.claim(request("again"))
        assert [claimed.job.id for claimed in got] == ["limited-0", "limited-1", "job-0"]
