"""What claims and records cost beside a crowd of other jobs, as a ratio to a store without them.

Two stores of a kind, one with the crowd and one without, take turns: a batch of jobs is enqueued,
claimed and recorded in each, again and again. The figures are medians. It takes minutes to gather
a crowd, so this is done once, and only when it is asked for.

- *pending*: so many waiting jobs of the same queue, beside a thousand in the other store.
- *retained*: so many completed jobs, and a tenth of that failed. Also how long `counts` and the
  first page of `list` take beside them.
- *future*: so many jobs of a better priority that are due tomorrow.
- *full key*: so many waiting jobs of one key whose limit is reached, ahead of the others.
- *forgotten transaction* (PostgreSQL): so many jobs that were claimed and recorded while somebody
  left a transaction open, so that the server has to keep each version of their rows.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from statistics import median

import psycopg

import tenure
from benchmarks.figures import OURS
from benchmarks.measures import Value
from benchmarks.raw.batches import completed, new_jobs, request
from benchmarks.stage import Contest

__all__ = ["costs"]

BATCH = 64
FEW = 1000
TURNS = 300
LOOKS = 20

_TOMORROW = 86_400.0

Fill = Callable[[tenure.Driver, int], Awaitable[None]]


async def pending(driver: tenure.Driver, jobs: int) -> None:
    for _ in range(0, jobs, FEW):
        await driver.enqueue(new_jobs(FEW))


async def retained(driver: tenure.Driver, jobs: int) -> None:
    now = tenure.SystemClock().now()
    failure = tenure.Failure(kind="error", message="it broke", at=now, attempt=1)
    for done in range(0, jobs + jobs // 10, FEW):
        outcome = tenure.Completed() if done < jobs else tenure.Failed(failure)
        await driver.enqueue(new_jobs(FEW))
        claims = await driver.claim(request(FEW))
        await driver.record([(claim.hold, outcome) for claim in claims])


async def future(driver: tenure.Driver, jobs: int) -> None:
    for _ in range(0, jobs, FEW):
        await driver.enqueue(new_jobs(FEW, priority=10, delay=_TOMORROW))


async def full_key(driver: tenure.Driver, jobs: int) -> None:
    await driver.put_limit(tenure.Limit(key="busy", concurrent=1))
    await driver.enqueue(new_jobs(1, limits=("busy",)))
    await driver.claim(request(1, lease=_TOMORROW))
    for _ in range(0, jobs, FEW):
        await driver.enqueue(new_jobs(FEW, limits=("busy",)))


async def churned(driver: tenure.Driver, jobs: int) -> None:
    for _ in range(0, jobs, FEW):
        await driver.enqueue(new_jobs(FEW))
        await driver.record(completed(await driver.claim(request(FEW))))


@contextmanager
def _forgotten(url: str) -> Generator[None]:
    """Somebody's transaction, which looked at something and was left open."""
    with psycopg.connect(url) as client:
        client.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        client.execute("SELECT count(*) FROM pg_class")
        yield
        client.rollback()


@dataclass(frozen=True, kw_only=True)
class _Crowd:
    """So many others. `few`: how many of them are in the store that is compared with.

    `forgotten`: beside a forgotten transaction in the one store; none in the other, which has as
    many jobs. Where there are no such transactions it is left out.
    """

    name: str
    fill: Fill
    share: float = 1.0
    few: int = 0
    forgotten: bool = False


CROWDS = (
    _Crowd(name="pending", fill=pending, share=0.1, few=FEW),
    _Crowd(name="pending", fill=pending, few=FEW),
    _Crowd(name="retained", fill=retained),
    _Crowd(name="future jobs of a better priority", fill=future),
    _Crowd(name="waiting for a full key", fill=full_key),
    _Crowd(
        name="churned and kept by a forgotten transaction", fill=churned, share=0.12, forgotten=True
    ),
)


@dataclass(frozen=True)
class _Times:
    """Milliseconds for a batch, turn by turn."""

    claim: list[float] = field(default_factory=list[float])
    record: list[float] = field(default_factory=list[float])


def costs(contest: Contest) -> Iterator[Value]:
    """One crowd after the other, each beside an empty store of its own."""
    if contest.who.name != OURS:
        return  # the operations are tenure's
    for crowd in CROWDS:
        if crowd.forgotten and contest.store.kind != "postgres":
            continue
        jobs = max(FEW, int(contest.options.crowd * crowd.share))
        print(
            f"\n{contest.store.name}, {jobs:,} {crowd.name}", end=" ", file=sys.stderr, flush=True
        )
        with contest.stage() as stage, contest.folder() as folder:
            beside, alone = stage.url, f"{stage.url}?namespace=alone"
            if contest.store.kind != "redis":  # where a fresh store would end the other
                alone = contest.place.fresh(folder)
            try:
                yield from asyncio.run(_measured(contest, crowd, jobs, alone, beside))
            finally:
                if contest.store.kind != "redis":
                    contest.place.forget(alone)


async def _measured(
    contest: Contest, crowd: _Crowd, jobs: int, alone: str, beside: str
) -> list[Value]:
    name = f"beside {jobs:,} {crowd.name}"
    empty, full = _Times(), _Times()
    async with _connected(contest, alone) as one, _connected(contest, beside) as other:
        with _forgotten(beside) if crowd.forgotten else nullcontext():
            await crowd.fill(await other.driver(), jobs)
            await crowd.fill(await one.driver(), jobs if crowd.forgotten else crowd.few)
            stores = [(await one.driver(), empty), (await other.driver(), full)]
            for _ in range(TURNS):
                for driver, times in stores:
                    await _turn(driver, times)
        looks = await _looks(other, name) if crowd.fill is retained else []
    ratios = [*_compared("claim", name, empty.claim, full.claim)]
    return [*ratios, *_compared("record", name, empty.record, full.record), *looks]


def _connected(contest: Contest, url: str) -> tenure.Queue:
    if contest.store.kind == "sqlite":
        return tenure.connect(f"sqlite:///{url}", synchronous=contest.store.durability)
    return tenure.connect(url)


async def _turn(driver: tenure.Driver, times: _Times) -> None:
    await driver.enqueue(new_jobs(BATCH))
    began = time.perf_counter()
    claims = await driver.claim(request(BATCH))
    claimed = time.perf_counter()
    await driver.record(completed(claims))
    recorded = time.perf_counter()
    if len(claims) != BATCH:
        raise AssertionError(f"{len(claims)} of {BATCH} jobs were claimed")
    times.claim.append(1000 * (claimed - began))
    times.record.append(1000 * (recorded - claimed))


def _compared(what: str, name: str, alone: list[float], beside: list[float]) -> Iterator[Value]:
    """Of a batch, in milliseconds and as a ratio."""
    measure = f"{what} of {BATCH} {name}"
    yield Value(measure=measure, value=median(beside), unit="ms")
    yield Value(measure=f"{measure}, against none", value=median(beside) / median(alone), unit="x")


async def _looks(queue: tenure.Queue, name: str) -> list[Value]:
    counts: list[float] = []
    page: list[float] = []
    for _ in range(LOOKS):
        began = time.perf_counter()
        await queue.counts()
        counted = time.perf_counter()
        await queue.list(limit=50)
        counts.append(1000 * (counted - began))
        page.append(1000 * (time.perf_counter() - counted))
    return [
        Value(measure=f"counts {name}", value=median(counts), unit="ms"),
        Value(measure=f"list, the first page, {name}", value=median(page), unit="ms"),
    ]
