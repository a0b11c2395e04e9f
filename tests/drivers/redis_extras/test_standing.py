"""Unique keys, histories and limits on the server: bounded cost, damage, races, nothing left."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from tenure.drivers.redis import RedisDriver
from tenure.outcomes import Completed, Failed, Outcome, Retried
from tenure.standing import Limit
from tenure.types import Enqueued, Held, JobFilter, NewJob, Retention, UniqueKey
from tests.drivers.redis_extras.support import FAILURE, claim, jobs, opened, request
from tests.servers.redis import RedisServer

T0 = datetime(2030, 1, 1, tzinfo=UTC)
ONE = Limit(key="k", concurrent=1)


def limited(count: int, *keys: str, prefix: str = "limited") -> list[NewJob]:
    names = tuple(sorted(keys or ("k",)))
    return [NewJob(id=f"{prefix}-{n}", name="work", limits=names) for n in range(count)]


async def commands(server: RedisServer, call: Any) -> int:
    with server.client() as client:
        client.config_resetstat()
        await call
        stats = client.info("commandstats")
    return sum(stat["calls"] for stat in stats.values())


async def stored(driver: RedisDriver, number: int) -> None:
    for at in range(0, number, 1000):
        await driver.enqueue(limited(min(1000, number - at), prefix=f"limited-{at}"))


async def test_jobs_that_a_limit_holds_back_cost_claims_nothing(redis_server: RedisServer) -> None:
    """However many wait at the head of the queue, and of the freed place only one is looked at."""

    async def cost(number: int) -> tuple[int, int]:
        async with opened(redis_server) as driver:
            await driver.put_limit(ONE)
            await stored(driver, number)
            (running,) = await claim(driver)
            await driver.enqueue(jobs(40))
            plain = await commands(redis_server, claim(driver, 16))
            await driver.record([(running.hold, Completed())])
            freed = await commands(redis_server, claim(driver, 16))
            return plain, freed

    assert await cost(20_000) == await cost(20)


async def test_jobs_without_limits_touch_no_data_of_limits(redis_server: RedisServer) -> None:
    async def cost(driver: RedisDriver, prefix: str) -> int:
        async def turn() -> None:
            await driver.enqueue(jobs(64, prefix))
            claims = await claim(driver, 64)
            await driver.record([(claimed.hold, Completed()) for claimed in claims])

        return await commands(redis_server, turn())

    async with opened(redis_server) as driver:
        # A total that becomes 0 is dropped, by a command of its own.
        await driver.enqueue([NewJob(id="later", name="work", delay=3600.0), *jobs(1, "running")])
        await claim(driver)
        await cost(driver, "first")  # sends the scripts
        before = await cost(driver, "before")
        await driver.put_limit(ONE)
        await driver.enqueue(limited(100))
        (running,) = await claim(driver)
        assert running.job.limits == ("k",)
        assert await cost(driver, "after") == before


async def test_lanes_by_the_thousand_that_one_key_holds_do_not_hide_what_is_behind(
    redis_server: RedisServer,
) -> None:
    """One script parks a bounded number; the claim goes on until it has something."""
    async with opened(redis_server, "many-lanes") as driver:
        batch = [
            NewJob(id=f"lane-{n}", name="work", limits=("all", f"user-{n:04}")) for n in range(3500)
        ]
        await driver.enqueue(batch)
        await driver.put_limit(Limit(key="all", concurrent=1))
        (running,) = await claim(driver, 1)
        await driver.enqueue(jobs(1, "behind"))
        assert [claimed.job.id for claimed in await claim(driver)] == ["behind-0"]
        answer = await driver.exchange([(running.hold, Completed())], request())
        assert [claimed.job.id for claimed in answer.claims] == ["lane-1"]
        assert await driver.drop_limit("all")
        assert len(await claim(driver, 5000)) == 3498


async def test_a_limit_on_many_keys_that_is_dropped_lets_all_their_jobs_go(
    redis_server: RedisServer,
) -> None:
    """Also those that the script did not come to: claims go on where it stopped."""
    async with opened(redis_server) as driver:
        await driver.put_limit(Limit(key="user-*", concurrent=0))
        batch = [NewJob(id=f"{n}", name="work", limits=(f"user-{n:04}",)) for n in range(2500)]
        await driver.enqueue(batch)
        assert await claim(driver) == []
        assert await driver.drop_limit("user-*")
        taken = 0
        for _ in range(4):
            taken += len(await claim(driver, 5000))
        assert taken == 2500


async def test_a_damaged_record_keeps_no_place_and_no_key(redis_server: RedisServer) -> None:
    """I12: whether its job waits as the head of its lane, is kept back, or runs."""
    async with opened(redis_server, "standing-damage") as driver:
        await driver.put_limit(ONE)
        unique = UniqueKey(key="once")
        batch = limited(4)
        await driver.enqueue([NewJob(id="u", name="work", unique=unique), *batch])
        with redis_server.client() as client:
            for job_id in ("u", "limited-0", "limited-2"):
                client.hset("{standing-damage}:marks", job_id, b"rubbish")
        for turn in range(4):
            found = {claimed.job.id: claimed for claimed in await claim(driver)}
            assert f"limited-{turn}" in found
            assert (found[f"limited-{turn}"].damage is not None) == (turn in (0, 2))
            await driver.record([(claimed.hold, Failed(FAILURE)) for claimed in found.values()])
        again = NewJob(id="u2", name="work", unique=unique)
        assert list(await driver.enqueue([again])) == [Enqueued.CREATED]
        await claim(driver)
        await driver.enqueue(limited(2, prefix="more"), now=T0)
        await claim(driver, now=T0)
        with redis_server.client() as client:
            client.hset("{standing-damage}:marks", "more-0", b"rubbish")
        await driver.reclaim(10, [0.0], now=T0 + timedelta(seconds=60))
        claims = await claim(driver, now=T0 + timedelta(seconds=60))
        assert "more-1" in [claimed.job.id for claimed in claims]


async def test_of_dispatches_at_the_same_moment_one_gets_the_key(redis_server: RedisServer) -> None:
    async with opened(redis_server, "race") as one, opened(redis_server, "race") as other:
        for turn in range(50):
            unique = UniqueKey(key=f"key-{turn}")
            answers = await asyncio.gather(
                one.enqueue([NewJob(id=f"one-{turn}", name="work", unique=unique)]),
                other.enqueue([NewJob(id=f"other-{turn}", name="work", unique=unique)]),
            )
            got = [answer for (answer,) in answers]
            assert got.count(Enqueued.CREATED) == 1
            assert sum(isinstance(answer, Held) for answer in got) == 1


async def test_calls_that_share_a_round_trip_see_each_others_keys(
    redis_server: RedisServer,
) -> None:
    async with opened(redis_server) as driver:
        unique = UniqueKey(key="k", mode="replace")
        batch = [NewJob(id=f"{n}", name="work", payload=b"%d" % n, unique=unique) for n in range(5)]
        answers = await asyncio.gather(*(driver.enqueue([job]) for job in batch))
        assert [list(answer) for answer in answers] == [[Enqueued.CREATED], *[[Held("0")]] * 4]
        (claimed,) = await claim(driver)
        assert (claimed.job.id, claimed.job.payload) == ("0", b"4")


async def test_keys_limits_and_histories_leave_nothing_behind(redis_server: RedisServer) -> None:
    """I16: the schema, a counter, and hints and claims that expire remain."""
    async with opened(redis_server, "standing-left") as driver:
        await driver.put_limit(Limit(key="k", concurrent=2, per_second=2))
        for turn in range(30):
            now = T0 + timedelta(seconds=turn)
            mode: Any = ("keep", "replace", "debounce", "throttle")[turn % 4]
            unique = UniqueKey(key=f"{turn}", mode=mode, period=5.0)
            job = NewJob(id=f"u-{turn}", name="work", unique=unique, limits=("j", "k"))
            await driver.enqueue([job, *limited(3, prefix=f"{turn}")], now=now)
            claims = await claim(driver, now=now)
            ends: list[Outcome] = [Retried(0.0, FAILURE), Failed(FAILURE), Completed()]
            await driver.record([(c.hold, ends[n % 3]) for n, c in enumerate(claims)], now=now)
        later = T0 + timedelta(days=1)
        await driver.purge(JobFilter(), 10_000, now=later)
        assert await driver.drop_limit("k")
        await driver.prune(Retention(), 10_000, now=later)
        assert (await driver.counts(now=later)).by_queue == {}
        await driver.prune(Retention(), 10_000, now=later + timedelta(seconds=120))
    with redis_server.client() as client:
        left = set(client.keys("{standing-left}:*"))
        expiring = {key for key in left if client.ttl(key) > 0}
    names = {key.decode().partition("}:")[2] for key in left - expiring}
    assert names == {"schema", "seq"}
    assert {key.split(b":")[1] for key in expiring} <= {b"wake", b"claims"}


async def test_a_prune_drops_old_keys_in_steps(redis_server: RedisServer) -> None:
    async with opened(redis_server, "old-keys") as driver:
        for turn in range(5):
            batch = [
                NewJob(
                    id=f"{turn}-{n}",
                    name="work",
                    unique=UniqueKey(key=f"{turn}-{n}", mode="throttle", period=1.0),
                )
                for n in range(1000)
            ]
            await driver.enqueue(batch, now=T0)
        await driver.prune(Retention(), 1, now=T0 + timedelta(seconds=2))
    with redis_server.client() as client:
        assert client.exists("{old-keys}:unique", "{old-keys}:unique_ends") == 0
