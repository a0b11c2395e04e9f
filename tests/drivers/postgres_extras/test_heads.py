"""Where claims begin while a forgotten transaction keeps dead rows: none is late for long."""

import asyncio
import random
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tenure.clock import Clock
from tenure.driver import RecordItem
from tenure.drivers.postgres import PostgresDriver
from tenure.drivers.postgres import session as sessions
from tenure.drivers.postgres.heads import EVER, Heads, Look
from tenure.outcomes import Completed, Failed, Outcome, Released, Retried, Snoozed
from tenure.standing import Limit
from tenure.states import State
from tenure.testing import ManualClock
from tenure.types import Claim, ClaimRequest, Hold, Job, ManualRetry, Move, NewJob
from tests.drivers.postgres_extras.support import (
    FAILURE,
    Forward,
    claim,
    fresh,
    jobs,
    opened,
    request,
    until,
)
from tests.servers.postgres import PostgresServer


class Stuck(Heads):
    """What a driver knows while dead rows are stuck; counts the claims that were told of heads."""

    told = 0

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        super().stuck(True)

    def stuck(self, stuck: bool) -> None:
        pass

    @contextmanager
    def claiming(self, request: ClaimRequest, *, whole: bool) -> Generator[Look]:
        with super().claiming(request, whole=whole) as look:
            Stuck.told += bool(look.lines)
            yield look


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> type[Stuck]:
    monkeypatch.setattr(sessions, "Heads", Stuck)
    monkeypatch.setattr(Stuck, "told", 0)
    return Stuck


def ids(claims: list[Claim]) -> list[str]:
    return [claimed.job.id for claimed in claims]


def waiting(server: PostgresServer, schema: str, limit: int) -> list[str]:
    """The jobs that the next claim has to take, in its order (I11)."""
    rows = server.ask(
        f"SELECT id FROM {schema}.jobs WHERE state = 0 AND run_at <= clock_timestamp() "
        "ORDER BY priority DESC, run_at, seq LIMIT %s",
        limit,
    )
    return [id for (id,) in rows]


class Program:
    """What one process may do to the order of claims, at random."""

    def __init__(self, driver: PostgresDriver, chance: random.Random) -> None:
        self._driver = driver
        self._chance = chance
        self._count = 0
        self._holds: list[Claim] = []
        self._failed: list[str] = []

    async def step(self) -> None:
        """One or two calls, under way at the same time."""
        calls = (self.enqueue, self.take, self.settle, self.move, self.again)
        chosen = self._chance.choices(calls, weights=(4, 4, 2, 1, 1), k=2)
        await asyncio.gather(*(call() for call in chosen))

    async def enqueue(self) -> None:
        for _ in range(self._chance.randint(1, 2)):
            await self._driver.enqueue([self._job() for _ in range(self._chance.randint(1, 4))])

    def _job(self) -> NewJob:
        self._count += 1
        past = datetime.now(UTC) - timedelta(seconds=self._chance.randint(0, 60))
        at = self._chance.choice([None, None, None, past])
        priority = self._chance.choice([0, 0, 5])
        return NewJob(id=f"job-{self._count}", name="work", priority=priority, at=at)

    async def take(self, limit: int = 3) -> list[str]:
        claims = await claim(self._driver, limit)
        self._holds += claims
        return ids(claims)

    async def settle(self) -> None:
        self._chance.shuffle(self._holds)
        ended, self._holds = self._holds[:2], self._holds[2:]
        outcomes: list[Outcome] = [
            Completed(),
            Released("x"),
            Released("x", 0.0),
            Retried(0.0, FAILURE),
            Snoozed(0.0),
            Failed(FAILURE),
        ]
        items: list[RecordItem] = [(one.hold, self._chance.choice(outcomes)) for one in ended]
        await self._driver.record(items)
        self._failed += [hold.job_id for hold, outcome in items if isinstance(outcome, Failed)]

    async def move(self) -> None:
        id = f"job-{self._chance.randint(1, max(self._count, 1))}"
        past = datetime.now(UTC) - timedelta(seconds=self._chance.randint(0, 60))
        to = self._chance.choice([(past, None), (None, 5), (None, 0)])
        await self._driver.move([Move(job_id=id, at=to[0], priority=to[1])])

    async def again(self) -> None:
        if self._failed:
            await self._driver.retry([ManualRetry(job_id=self._failed.pop())])


def counted(server: PostgresServer, schema: str, what: str, table: str) -> int:
    """Rows or entries that the server has counted so far."""
    ((count,),) = server.ask(f"SELECT pg_stat_get_tuples_{what}('{schema}.{table}'::regclass)")
    return int(count)


async def ended(server: PostgresServer, schema: str, updates: int) -> None:
    """Wait until the sessions that wrote so much have ended and been counted."""
    await until(lambda: counted(server, schema, "updated", "jobs") == updates)


@pytest.mark.parametrize("seed", range(4))
async def test_nothing_that_the_process_does_itself_is_passed_over(
    postgres_server: PostgresServer, stuck: type[Stuck], seed: int
) -> None:
    """I11."""
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        program = Program(driver, random.Random(seed))
        for _ in range(40):
            await program.step()
            expected = waiting(postgres_server, schema, 3)
            assert await program.take() == expected
    assert stuck.told > 10


def taken(at: datetime, seq: int, now: datetime) -> tuple[list[Any], list[Claim]]:
    """A claim of one job as `learn` gets it: its place in the row, and when it was made."""
    micros = (at - datetime(2000, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    job: Job[bytes] = Job(
        id="job",
        name="work",
        queue="default",
        payload=b"",
        priority=0,
        max_attempts=None,
        timeout=None,
        headers={},
        state=State.PROCESSING,
        attempt=1,
        stalls=0,
        serial=1,
        run_at=at,
        created_at=at,
        updated_at=now,
        finished_at=None,
        error=None,
        result=None,
        progress=None,
        cancel_requested=False,
    )
    row = ("default", 0, micros.to_bytes(8, "big"), seq)
    return [row], [Claim(job=job, hold=Hold("job", 1, "t"), attempt=1, stalls=0, lease=30.0)]


def test_no_head_lies_beyond_what_a_write_under_way_may_put() -> None:
    """It was sent when the server's time was known to be 1: its jobs are due then or later."""
    times = [datetime(2030, 1, 1, 0, 0, second, tzinfo=UTC) for second in range(5)]
    heads = Heads(ManualClock())
    heads.stuck(True)
    asked = request(1)

    def took(due: int, now: int) -> dict[tuple[str, int], tuple[datetime, int]]:
        with heads.claiming(asked, whole=False) as look:
            pass
        heads.learn(look, asked, *taken(times[due], 7, times[now]))
        with heads.claiming(asked, whole=False) as look:
            return look.lines

    assert took(0, 1) == {}
    ended = heads.put()
    assert took(2, 3) == {("default", 0): (times[1], 0)}
    assert took(3, 4) == {("default", 0): (times[1], 0)}
    ended(None)
    assert took(3, 4) == {("default", 0): (times[3], 7)}


def test_a_claim_that_was_under_way_when_a_job_went_back_teaches_nothing() -> None:
    times = [datetime(2030, 1, 1, 0, 0, second, tzinfo=UTC) for second in range(5)]
    heads = Heads(ManualClock())
    heads.stuck(True)
    asked = request(1)
    with heads.claiming(asked, whole=False) as look:
        pass
    heads.learn(look, asked, *taken(times[0], 1, times[3]))
    with heads.claiming(asked, whole=False) as look:
        heads.put(EVER)(None)
    heads.learn(look, asked, *taken(times[1], 2, times[3]))
    with heads.claiming(asked, whole=False) as look:
        assert look.lines == {}


async def test_what_another_process_puts_below_is_found_within_a_second(
    postgres_server: PostgresServer, stuck: type[Stuck]
) -> None:
    clock = Forward()
    schema = fresh()
    driver = PostgresDriver(postgres_server.url, schema=schema, clock=clock)
    await driver.open()
    async with opened(postgres_server.url, schema) as other:
        await driver.enqueue(jobs(20))
        (first,) = await claim(other, 1)
        assert ids(await claim(driver, 1)) == ["job-1"]
        assert ids(await claim(driver, 1)) == ["job-2"]
        await other.record([(first.hold, Released("back"))])
        assert ids(await claim(driver, 1)) == ["job-3"]  # passed over
        clock.forward(1.0)
        assert ids(await claim(driver, 2)) == ["job-0", "job-4"]
    await driver.close()
    assert stuck.told > 0


async def test_a_claim_that_finds_too_little_makes_the_next_look_below(
    postgres_server: PostgresServer, stuck: type[Stuck]
) -> None:
    """Sooner than within the second, but not time and again: it takes a tenth of the time."""
    clock = Forward()
    schema = fresh()
    driver = PostgresDriver(postgres_server.url, schema=schema, clock=clock)
    await driver.open()
    async with opened(postgres_server.url, schema) as other:
        await driver.enqueue(jobs(5))
        (first,) = await claim(other, 1)
        assert ids(await claim(driver, 1)) == ["job-1"]
        assert ids(await claim(driver, 1)) == ["job-2"]
        await other.record([(first.hold, Released("back"))])
        assert ids(await claim(driver, 3)) == ["job-3", "job-4"]
        clock.forward(0.8)
        assert ids(await claim(driver, 3)) == ["job-0"]
    await driver.close()


async def test_a_job_with_a_limit_is_never_passed_over(
    postgres_server: PostgresServer, stuck: type[Stuck]
) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        await driver.put_limit(Limit(key="key", concurrent=1))
        await driver.enqueue([NewJob(id=id, name="work", limits=("key",)) for id in ("a", "b")])
        await driver.enqueue(jobs(10))
        (first, *_) = claims = await claim(driver, 3)
        assert ids(claims) == ["a", "job-0", "job-1"]
        assert ids(await claim(driver, 2)) == ["job-2", "job-3"]
        await driver.record([(first.hold, Completed())])
        assert ids(await claim(driver, 2)) == ["b", "job-4"]
        assert ids(await claim(driver, 2)) == ["job-5", "job-6"]


async def test_an_old_snapshot_does_not_make_claims_read_what_is_dead(
    postgres_server: PostgresServer, stuck: type[Stuck], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Index entries that were read, in all: by claims that know of heads, and by others."""
    batches, batch = 30, 50
    read: list[int] = []
    for heads in (stuck, Heads):
        monkeypatch.setattr(sessions, "Heads", heads)
        schema = fresh()
        async with opened(postgres_server.url, schema) as driver:
            with postgres_server.client() as client:
                client.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
                client.execute("SELECT count(*) FROM pg_class")
                for n in range(batches):
                    await driver.enqueue(jobs(batch, f"{n}"))
                    claims = await claim(driver, batch)
                    assert len(claims) == batch
                    await driver.record([(claimed.hold, Completed()) for claimed in claims])
        # Sessions count when they end.
        await ended(postgres_server, schema, 2 * batches * batch)
        read.append(counted(postgres_server, schema, "returned", "jobs_ready"))
    few, many = read
    assert few < 5 * batches * batch, read
    assert many > batch * batches**2 / 3, read
