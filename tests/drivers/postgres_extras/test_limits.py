"""Limits among several connections: exact counts, no waiting for callers, bounded cost, damage."""

import asyncio
import random
import re
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from msgspec.structs import replace

from tenure.driver import RecordItem
from tenure.drivers.postgres import PostgresDriver
from tenure.outcomes import Completed, Released
from tenure.standing import Limit
from tenure.types import Claim, Enqueued, Exchanged, Held, NewJob, Retention, UniqueKey
from tests.drivers.postgres_extras.support import (
    claim,
    fresh,
    jobs,
    opened,
    request,
    sessions,
    until,
)
from tests.drivers.postgres_extras.test_waking import listening
from tests.servers.postgres import PostgresServer

ONE = Limit(key="key", concurrent=1)
DERIVED = ("marks", "lanes", "holds", "claims")


def limited(id: str, *keys: str, queue: str = "default") -> NewJob:
    return NewJob(id=id, name="work", queue=queue, limits=keys or ("key",))


def ids(claims: Sequence[Claim]) -> list[str]:
    return [claimed.job.id for claimed in claims]


@asynccontextmanager
async def transaction(server: PostgresServer) -> AsyncGenerator["psycopg.AsyncConnection[Any]"]:
    """A caller's own, rolled back in the end unless the test has ended it."""
    async with await psycopg.AsyncConnection.connect(server.url) as connection:
        yield connection
        await connection.rollback()


@asynccontextmanager
async def limits_held(server: PostgresServer, schema: str) -> AsyncGenerator[None]:
    """Somebody has the right to look at limits, and keeps it."""
    async with transaction(server) as other:
        await other.execute(f"SELECT {schema}.hold_limits()".encode())
        yield


def left(server: PostgresServer, schema: str) -> dict[str, object]:
    """How many rows there are of what is derived from limits."""
    return {table: server.ask(f"SELECT count(*) FROM {schema}.{table}")[0][0] for table in DERIVED}


# --- at once ------------------------------------------------------------------------------------


class Ledger:
    """Counts what runs of each key, apart from the store: a hold counts less than it lasts."""

    def __init__(self) -> None:
        self.running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.ended = 0

    def began(self, claims: Sequence[Claim]) -> None:
        self.running.update(key for claimed in claims for key in claimed.job.limits)
        self.most |= self.running

    def ends(self, claims: Sequence[Claim]) -> None:
        self.running.subtract(key for claimed in claims for key in claimed.job.limits)


async def _work(driver: PostgresDriver, ledger: Ledger, total: int, chance: random.Random) -> None:
    running: list[Claim] = []
    while ledger.ended < total:
        items: list[RecordItem] = [(claimed.hold, Completed()) for claimed in running]
        if chance.random() < 0.1:
            items = [(claimed.hold, Released("again")) for claimed in running]
        else:
            ledger.ended += len(running)
        ledger.ends(running)
        exchanged: Exchanged = await driver.exchange(items, request(chance.randint(1, 9)))
        running = list(exchanged.claims)
        ledger.began(running)
        if not running:
            await asyncio.sleep(0.005)


async def test_twenty_connections_at_once_keep_to_a_hundred_limits(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    url = f"{postgres_server.url}?deadlock_timeout=100ms"
    server = postgres_server
    before = deadlocks(server)
    async with opened(url, schema, pool_size=10) as one, opened(url, schema, pool_size=10) as other:
        await one.put_limit(Limit(key="key-*", concurrent=1))
        await one.put_limit(Limit(key="all", concurrent=40))
        chance = random.Random(1)
        keys = [f"key-{n:02}" for n in range(100)]
        batch = [
            limited(f"job-{n}", *sorted({*chance.sample(keys, chance.randint(1, 2)), "all"}))
            for n in range(400)
        ]
        batch += jobs(100, "plain")
        chance.shuffle(batch)
        ledger = Ledger()
        seen: list[tuple[Any, ...]] = []

        async def look() -> None:
            async with transaction(server) as observer:
                await observer.set_autocommit(True)
                while ledger.ended < len(batch):
                    cursor = await observer.execute(
                        f"SELECT k, count(*) FROM {schema}.jobs, unnest(limits) AS k "
                        "WHERE state = 2 GROUP BY k "
                        "HAVING count(*) > CASE k WHEN 'all' THEN 40 ELSE 1 END".encode()
                    )
                    seen.extend(await cursor.fetchall())
                    await asyncio.sleep(0.02)

        async def dispatch() -> None:
            for start in range(0, len(batch), 50):
                answers = await one.enqueue(batch[start : start + 50])
                assert set(answers) == {Enqueued.CREATED}

        await asyncio.gather(
            dispatch(),
            look(),
            *(
                _work(driver, ledger, len(batch), random.Random(n))
                for n, driver in enumerate([one, other] * 10)
            ),
        )
        assert seen == []
        assert ledger.most.pop("all") <= 40
        assert set(ledger.most.values()) == {1}
        assert (await one.counts()).completed == len(batch)
        await claim(one)
        assert left(server, schema) == dict.fromkeys(DERIVED, 0)
    await until(lambda: not sessions(server, f"%{schema}%"))
    assert deadlocks(server) == before


def deadlocks(server: PostgresServer) -> object:
    return server.ask("SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'")


# --- a caller's transaction ---------------------------------------------------------------------


async def test_a_transaction_that_has_dispatched_limited_jobs_delays_nobody(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    server = postgres_server
    async with opened(server.url, schema, timeout=2.0) as driver, transaction(server) as its:
        await driver.put_limit(ONE)
        await driver.enqueue_within([limited("a"), limited("b"), limited("c", "other")], its)
        await driver.enqueue([limited("d"), limited("e"), *jobs(1)])
        (first, plain) = await claim(driver)
        assert [first.job.id, plain.job.id] == ["d", "job-0"]
        await driver.record_within([(first.hold, Completed())], its)
        assert await claim(driver) == []  # its hold ends with the commit
        await driver.cancel(["e"])
        await driver.enqueue([limited("f")])
        await its.commit()
        claims = await claim(driver)
        assert ids(claims) == ["a", "c"]
        for right in ("b", "f"):
            await driver.record([(claims[0].hold, Completed())])
            claims = await claim(driver)
            assert ids(claims) == [right]


async def test_a_transaction_that_changes_the_first_of_a_lane_lets_the_others_go_on(
    postgres_server: PostgresServer,
) -> None:
    """Whether the first stands in the order of claims, or waits for its key; also when undone."""
    schema = fresh()
    server = postgres_server
    unique = UniqueKey(key="u", mode="replace")
    async with opened(server.url, schema, timeout=2.0) as driver:
        await driver.put_limit(ONE)
        first = replace(limited("first"), unique=unique)
        await driver.enqueue([first, limited("a"), limited("b"), limited("c")])
        async with transaction(server) as its:
            other = replace(first, id="other", payload=b"2")
            assert await driver.enqueue_within([other], its) == [Held("first")]
            for right in ("a", "b"):
                (running,) = await claim(driver)
                assert running.job.id == right
                await driver.record([(running.hold, Completed())])
        served: list[str] = []
        while claims := await claim(driver):
            served += ids(claims)
            await driver.record([(claimed.hold, Completed()) for claimed in claims])
        assert sorted(served) == ["c", "first"]
        assert left(server, schema)["lanes"] == 0


async def test_what_a_transaction_leaves_is_found_when_all_of_a_lane_was_locked(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    server = postgres_server
    unique = UniqueKey(key="u", mode="replace")
    async with opened(server.url, schema, timeout=2.0) as driver:
        await driver.put_limit(ONE)
        first = replace(limited("first"), unique=unique)
        await driver.enqueue([limited("running"), first])
        (running,) = await claim(driver)
        async with transaction(server) as its:
            await driver.enqueue_within([replace(first, id="other")], its)
            await driver.record([(running.hold, Completed())])
            assert await claim(driver) == []
            assert await claim(driver) == []
        assert await driver.wait(["default"], 20.0)
        assert ids(await claim(driver)) == ["first"]


# --- the right to look at limits ----------------------------------------------------------------


async def test_jobs_without_limits_ask_for_no_right_and_leave_no_mark(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    server = postgres_server
    async with opened(server.url, schema, timeout=0.9) as driver:
        async with limits_held(server, schema):
            await driver.enqueue(jobs(20))
            claims = await claim(driver, 10)
            await driver.record([(c.hold, Released("again")) for c in claims[:5]])
            exchanged = await driver.exchange([(claims[5].hold, Completed())], request(3))
            assert len(exchanged.claims) == 3
            await driver.cancel(["job-0"])
            await driver.delete(["job-0", "job-19"])
            await driver.claim(request(2, lease=0.001))
            await driver.reclaim(9, [0.0])
            await driver.prune(Retention(), 10)
            assert await driver.next_due(["default"]) is None
        assert left(server, schema) == dict.fromkeys(DERIVED, 0)


async def test_all_but_claims_go_on_while_the_right_is_kept(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    server = postgres_server
    async with opened(server.url, schema, timeout=0.9) as driver:
        await driver.put_limit(ONE)
        await driver.enqueue([limited(id) for id in "abc"])
        (running,) = await claim(driver)
        async with limits_held(server, schema):
            await driver.enqueue([limited("d"), limited("e")])
            await driver.cancel(["b"])
            await driver.delete(["b", "d"])
            await driver.record([(running.hold, Completed())])
            await driver.put_limit(Limit(key="key", concurrent=2))
            assert await driver.next_due(["default"]) is not None
            assert (await driver.counts()).pending == 2
        assert ids(await claim(driver)) == ["c", "e"]


async def test_a_claim_goes_on_without_limited_jobs_where_the_right_is_not_to_be_had(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    server = postgres_server
    async with opened(server.url, schema) as driver:
        await driver.put_limit(Limit(key="key", concurrent=9))
        await driver.enqueue([limited("a"), *jobs(2), limited("b")])
        async with limits_held(server, schema):
            assert ids(await claim(driver)) == ["job-0", "job-1"]
        assert ids(await claim(driver)) == ["a", "b"]


# --- hints, cost, damage ------------------------------------------------------------------------


async def test_a_freed_place_ends_the_wait_of_another_process(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    url = postgres_server.url
    async with opened(url, schema) as one, opened(url, schema) as other:
        await one.put_limit(ONE)
        await one.enqueue([limited("a"), limited("b")])
        (running,) = await claim(one)
        await listening(other)
        waiting = asyncio.ensure_future(other.wait(["default"], 30.0))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        async with asyncio.timeout(3.0):  # looking for itself takes longer
            await one.record([(running.hold, Completed())])
            assert await waiting
        assert ids(await claim(other)) == ["b"]


def pages(server: PostgresServer, schema: str) -> int:
    """How many pages a claim looks at that takes a job without limits from each of two queues."""
    taken = f"{schema}.claim('{{default,other}}', '{{1,1}}', 2, 't', 'w', 30, 99, NULL)"
    text = ""
    with server.client() as client:
        for _ in range(2):  # the second time nothing has to be loaded
            rows = client.execute(
                f"EXPLAIN (ANALYZE, BUFFERS) SELECT count(*) FROM {taken}".encode()
            ).fetchall()
            client.execute(f"UPDATE {schema}.jobs SET state = 0, token = NULL WHERE state = 2 "
                           "AND limits IS NULL".encode())  # fmt: skip
            text = "\n".join(row[0] for row in rows)
    found = re.search(r"shared hit=(\d+)(?: read=(\d+))?", text)
    assert found is not None
    return int(found[1]) + int(found[2] or 0)


async def test_jobs_of_a_full_key_slow_no_claim_however_many(own_server: PostgresServer) -> None:
    own_server.ask("ALTER SYSTEM SET autovacuum = off")
    own_server.ask("SELECT pg_reload_conf()")
    seen: dict[int, int] = {}
    for count in (10, 100_000):
        schema = fresh()
        async with opened(own_server.url, schema) as driver:
            await driver.put_limit(ONE)
            await driver.enqueue([limited("running")])
            assert len(await claim(driver)) == 1
            columns = (
                "'job-' || n", "'work'::text", "'default'::text", "'x'::bytea", "NULL::float8",
                "NULL::timestamptz", "0", "NULL::int", "NULL::float8", "NULL::text", "''::bytea",
                """'{"key"}'::text""",
            )  # fmt: skip
            arrays = ", ".join(f"array_agg({column})" for column in columns)
            stored = f"SELECT {schema}.enqueue({arrays}, NULL) FROM generate_series(1, %s) AS n"
            own_server.ask(stored, count)
            await driver.enqueue([*jobs(1), *jobs(1, "other", "other")])
            seen[count] = pages(own_server, schema)
            assert (await driver.counts()).pending == min(count + 2, 100_001)
            assert ids(await claim(driver, 2)) == ["job-0"]
    assert seen[100_000] <= seen[10] + 20, seen


async def test_a_wrong_count_of_holds_is_mended(postgres_server: PostgresServer) -> None:
    schema = fresh()
    server = postgres_server
    async with opened(server.url, schema) as driver:
        await driver.put_limit(Limit(key="key", concurrent=2))
        await driver.enqueue([limited(id) for id in "abcd"])
        first = await claim(driver)
        assert ids(first) == ["a", "b"]
        server.ask(f"DELETE FROM {schema}.jobs WHERE id = 'a'")
        assert await claim(driver) == []
        await driver.prune(Retention(), 10)
        assert ids(await claim(driver)) == ["c"]
        server.ask(f"DELETE FROM {schema}.holds")
        await driver.prune(Retention(), 10)
        assert await claim(driver) == []
        await driver.record([(first[1].hold, Completed())])
        assert ids(await claim(driver)) == ["d"]


async def test_a_record_with_unreadable_keys_harms_only_itself(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        await driver.put_limit(ONE)
        await driver.enqueue([limited("a", "x"), limited("b", "y"), limited("c"), limited("d")])
        postgres_server.ask(f"UPDATE {schema}.jobs SET limits = '{{NULL,x}}' WHERE id = 'a'")
        postgres_server.ask(f"UPDATE {schema}.jobs SET limits = NULL WHERE id = 'b'")
        claims = await claim(driver)
        assert ids(claims) == ["a", "b", "c"]
        assert [claimed.damage is None for claimed in claims] == [False, True, True]
        await driver.record([(claimed.hold, Completed()) for claimed in claims])
        assert ids(await claim(driver)) == ["d"]
