"""Schedules among several connections: one fires an instant, and nobody waits crosswise."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import psycopg

from tenure.drivers.postgres import PostgresDriver
from tenure.standing import Fired, NewSchedule, Tick
from tenure.types import Held, NewJob, UniqueKey
from tests.drivers.postgres_extras.support import fresh, opened, sessions, until
from tests.servers.postgres import PostgresServer

BEGIN = datetime(2024, 2, 29, 12, 0, 0, 1, UTC)


def instant(n: int) -> datetime:
    return BEGIN + timedelta(microseconds=n)


def tick(n: int, id: str = "s", key: str | None = None) -> Tick:
    """The n-th instant of a schedule, a microsecond after the one before."""
    unique = None if key is None else UniqueKey(key=key, mode="replace")
    return Tick(
        schedule_id=id,
        revision="r",
        previous=instant(n - 1),
        instant=instant(n),
        job=NewJob(id=f"{id}-{n}", name="work", unique=unique),
    )


async def put(driver: PostgresDriver, *ids: str) -> None:
    new = [NewSchedule(id=id, revision="r", definition=b"d") for id in ids]
    await driver.put_schedules(new, now=BEGIN)


def deadlocks(server: PostgresServer) -> object:
    return server.ask("SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'")


async def test_of_several_who_fire_an_instant_one_does(postgres_server: PostgresServer) -> None:
    """I13, to the microsecond."""
    schema = fresh()
    url = postgres_server.url
    async with opened(url, schema) as one, opened(url, schema) as other:
        await put(one, "s")
        for n in range(1, 31):
            answers = await asyncio.gather(*(each.fire([tick(n)]) for each in (one, other) * 2))
            assert sorted(map(list, answers)) == [[Fired.FIRED], *[[Fired.LOST]] * 3]
        assert (await one.counts()).pending == 30


async def test_many_who_fire_and_change_schedules_never_wait_crosswise(
    postgres_server: PostgresServer,
) -> None:
    """Whatever the order of the ticks, and with unique keys in another one."""
    schema = fresh()
    url = f"{postgres_server.url}?deadlock_timeout=10ms"
    ids = [f"s{n}" for n in range(8)]
    before = deadlocks(postgres_server)
    async with opened(url, schema) as one, opened(url, schema) as other:
        await put(one, *ids)
        for n in range(1, 21):
            ticks = [tick(n, id, f"k{(5 * place) % 8}") for place, id in enumerate(ids)]
            keyed = [new for each in ticks[::3] if (new := each.job) is not None]
            answers = await asyncio.gather(
                one.fire(ticks), other.fire(ticks[::-1]), one.fire(ticks[::2]),
                put(other, *ids[::-1]), one.drop_schedules(["s9", "s8"]), _enqueue(other, keyed),
            )  # fmt: skip
            fired = [a.count(Fired.FIRED) for a in map(list, answers[:3])]
            assert sum(fired) == len(ids)
        assert (await one.counts()).pending == 8
    await until(lambda: not sessions(postgres_server, f"%{schema}%"))
    assert deadlocks(postgres_server) == before


async def _enqueue(driver: PostgresDriver, jobs: Sequence[NewJob]) -> None:
    others = [
        NewJob(id=f"other-{job.id}", name="work", unique=job.unique) for job in reversed(jobs)
    ]
    await driver.enqueue(others)


async def test_an_instant_whose_key_is_in_doubt_is_put_off_and_holds_up_no_other(
    postgres_server: PostgresServer,
) -> None:
    """It passes when the open transaction has ended, and others pass meanwhile."""
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        await put(driver, "s", "t")
        async with await psycopg.AsyncConnection.connect(postgres_server.url) as its:
            taken = NewJob(id="a", name="work", unique=UniqueKey(key="k"))
            await driver.enqueue_within([taken], its)
            answers = await driver.fire([tick(1, key="k"), tick(1, "t")])
            assert answers == [Fired.LOST, Fired.FIRED]
            assert await driver.get("t-1") is not None
            await its.commit()
        assert await driver.fire([tick(1, key="k")]) == [Fired.FIRED]
        assert await driver.get("s-1") is None
        assert await driver.enqueue([tick(2, key="k").job or taken]) == [Held("a")]
        assert await driver.fire([tick(2)]) == [Fired.FIRED]


async def test_an_id_that_comes_twice_among_the_ticks_is_stored_once(
    postgres_server: PostgresServer,
) -> None:
    schema = fresh()
    async with opened(postgres_server.url, schema) as driver:
        await put(driver, "s", "t")
        job = NewJob(id="same", name="work")
        lost, first, again = (
            Tick(schedule_id=id, revision=revision, previous=BEGIN, instant=instant(1), job=job)
            for id, revision in (("s", "other"), ("s", "r"), ("t", "r"))
        )
        answers = await driver.fire([lost, first, again])
        assert answers == [Fired.LOST, Fired.FIRED, Fired.FIRED]
        assert (await driver.counts()).pending == 1
