"""Random operations on jobs with limits: the answers of the memory store, and lanes in order."""

import json
import random
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from tenure.clock import SystemClock
from tenure.driver import Driver
from tenure.drivers.memory import MemoryDriver
from tenure.outcomes import Completed, Failed, Failure, Outcome, Released, Retried, Snoozed
from tenure.standing import Limit
from tenure.states import State
from tenure.testing.conformance.random_limits import play
from tenure.types import (
    ClaimRequest,
    Hold,
    JobFilter,
    ManualRetry,
    Move,
    NewJob,
    QueueLimit,
    UniqueKey,
)
from tests.drivers.sqlite_extras.support import opened

T = TypeVar("T")

KEYS = ["one", "two", "user:1", "user:2"]
LIMITED = [*KEYS, "user:*", "*"]
FAILURE = Failure(kind="error", message="no", at=datetime(2030, 1, 1, tzinfo=UTC), attempt=1)
OUTCOMES: list[Outcome] = [
    Completed(),
    Failed(FAILURE),
    Retried(0.0, FAILURE),
    Retried(5.0, FAILURE),
    Snoozed(1.0),
    Released("full"),
]


@pytest.mark.parametrize("seed", range(6))
async def test_claims_with_limits_are_those_of_the_memory_store(tmp_path: Path, seed: int) -> None:
    """And after each step the lanes are what they must be, so that nothing can be stuck."""
    path = tmp_path / "jobs.db"
    memory = MemoryDriver(clock=SystemClock())
    async with opened(path) as driver:
        both = _Both([memory, driver], random.Random(seed))
        for turn in range(150):
            await both.step(turn)
            connection = sqlite3.connect(path)
            lanes_in_order(connection)
            holds_counted(connection)
            connection.close()


def lanes_in_order(connection: sqlite3.Connection) -> None:
    """Each waiting job with limits is in one lane; only the heads of lanes not parked are shown."""
    found: set[int] = set()
    lanes = connection.execute(
        "SELECT id, queue, priority, limits, head, head_at, parked FROM tenure_lanes"
    ).fetchall()
    for lane_id, queue, priority, limits, head, head_at, parked in lanes:
        jobs = connection.execute(
            "SELECT seq, run_at, lane FROM tenure_jobs "
            "WHERE state = 0 AND queue = ? AND priority = ? AND limits = ? ORDER BY run_at, seq",
            (queue, priority, limits),
        ).fetchall()
        assert jobs[0][:2] == (head, head_at)
        shown = [seq for seq, _, lane in jobs if lane is None]
        assert shown == ([head] if parked is None else [])
        assert {lane for _, _, lane in jobs} <= {None, lane_id}
        found.update(seq for seq, _, _ in jobs)
    waiting = connection.execute(
        "SELECT seq FROM tenure_jobs WHERE lane IS NOT NULL OR (state = 0 AND limits IS NOT NULL)"
    )
    assert found == {seq for (seq,) in waiting}


def holds_counted(connection: sqlite3.Connection) -> None:
    counted = dict(connection.execute("SELECT key, n FROM tenure_holds WHERE n > 0"))
    running = connection.execute("SELECT limits FROM tenure_jobs WHERE state = 2")
    keys = [key for (limits,) in running if limits is not None for key in json.loads(limits)]
    assert counted == dict(Counter(keys))


class _Both:
    """Does the same to both stores, and compares the answers."""

    def __init__(self, drivers: list[Driver], chance: random.Random) -> None:
        self._drivers = drivers
        self._chance = chance
        self._now = datetime(2030, 1, 1, tzinfo=UTC)
        self._ids: list[str] = []
        self._holds: list[Hold] = []

    async def step(self, turn: int) -> None:
        chance = self._chance
        self._now += timedelta(seconds=chance.choice([0, 0, 0.1, 0.5, 1, 3]))
        match chance.randrange(12):
            case 0 | 1 | 2:
                jobs = [self._job() for _ in range(chance.randint(1, 4))]
                await self._same(lambda driver: driver.enqueue(jobs, now=self._now))
            case 3 | 4 | 5:
                await self._claim(turn)
            case 6 | 7:
                await self._record()
            case 8:
                await self._limit()
            case 9:
                await self._same(lambda driver: driver.reclaim(9, [0.0, 2.0], now=self._now))
            case _:
                await self._control()

    async def _same(self, call: Callable[[Driver], Awaitable[Sequence[T]]]) -> list[T]:
        first, second = [list(await call(driver)) for driver in self._drivers]
        assert first == second
        return second

    async def _claim(self, turn: int) -> None:
        queues = self._chance.choice([["default"], ["other", "default"]])
        request = ClaimRequest(
            token=f"t{turn}",
            queues=tuple(QueueLimit(queue, self._chance.choice([1, 9])) for queue in queues),
            limit=self._chance.choice([1, 2, 9]),
            worker="w",
            lease=5.0,
        )
        claims = await self._same(lambda driver: driver.claim(request, now=self._now))
        self._holds += [claimed.hold for claimed in claims]

    async def _record(self) -> None:
        some = self._chance.sample(self._holds, min(len(self._holds), 3))
        items = [(hold, self._chance.choice(OUTCOMES)) for hold in some]
        by_job = {hold.job_id: (hold, outcome) for hold, outcome in items}
        await self._same(lambda driver: driver.record(list(by_job.values()), now=self._now))
        self._holds = [hold for hold in self._holds if hold not in some]

    async def _limit(self) -> None:
        key = self._chance.choice(LIMITED)
        concurrent, rate = self._chance.choice([(1, None), (2, None), (None, 2), (3, 1)])
        limit = Limit(key=key, concurrent=concurrent, per_second=rate)
        put = self._chance.random() < 0.8
        for driver in self._drivers:
            if put:
                await driver.put_limit(limit)
            else:
                await driver.drop_limit(key)

    async def _control(self) -> None:
        some = self._chance.choices(self._ids or ["nobody"], k=2)
        later = self._now + timedelta(seconds=2)
        match self._chance.randrange(5):
            case 0:
                await self._same(lambda driver: driver.cancel(some, now=self._now))
            case 1:
                again = [ManualRetry(job_id) for job_id in some]
                await self._same(lambda driver: driver.retry(again, now=self._now))
            case 2:
                await self._same(lambda driver: driver.delete(some, now=self._now))
            case 3:
                moves = [Move(job_id=some[0], queue="other", at=later), Move(job_id=some[1])]
                await self._same(lambda driver: driver.move(moves, now=self._now))
            case _:
                for driver in self._drivers:
                    await driver.purge(JobFilter(state=State.PENDING, queue="other"), 99)

    def _job(self) -> NewJob:
        chance = self._chance
        self._ids.append(f"job-{len(self._ids)}")
        debounce = UniqueKey(key="u", mode="debounce")
        return NewJob(
            id=self._ids[-1],
            name="work",
            queue=chance.choice(["default", "other"]),
            priority=chance.choice([0, 0, 5]),
            delay=chance.choice([None, None, 0.0, 2.0]),
            unique=debounce if chance.random() < 0.2 else None,
            limits=tuple(sorted(chance.sample(KEYS, chance.randint(0, 3)))),
        )


@pytest.mark.parametrize("seed", [5, 11])
async def test_next_due_is_not_too_late_where_a_due_head_stands_for_others(
    tmp_path: Path, seed: int
) -> None:
    """Lanes parked on a key with room wait for the next claim to let them come, and no longer."""
    async with opened(tmp_path / "jobs.db") as driver:
        await play(driver, seed=seed, steps=400, asking=True)
