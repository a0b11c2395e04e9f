"""What claims and records cost beside a million other jobs, as a ratio to a store without them.

    PYTHONPATH=. python benchmarks/crowds.py [--store postgres] [--crowd full-key] [--jobs 1000]

- `kept`: so many completed jobs, and a tenth of that failed, all of them retained. Also how long
  `counts` and the first page of `list` take beside them.
- `full-key`: so many waiting jobs of one key whose limit is reached, ahead of the others.

Two stores of a kind, one with the crowd and one without, take turns: a batch of jobs is enqueued,
claimed and recorded in each, round after round. The figure is the median of claim and record.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from secrets import token_hex
from statistics import median

from figures import conditions
from stores import STORES

import tenure

BATCH = 64
FILL = 1000


class Options(argparse.Namespace):
    """The command line."""

    store: str
    crowd: str
    jobs: int
    rounds: int


def options() -> Options:
    parser = argparse.ArgumentParser(description="Measure claims beside a crowd of other jobs.")
    parser.add_argument("--store", default="sqlite-full,redis-everysec,postgres")
    parser.add_argument("--crowd", default="kept,full-key")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=300)
    return parser.parse_args(namespace=Options())


@dataclass
class Times:
    """Milliseconds for a batch, round by round."""

    claim: list[float] = field(default_factory=list[float])
    record: list[float] = field(default_factory=list[float])


async def fill_kept(driver: tenure.Driver, jobs: int) -> None:
    """Let so many jobs complete, and a tenth of that fail."""
    failure = tenure.Failure(kind="error", message="it broke", at=_now(), attempt=1)
    failed = jobs // 10
    for done in range(0, jobs + failed, FILL):
        outcome = tenure.Completed() if done < jobs else tenure.Failed(failure)
        await driver.enqueue(_jobs(FILL, "crowd"))
        claims = await driver.claim(_request(FILL))
        await driver.record([(claim.hold, outcome) for claim in claims])


async def fill_full_key(driver: tenure.Driver, jobs: int) -> None:
    """Let so many jobs of one key wait while its only place is taken."""
    await driver.put_limit(tenure.Limit(key="busy", concurrent=1))
    await driver.enqueue(_jobs(1, "holder", limits=("busy",)))
    await driver.claim(_request(1, lease=86_400.0))
    for _ in range(0, jobs, FILL):
        await driver.enqueue(_jobs(FILL, "crowd", limits=("busy",)))


CROWDS = {"kept": fill_kept, "full-key": fill_full_key}


async def one_round(driver: tenure.Driver, times: Times) -> None:
    await driver.enqueue(_jobs(BATCH, "work"))
    began = time.perf_counter()
    claims = await driver.claim(_request(BATCH))
    claimed = time.perf_counter()
    await driver.record([(claim.hold, tenure.Completed()) for claim in claims])
    recorded = time.perf_counter()
    if [claim.job.name for claim in claims] != ["work"] * BATCH:
        raise AssertionError("the claim did not bring the jobs of this round")
    times.claim.append(1000 * (claimed - began))
    times.record.append(1000 * (recorded - claimed))


async def measure(url: str, beside: str, crowd: str, jobs: int, rounds: int) -> None:
    alone, crowded = Times(), Times()
    async with tenure.connect(url) as empty, tenure.connect(beside) as full:
        began = time.perf_counter()
        await CROWDS[crowd](await full.driver(), jobs)
        print(f"  {crowd}: filled in {time.perf_counter() - began:.0f} s", flush=True)
        stores = [(await empty.driver(), alone), (await full.driver(), crowded)]
        for _ in range(rounds):
            for driver, times in stores:
                await one_round(driver, times)
        for what in ("claim", "record"):
            plain, beside_it = median(getattr(alone, what)), median(getattr(crowded, what))
            print(
                f"  {crowd}: {what} of {BATCH}: {plain:.2f} ms alone, {beside_it:.2f} ms beside "
                f"{jobs:,}: {beside_it / plain:.2f}x"
            )
        counts: list[float] = []
        page: list[float] = []
        for _ in range(20):
            began = time.perf_counter()
            await full.counts()
            counted = time.perf_counter()
            await full.list(limit=50)
            counts.append(1000 * (counted - began))
            page.append(1000 * (time.perf_counter() - counted))
        print(
            f"  {crowd}: counts {median(counts):.1f} ms, first page {median(page):.1f} ms",
            flush=True,
        )


def _jobs(count: int, name: str, limits: tuple[str, ...] = ()) -> list[tenure.NewJob]:
    return [
        tenure.NewJob(id=token_hex(12), name=name, payload=b'{"n":1}', limits=limits)
        for _ in range(count)
    ]


def _request(limit: int, lease: float = 60.0) -> tenure.ClaimRequest:
    return tenure.ClaimRequest(
        token=token_hex(8),
        queues=(tenure.QueueLimit("default", limit),),
        limit=limit,
        worker="bench",
        lease=lease,
    )


def _now() -> datetime:
    return tenure.SystemClock().now()


def main() -> int:
    chosen = options()
    print(", ".join(f"{name} {value}" for name, value in conditions().items()))
    for name in chosen.store.split(","):
        store = STORES[name]
        print(f"{store.name}, {store.durability}")
        for crowd in chosen.crowd.split(","):
            with ExitStack() as stack:
                place = store.open(stack)
                folders = [
                    Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tenure-bench-")))
                    for _ in range(2)
                ]
                alone, beside = (place.fresh(folder) for folder in folders)
                asyncio.run(measure(alone, beside, crowd, chosen.jobs, chosen.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
