"""Histories in their table: bounded, gone with their jobs, free of cost for jobs that succeed."""

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from tenure.history import PastAttempt
from tenure.outcomes import Completed, Failed, Released, Retried
from tenure.types import Claim, NewJob, Recorded, Retention
from tests.drivers.postgres_extras.support import (
    FAILURE,
    claim,
    fresh,
    jobs,
    opened,
    sessions,
    until,
)
from tests.servers.postgres import PostgresServer


def kept(server: PostgresServer, schema: str) -> int:
    ((count,),) = server.ask(f"SELECT count(*) FROM {schema}.history")
    return int(count)


def outcomes(history: Sequence[PastAttempt]) -> list[tuple[int, str]]:
    return [(past.serial, past.outcome) for past in history]


async def test_the_newest_hundred_attempts_of_a_job_are_kept(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        await driver.enqueue(jobs(2))
        for _ in range(104):
            claims = await claim(driver)
            await driver.record([(c.hold, Retried(0.0, FAILURE)) for c in claims])
        history = await driver.history("job-0")
        assert outcomes(history) == [(serial, "retried") for serial in range(5, 105)]
        assert kept(postgres_server, schema) == 200


async def test_a_history_goes_with_its_job(postgres_server: PostgresServer) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        await driver.enqueue(jobs(3))
        for _ in range(2):
            claims = await claim(driver)
            await driver.record([(c.hold, Retried(0.0, FAILURE)) for c in claims])
        await driver.delete(["job-0"])
        assert kept(postgres_server, schema) == 4
        first, second = await claim(driver)
        await driver.record([(first.hold, Failed(FAILURE)), (second.hold, Completed())])
        assert kept(postgres_server, schema) == 5
        postgres_server.ask(f"UPDATE {schema}.jobs SET finished_at = now() - interval '90 days'")
        assert await driver.prune(Retention(), 10) == 2
        assert kept(postgres_server, schema) == 0


async def test_a_hold_that_is_lost_while_its_failure_is_recorded_leaves_one_entry(
    postgres_server: PostgresServer,
) -> None:
    """Of the reclaim that was faster, not of the record that was fenced."""
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        await driver.enqueue(jobs(1))
        for _ in range(20):
            (claimed,) = await claim(driver, lease=0.0)
            recorded, reclaimed = await _at_once(postgres_server, schema, claimed)
            assert (recorded is Recorded.APPLIED) != reclaimed
        history = await driver.history("job-0")
        serials = [past.serial for past in history]
        assert len(set(serials)) == len(serials) == 20


async def _at_once(server: PostgresServer, schema: str, claimed: Claim) -> tuple[Recorded, bool]:
    async with opened(server.url, schema) as one, opened(server.url, schema) as other:
        (recorded,), ended = await asyncio.gather(
            one.record([(claimed.hold, Retried(0.0, FAILURE))]), other.reclaim(1, [0.0])
        )
        return recorded, bool(ended)


async def test_a_message_of_any_characters_is_kept(postgres_server: PostgresServer) -> None:
    async with opened(postgres_server.url) as driver:
        await driver.enqueue([NewJob(id="a", name="work")])
        (claimed,) = await claim(driver)
        failure = replace(FAILURE, message="\0 and \udcff")
        assert await driver.record([(claimed.hold, Failed(failure))]) == [Recorded.APPLIED]
        (past,) = await driver.history("a")
        assert past.message == "\0 and \\udcff"


async def test_a_damaged_entry_harms_only_itself(postgres_server: PostgresServer) -> None:
    """I12."""
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        await driver.enqueue(jobs(1))
        for _ in range(2):
            (claimed,) = await claim(driver)
            await driver.record([(claimed.hold, Retried(0.0, FAILURE))])
        postgres_server.ask(f"UPDATE {schema}.history SET how = '{{' WHERE serial = 1")
        assert outcomes(await driver.history("job-0")) == [(1, "unknown"), (2, "retried")]


async def test_jobs_that_succeed_touch_no_history(postgres_server: PostgresServer) -> None:
    schema = fresh()
    server = postgres_server
    async with opened(server.url, schema):
        pass
    await until(lambda: not sessions(server, f"%{schema}%"))
    made = looked_up(server, schema)
    async with opened(server.url, schema) as driver:
        await driver.enqueue(jobs(20))
        claims = await claim(driver)
        await driver.record([(c.hold, Completed()) for c in claims[:10]])
        await driver.record([(c.hold, Released("again")) for c in claims[10:]])
        await driver.delete([c.job.id for c in claims[:5]])
    await until(lambda: not sessions(server, f"%{schema}%"))
    assert looked_up(server, schema) == made


def looked_up(server: PostgresServer, schema: str) -> object:
    return server.ask(
        "SELECT coalesce(seq_scan, 0) + coalesce(idx_scan, 0) + n_tup_ins FROM "
        f"pg_stat_user_tables WHERE schemaname = '{schema}' AND relname = 'history'"
    )
