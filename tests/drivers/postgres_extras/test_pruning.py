"""Pruning beside others: what is stored is known exactly, and no more than the surplus goes."""

import asyncio
from datetime import UTC, datetime, timedelta

from tenure.drivers.postgres import PostgresDriver
from tenure.outcomes import Completed, Failed
from tenure.states import State
from tenure.types import JobFilter, ManualRetry, NewJob, Retention
from tests.drivers.postgres_extras.support import FAILURE, claim, fresh, jobs, locked, opened
from tests.servers.postgres import PostgresServer


async def completed(driver: PostgresDriver, count: int, size: int, at: datetime) -> None:
    """Complete as many jobs of so many bytes, half of them a result, one after the other."""
    await driver.enqueue(
        [NewJob(id=f"job-{n}", name="work", payload=b"p" * (size // 2)) for n in range(count)]
    )
    for n, claimed in enumerate(await claim(driver, count)):
        result = Completed(b"r" * (size - size // 2))
        await driver.record([(claimed.hold, result)], now=at + timedelta(seconds=n))


async def test_of_several_pruners_at_once_none_deletes_more_than_the_surplus(
    postgres_server: PostgresServer,
) -> None:
    """Each sees the same jobs beyond the bound; what one has locked is no reason to take others."""
    schema = fresh()
    url = postgres_server.url
    ended = datetime.now(UTC) - timedelta(hours=1)
    async with opened(url, schema) as one, opened(url, schema) as two, opened(url, schema) as three:
        await completed(one, 100, 1000, ended)
        for keep, left in (
            (Retention(completed_count=80), 80),
            (Retention(completed_bytes=60_500), 60),
        ):
            await asyncio.gather(*(driver.prune(keep, 50) for driver in (one, two, three) * 3))
            assert (await one.counts()).completed == left
        stored = (await one.list(JobFilter(), None, 100)).jobs
        assert {job.id for job in stored} == {f"job-{n}" for n in range(40, 100)}


async def test_a_pruner_takes_no_other_jobs_for_those_that_somebody_has_locked(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    ended = datetime.now(UTC) - timedelta(hours=1)
    async with opened(postgres_server.url, schema) as driver:
        await completed(driver, 10, 1000, ended)
        with locked(postgres_server, schema, "job-0", "job-1"):
            assert await driver.prune(Retention(completed_bytes=8000), 50) == 0
            assert await driver.prune(Retention(completed_count=7), 50) == 1
        assert await driver.prune(Retention(completed_bytes=8000), 50) == 1
        assert await driver.prune(Retention(completed_bytes=8000), 50) == 0


async def test_the_bytes_of_the_totals_equal_a_full_count(postgres_server: PostgresServer) -> None:
    """Whatever becomes of the jobs."""
    schema = fresh()
    ended = datetime.now(UTC) - timedelta(hours=1)

    def kept() -> object:
        return postgres_server.ask(f"SELECT bytes FROM {schema}.ended() WHERE state = 3")

    async with opened(postgres_server.url, schema) as driver:
        await completed(driver, 20, 100_001, ended)
        assert kept() == [(20 * 100_001,)]
        await driver.enqueue(jobs(3, "waiting"))
        (failed, *_) = await claim(driver)
        await driver.record([(failed.hold, Failed(FAILURE))], now=ended)
        await driver.retry([ManualRetry("job-0"), ManualRetry(failed.job.id)])
        await driver.cancel([failed.job.id])
        await driver.delete(["job-3", "job-5", "job-3", failed.job.id])
        assert kept() == [(18 * 100_001,)]
        postgres_server.ask(f"SELECT {schema}.fold(10)")
        assert await driver.purge(JobFilter(state=State.COMPLETED), 4) == 4
        assert kept() == [(14 * 100_001,)]
        assert await driver.prune(Retention(completed_bytes=1_000_009), 100) == 5
        postgres_server.ask(f"SELECT {schema}.fold(10000)")
        assert kept() == [(9 * 100_001,)]
        await driver.purge(JobFilter(), 100)
        postgres_server.ask(f"SELECT {schema}.fold(10000)")
        assert postgres_server.ask(f"SELECT FROM {schema}.totals") == []
