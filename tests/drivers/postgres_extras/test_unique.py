"""Unique keys among several connections: one gets the key, nobody fails, nobody waits crosswise."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import psycopg
import pytest

from tenure.drivers.postgres import PostgresDriver
from tenure.outcomes import Completed, Failed, Outcome, Released
from tenure.types import (
    Answer,
    Claim,
    Enqueued,
    Held,
    ManualRetry,
    NewJob,
    Recorded,
    Retention,
    UniqueKey,
)
from tests.drivers.postgres_extras.support import (
    FAILURE,
    claim,
    fresh,
    jobs,
    opened,
    request,
    sessions,
    until,
)
from tests.servers.postgres import PostgresServer

Mode = Literal["keep", "replace", "debounce", "throttle"]
Connection = psycopg.AsyncConnection[Any]


def keyed(
    id: str, key: str = "k", *, mode: Mode = "keep", payload: bytes = b"1", until: Any = "done"
) -> NewJob:
    unique = UniqueKey(key=key, mode=mode, until=until)
    return NewJob(id=id, name="work", payload=payload, unique=unique)


async def dispatch(driver: PostgresDriver, job: NewJob) -> Enqueued | Held:
    return (await driver.enqueue([job]))[0]


@asynccontextmanager
async def transaction(server: PostgresServer) -> AsyncGenerator[Connection]:
    """A caller's own, which the test ends."""
    async with await psycopg.AsyncConnection.connect(server.url) as connection:
        yield connection


async def waiting(server: PostgresServer, count: int = 1) -> None:
    """Until so many statements wait for somebody's lock."""
    asked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    await until(lambda: server.ask(asked) == [(count,)])


def held(server: PostgresServer, schema: str) -> list[tuple[str, str]]:
    """The keys that are held, and by whom."""
    return [
        (key, job_id)
        for key, job_id in server.ask(f"SELECT key, job_id FROM {schema}.keys ORDER BY key")
    ]


async def test_of_two_processes_that_dispatch_a_key_at_once_one_creates(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    url = postgres_server.url
    async with opened(url, schema) as one, opened(url, schema) as other:
        for n in range(40):
            key = f"k{n}"
            answers = await asyncio.gather(
                dispatch(one, keyed(f"one-{n}", key)), dispatch(other, keyed(f"other-{n}", key))
            )
            assert sorted(map(str, answers)) in (
                sorted(["created", str(Held(f"one-{n}"))]),
                sorted(["created", str(Held(f"other-{n}"))]),
            )
        assert (await one.counts()).pending == 40


@pytest.mark.parametrize("ends", ["commit", "rollback"])
async def test_a_dispatch_waits_for_the_open_transaction_that_took_its_key(
    postgres_server: PostgresServer, ends: str
) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver, transaction(postgres_server) as its:
        await driver.enqueue_within([keyed("a")], its)
        second = asyncio.create_task(dispatch(driver, keyed("b")))
        await waiting(postgres_server)
        await getattr(its, ends)()
        assert await second == (Held("a") if ends == "commit" else Enqueued.CREATED)


@pytest.mark.parametrize("ends", ["commit", "rollback"])
async def test_a_dispatch_within_waits_for_another_open_transaction(
    postgres_server: PostgresServer, ends: str
) -> None:
    """The second transaction stays usable, and gets an answer instead of an error."""
    schema = fresh()
    server = postgres_server
    async with opened(server.url, schema) as driver:
        async with transaction(server) as first, transaction(server) as second:
            await driver.enqueue_within([keyed("a")], first)
            answer = asyncio.create_task(driver.enqueue_within([keyed("b"), *jobs(1)], second))
            await waiting(server)
            await getattr(first, ends)()
            expected = Held("a") if ends == "commit" else Enqueued.CREATED
            assert await answer == [expected, Enqueued.CREATED]
            await second.commit()
        assert held(server, schema) == [("k", "a" if ends == "commit" else "b")]


@pytest.mark.parametrize("ends", ["commit", "rollback"])
async def test_a_dispatch_waits_for_the_open_transaction_that_ends_the_holder(
    postgres_server: PostgresServer, ends: str
) -> None:
    """Refused while the holder is there, stored when it ends: never an error in between."""
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver, transaction(postgres_server) as its:
        await driver.enqueue([keyed("a")])
        (claimed,) = await claim(driver)
        await driver.record_within([(claimed.hold, Completed())], its)
        second = asyncio.create_task(dispatch(driver, keyed("b")))
        await waiting(postgres_server)
        await getattr(its, ends)()
        assert await second == (Held("a") if ends == "rollback" else Enqueued.CREATED)


async def test_while_a_key_is_waited_for_all_else_goes_on(postgres_server: PostgresServer) -> None:
    """One connection waits at most, however many wait for the key."""
    schema = fresh()
    server = postgres_server
    async with opened(server.url, schema, pool_size=2, timeout=5.0) as driver:
        async with transaction(server) as its:
            await driver.enqueue_within([keyed("a")], its)
            waiters = [asyncio.create_task(dispatch(driver, keyed(f"b{n}"))) for n in range(5)]
            await waiting(server)
            await driver.enqueue(jobs(3))
            claims = await claim(driver)
            assert await driver.record([(c.hold, Completed()) for c in claims]) == (
                [Recorded.APPLIED] * 3
            )
            await its.commit()
        assert await asyncio.gather(*waiters) == [Held("a")] * 5


@pytest.mark.parametrize("mode", ["keep", "replace", "debounce"])
async def test_a_refused_dispatch_in_an_open_transaction_holds_up_no_record(
    postgres_server: PostgresServer, mode: Mode
) -> None:
    schema = fresh()
    server = postgres_server
    async with opened(server.url, schema, timeout=2.0) as driver, transaction(server) as its:
        await driver.enqueue([keyed("a")])
        (claimed,) = await claim(driver)
        answer = await driver.enqueue_within([keyed("b", mode=mode)], its)
        assert answer == [Held("a")]
        assert await driver.record([(claimed.hold, Completed())]) == [Recorded.APPLIED]
        assert await dispatch(driver, keyed("c")) is Enqueued.CREATED


async def test_a_holder_that_is_taken_while_it_is_to_be_replaced_is_not_changed(
    postgres_server: PostgresServer,
) -> None:
    """Nor does the transaction of the dispatch keep its row, which a worker has to record."""
    schema = fresh()
    server = postgres_server
    async with opened(server.url, schema, timeout=5.0) as driver, transaction(server) as its:
        await driver.enqueue([keyed("a")])
        async with transaction(server) as worker:
            arguments = "'{default}', '{1}', 1, 't', 'w', 30, 99, NULL"
            await worker.execute(f"SELECT id FROM {schema}.claim({arguments})".encode())
            refused = asyncio.create_task(
                driver.enqueue_within([keyed("b", mode="replace", payload=b"2")], its)
            )
            await waiting(server)
            await worker.commit()
        assert await refused == [Held("a")]
        job = await driver.get("a")
        assert job is not None
        assert job.payload == b"1"
        assert await driver.cancel(["a"]) == [Answer.REQUESTED]


async def test_a_holder_that_ends_while_it_is_to_be_replaced_leaves_its_key(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    server = postgres_server
    async with opened(server.url, schema) as driver, transaction(server) as other:
        await driver.enqueue([keyed("a")])
        await other.execute(f"SELECT {schema}.cancel('{{a}}', NULL)".encode())
        stored = asyncio.create_task(dispatch(driver, keyed("b", mode="replace")))
        await waiting(server)
        await other.commit()
        assert await stored is Enqueued.CREATED
        assert held(server, schema) == [("k", "b")]


async def test_a_key_is_waited_for_by_a_manual_retry(postgres_server: PostgresServer) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver, transaction(postgres_server) as its:
        await driver.enqueue([keyed("a")])
        await driver.cancel(["a"])
        await driver.enqueue_within([keyed("b")], its)
        retried = asyncio.create_task(driver.retry([ManualRetry("a")]))
        await waiting(postgres_server)
        await its.commit()
        assert await retried == [Answer.HELD]


async def test_keys_are_no_part_of_what_plain_jobs_do(postgres_server: PostgresServer) -> None:
    """Neither their table nor its indexes are looked at: a day of plain jobs pays nothing."""
    schema = fresh()
    async with opened(postgres_server.url, schema):
        pass
    await until(lambda: not sessions(postgres_server, f"%{schema}%"))
    made = looked_up(postgres_server, schema)
    async with opened(postgres_server.url, schema) as driver:
        await driver.enqueue(jobs(20))
        claims = await claim(driver)
        await driver.record([(c.hold, Released("again")) for c in claims[:10]])
        await driver.record([(c.hold, Completed()) for c in claims[10:]])
        await driver.claim(request(5))
        await driver.cancel([claims[0].job.id])
        await driver.delete([claims[1].job.id, claims[11].job.id])
    await until(lambda: not sessions(postgres_server, f"%{schema}%"))
    assert looked_up(postgres_server, schema) == made


def looked_up(server: PostgresServer, schema: str) -> object:
    """How often the table of keys was read, once nobody is connected."""
    return server.ask(
        "SELECT coalesce(seq_scan, 0) + coalesce(idx_scan, 0) FROM pg_stat_user_tables "
        f"WHERE schemaname = '{schema}' AND relname = 'keys'"
    )


async def test_marks_that_are_over_go_in_bounded_steps(postgres_server: PostgresServer) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        postgres_server.ask(
            f"INSERT INTO {schema}.keys SELECT 'k' || n, 'j', now() - interval '1 s', true "
            "FROM generate_series(1, 10050) AS n"
        )
        await driver.prune(Retention(), 10)
        assert len(held(postgres_server, schema)) == 50
        await driver.prune(Retention(), 10)
        assert held(postgres_server, schema) == []


KEYS = [f"k{n}" for n in range(6)]


async def test_many_who_take_and_free_keys_never_wait_crosswise(
    postgres_server: PostgresServer,
) -> None:
    """Batches of several keys in any order, replaced and retried, while holders end."""
    schema = fresh()
    url = f"{postgres_server.url}?deadlock_timeout=10ms"
    before = deadlocks(postgres_server)
    done: Counter[str] = Counter()
    async with opened(url, schema) as one, opened(url, schema) as other:
        drivers = [one, other]
        await asyncio.gather(
            *(
                _turns(driver, random.Random(n), f"{n}", done)
                for n, driver in enumerate(drivers * 3)
            )
        )
        held_by = dict(held(postgres_server, schema))
        live = postgres_server.ask(f"SELECT key, id FROM {schema}.jobs WHERE state < 3")
        assert len(live) == len(dict(live)), "a key with two jobs that have not ended"
        assert held_by == dict(live)
    assert {"created", "held", "replaced", "done"} <= set(done), done
    await until(lambda: not sessions(postgres_server, f"%{schema}%"))
    assert deadlocks(postgres_server) == before


def deadlocks(server: PostgresServer) -> object:
    return server.ask("SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'")


async def _turns(
    driver: PostgresDriver, chance: random.Random, name: str, done: Counter[str]
) -> None:
    mine: list[str] = []
    for turn in range(40):
        batch = [
            keyed(f"{name}-{turn}-{n}", key, mode=chance.choice(["keep", "replace", "debounce"]))
            for n, key in enumerate(chance.sample(KEYS, 3))
        ]
        answers = await driver.enqueue(batch)
        mine += [job.id for job in batch]
        done.update("held" if isinstance(answer, Held) else "created" for answer in answers)
        done.update(
            "replaced"
            for job, answer in zip(batch, answers, strict=True)
            if isinstance(answer, Held) and job.unique and job.unique.mode == "replace"
        )
        await _end_some(driver, await claim(driver, 2), chance)
        await driver.cancel(chance.sample(mine, min(3, len(mine))))
        items = [ManualRetry(id) for id in chance.sample(mine, min(6, len(mine)))]
        done.update(str(answer) for answer in await driver.retry(items))


async def _end_some(driver: PostgresDriver, claims: Sequence[Claim], chance: random.Random) -> None:
    outcomes: list[Outcome] = [Completed(), Failed(FAILURE), Released("later")]
    items = [(claimed.hold, chance.choice(outcomes)) for claimed in claims]
    assert set(await driver.record(items)) <= {Recorded.APPLIED}
