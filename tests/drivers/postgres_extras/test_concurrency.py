"""Several at once: nobody gets a job twice, and nobody waits for the rows of another."""

import asyncio
import time
from collections import Counter

import pytest

from tenure.drivers.postgres import PostgresDriver
from tenure.outcomes import Completed, Released
from tenure.types import Kept, Recorded
from tests.drivers.postgres_extras.support import (
    claim,
    fresh,
    jobs,
    locked,
    opened,
    request,
    run_script,
)
from tests.servers.postgres import PostgresServer

WORK = """
import asyncio, sys, uuid
from tenure.clock import SystemClock
from tenure.drivers.postgres import PostgresDriver
from tenure.outcomes import Completed
from tenure.types import ClaimRequest, QueueLimit

async def main():
    driver = PostgresDriver(sys.argv[1], schema=sys.argv[2], clock=SystemClock())
    await driver.open()
    items = []
    while True:
        request = ClaimRequest(
            token=uuid.uuid4().hex, queues=(QueueLimit("default", 7),), limit=7, worker="w",
            lease=30.0,
        )
        answer = await driver.exchange(items, request)
        assert {each.value for each in answer.recorded} <= {"applied"}, answer.recorded
        if not answer.claims:
            break
        for claimed in answer.claims:
            print(claimed.job.id)
        items = [(claimed.hold, Completed()) for claimed in answer.claims]
    await driver.close()

asyncio.run(main())
"""


async def test_claimers_at_once_never_get_the_same_job(postgres_server: PostgresServer) -> None:
    schema = fresh()
    url = postgres_server.url
    async with opened(url, schema) as one, opened(url, schema) as other:
        await one.enqueue(jobs(300))
        taken: Counter[str] = Counter()

        async def work(driver: PostgresDriver) -> None:
            while claims := await claim(driver, 5):
                taken.update(claimed.job.id for claimed in claims)

        await asyncio.gather(*(work(driver) for driver in (one, other) for _ in range(4)))
        assert len(taken) == 300
        assert set(taken.values()) == {1}


async def test_a_claim_does_not_wait_for_a_job_that_another_is_about_to_take(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema, timeout=2.0) as driver:
        await driver.enqueue(jobs(5))
        with locked(postgres_server, schema, "job-0", "job-2"):
            claims = await claim(driver, 2)
            assert [claimed.job.id for claimed in claims] == ["job-1", "job-3"]
        claims = await claim(driver, 9)
        assert [claimed.job.id for claimed in claims] == ["job-0", "job-2", "job-4"]


async def test_extending_does_not_wait_and_counts_locked_rows_as_kept(
    postgres_server: PostgresServer,
) -> None:
    """Whoever completes a job inside a long transaction of its own must not stop the keeper."""
    schema = fresh()
    async with opened(postgres_server.url, schema, timeout=2.0) as driver:
        await driver.enqueue(jobs(3))
        claims = await claim(driver)
        await driver.cancel(["job-2"])
        keeper = driver.keeper_handle()
        with locked(postgres_server, schema, "job-0", "job-2"):
            answers = await asyncio.to_thread(keeper.extend, [c.hold for c in claims], 90.0)
        await asyncio.to_thread(keeper.close)
        assert list(answers) == [Kept.KEPT, Kept.KEPT, Kept.CANCEL_REQUESTED]
        leases = dict(postgres_server.ask(f"SELECT id, lease FROM {schema}.jobs"))
        assert leases == {"job-0": 30.0, "job-1": 90.0, "job-2": 30.0}


async def test_reclaiming_does_not_wait_and_leaves_locked_rows(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema, timeout=2.0) as driver:
        await driver.enqueue(jobs(3))
        claims = await claim(driver, lease=0.001)
        await asyncio.sleep(0.01)
        with locked(postgres_server, schema, "job-1"):
            ended = await driver.reclaim(10, [0.0])
            assert {hold.job_id for hold in ended} == {"job-0", "job-2"}
        assert await driver.record([(claims[1].hold, Completed())]) == [Recorded.APPLIED]


async def test_records_of_overlapping_batches_never_wait_crosswise(
    postgres_server: PostgresServer,
) -> None:
    """Rows are locked in the order of ids, whatever the order of a batch."""
    schema = fresh()
    url = f"{postgres_server.url}?deadlock_timeout=10ms"
    async with opened(url, schema) as one, opened(url, schema) as other:
        await one.enqueue(jobs(60))
        before = deadlocks(postgres_server)
        for _ in range(10):
            claims = await claim(one)
            items = [(claimed.hold, Released("again")) for claimed in claims]
            answers = await asyncio.gather(
                one.record(items), other.record(items[::-1]),
                one.cancel([]), other.extend([c.hold for c in claims[::-1]], 30.0),
            )  # fmt: skip
            settled = zip(answers[0], list(answers[1])[::-1], strict=True)
            assert all({Recorded.APPLIED, Recorded.REPEATED} == {a, b} for a, b in settled)
        assert deadlocks(postgres_server) == before


def deadlocks(server: PostgresServer) -> object:
    return server.ask("SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'")


async def test_counting_and_listing_wait_for_nobody(postgres_server: PostgresServer) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema, timeout=2.0) as driver:
        await driver.enqueue(jobs(3))
        with locked(postgres_server, schema, "job-0", "job-1", "job-2"):
            assert (await driver.counts()).pending == 3
            assert await driver.get("job-0") is not None
            assert await claim(driver) == []


async def test_totals_equal_a_full_count_whoever_folds(postgres_server: PostgresServer) -> None:
    schema = fresh()
    url = postgres_server.url
    async with opened(url, schema) as one, opened(url, schema) as other:
        await one.enqueue(jobs(120))

        async def work(driver: PostgresDriver) -> None:
            while claims := await claim(driver, 3):
                await driver.record([(c.hold, Completed()) for c in claims])
                await asyncio.to_thread(
                    postgres_server.ask, f"SELECT {schema}.fold(%s)", len(claims)
                )

        await asyncio.gather(work(one), work(other), work(one))
        assert (await one.counts()).completed == 120
        postgres_server.ask(f"SELECT {schema}.fold(10000)")
        assert postgres_server.ask(f"SELECT state, n FROM {schema}.totals") == [(3, 120)]
        assert postgres_server.ask(f"SELECT bytes FROM {schema}.totals") == [(120 * len(b"null"),)]
        assert postgres_server.ask(f"SELECT FROM {schema}.differences") == []


async def test_callers_that_come_together_share_a_round_trip(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        await driver.enqueue(jobs(1, "first"))
        begun = transactions(postgres_server, schema)
        await asyncio.gather(*(driver.enqueue([job]) for job in jobs(200)))
        assert transactions(postgres_server, schema) - begun <= 3
        assert (await driver.counts()).pending == 201


def transactions(server: PostgresServer, schema: str) -> int:
    """In how many transactions the stored jobs were stored."""
    ((count,),) = server.ask(f"SELECT count(DISTINCT xmin::text) FROM {schema}.jobs")
    return int(count)


@pytest.mark.slow
async def test_eight_processes_do_every_job_once(postgres_server: PostgresServer) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        for turn in range(8):
            await driver.enqueue(jobs(1000, f"turn-{turn}"))
        begun = time.monotonic()
        outputs = await asyncio.gather(
            *(run_script(WORK, postgres_server.url, schema) for _ in range(8))
        )
        assert time.monotonic() - begun < 60
        done = Counter(line for output in outputs for line in output.split())
        assert len(done) == 8000
        assert set(done.values()) == {1}
        assert (await driver.counts()).completed == 8000
        assert await driver.claim(request()) == []
