"""What scripts do to the server's keys: in one slot, bounded, in step with each other."""

import asyncio
import random
import re
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from redis.crc import key_slot

from tenure.drivers.redis import scripts
from tenure.errors import StoreError
from tenure.outcomes import Completed
from tenure.presence import WorkerInfo
from tenure.standing import NewSchedule, Tick
from tenure.states import State
from tenure.types import (
    Job,
    JobFilter,
    ManualRetry,
    Move,
    NewJob,
    QueueLimit,
    Retention,
)
from tests.drivers.redis_extras.support import OUTCOMES, claim, jobs, opened, request, step
from tests.servers.redis import RedisServer

T0 = datetime(2030, 1, 1, tzinfo=UTC)
LUA = Path(scripts.__file__).parent / "lua"
DEFINITION = re.compile(r"local [A-Z][A-Z_, ]* = ")


def keys_of(server: RedisServer, namespace: str) -> set[str]:
    with server.client() as client:
        found = list(client.scan_iter(f"*{namespace}*", count=1000))
    return {key.decode().partition("}:")[2] for key in found}


@contextmanager
def monitored(server: RedisServer) -> Generator[list[str]]:
    """Everything the server is asked to do meanwhile, also by scripts."""
    seen: list[str] = []
    with server.client() as client, client.monitor() as monitor:
        yield seen
        with server.client() as other:
            other.echo("monitored-all")
        for entry in monitor.listen():
            if entry["command"] == "ECHO monitored-all":
                return
            seen.append(entry["command"])


async def test_each_script_of_a_store_stays_in_one_slot(redis_server: RedisServer) -> None:
    """A24: every key that is touched, declared or not, maps to the slot of the namespace."""
    async with opened(redis_server, "slots") as driver:
        with monitored(redis_server) as seen:
            chance = random.Random(1)
            for turn in range(150):
                now = T0 + timedelta(seconds=30 * turn)
                await step(driver, chance, [f"job-{n}" for n in range(20)], now)
            for queue in ("a", "b"):
                await driver.enqueue([NewJob(id=queue, name="work", queue=queue, delay=5.0)])
                await driver.pause(queue, True)
                await driver.pause(queue, False)
            await driver.exchange([], request())
            await driver.extend([], 1.0)
            await driver.expired(1)
            await driver.next_due(["a", "b"])
            await driver.history("job-1")
            await driver.limits()
            await driver.put_schedules([NewSchedule(id="s", revision="r", definition=b"")], now=T0)
            await driver.pause_schedule("s", False)
            tick = Tick(
                schedule_id="s", revision="r", previous=T0, instant=T0, job=NewJob(id="t", name="w")
            )
            await driver.fire([tick], now=T0)
            await driver.schedules()
            await driver.drop_schedules(["s"])
            await driver.list(JobFilter(), None, 10)
            await driver.counts()
            await driver.workers()
            await driver.wait(["a", "b"], 0.01)
    words = [word for command in seen for word in command.split() if "slots" in word]
    assert len(words) > 500
    assert {key_slot(word.encode()) for word in words} == {key_slot(b"{slots}")}
    assert all(word.startswith("{slots}:") for word in words)
    assert not [c for c in seen if c.split()[0] in ("KEYS", "SCAN", "HSCAN", "ZSCAN")]


async def test_a_script_that_the_server_forgot_is_sent_again(redis_server: RedisServer) -> None:
    async with opened(redis_server) as driver:
        await driver.enqueue(jobs(3))
        with redis_server.client() as client:
            client.script_flush()
        claims = await claim(driver, 2)
        with redis_server.client() as client:
            client.script_flush()
        answer = await driver.exchange([(c.hold, Completed()) for c in claims], request())
        assert [str(recorded.value) for recorded in answer.recorded] == ["applied", "applied"]
        assert len(answer.claims) == 1


async def test_an_exchange_of_64_jobs_is_one_command(redis_server: RedisServer) -> None:
    async with opened(redis_server) as driver:
        await driver.enqueue(jobs(128))
        claims = await claim(driver, 64)
        items = [(claimed.hold, Completed(b"1")) for claimed in claims]
        await driver.exchange([], request(0))
        with redis_server.client() as client:
            before = client.info("commandstats")
            answer = await driver.exchange(items, request(64))
            after = client.info("commandstats")
    assert len(answer.claims) == 64
    calls = {name: after[name]["calls"] - before.get(name, {"calls": 0})["calls"] for name in after}
    assert calls["cmdstat_evalsha"] == 1
    inner = sum(calls.values()) - calls["cmdstat_evalsha"] - calls.get("cmdstat_info", 0)
    assert inner <= 30  # for all 64 together


async def test_enqueues_that_arrive_together_share_a_round_trip(redis_server: RedisServer) -> None:
    async with opened(redis_server) as driver:
        await driver.enqueue(jobs(1, "first"))
        with redis_server.client() as client:
            before = client.info("commandstats")["cmdstat_evalsha"]["calls"]
            other = NewJob(id="first-0", name="other")
            calls = [[job] for job in jobs(50)] + [[other, NewJob(id="not", name="work")]]
            answers = await asyncio.gather(*(driver.enqueue(call) for call in calls))
            after = client.info("commandstats")["cmdstat_evalsha"]["calls"]
        assert after - before == 1
        assert [str(answer) for call in answers[:50] for answer in call] == ["created"] * 50
        assert [str(answer) for answer in answers[50]] == ["duplicate", "created"]
        assert (await driver.counts()).pending == 51
        assert await driver.get("not") is None


async def test_large_enqueues_that_arrive_together_are_sent_in_parts(
    redis_server: RedisServer,
) -> None:
    """Each part is answered long before the time limit of a call."""
    payload = b"x" * 1024 * 1024
    async with opened(redis_server) as driver:
        with redis_server.client() as client:
            await driver.enqueue(jobs(1))
            before = client.info("commandstats")["cmdstat_evalsha"]["calls"]
            calls = [[NewJob(id=f"{n}", name="work", payload=payload)] for n in range(24)]
            await asyncio.gather(*(driver.enqueue(call) for call in calls))
            after = client.info("commandstats")["cmdstat_evalsha"]["calls"]
        assert 3 <= after - before <= 4
        assert await driver.purge(JobFilter(), 100) == 25


async def test_a_claim_that_fails_takes_nothing(redis_server: RedisServer) -> None:
    """I15: also where it found something in a queue before the one that is damaged."""
    queues = (QueueLimit("a", 9), QueueLimit("a", 9), QueueLimit("b", 9))
    async with opened(redis_server, "fails") as driver:
        await driver.enqueue([*jobs(2, "a", "a"), *jobs(2, "b", "b")])
        with redis_server.client() as client:
            client.rename("{fails}:levels:b", "{fails}:away")
            client.set("{fails}:levels:b", "no sorted set")
            with pytest.raises(StoreError):
                await driver.claim(replace(request(), queues=queues))
            client.rename("{fails}:away", "{fails}:levels:b")
        assert (await driver.counts()).pending == 4
        claims = await driver.claim(replace(request(), queues=queues))
        assert [claimed.job.id for claimed in claims] == ["a-0", "a-1", "b-0", "b-1"]


@pytest.mark.parametrize("seed", range(4))
async def test_totals_and_places_equal_a_full_count(redis_server: RedisServer, seed: int) -> None:
    chance = random.Random(seed)
    namespace = f"totals-{seed}"
    async with opened(redis_server, namespace) as driver:
        now = T0
        for _ in range(150):
            now += timedelta(seconds=chance.choice([0, 1, 20, 70]))
            await step(driver, chance, [f"job-{n}" for n in range(40)], now)
        stored = (await driver.list(JobFilter(), None, 1000)).jobs
    counted = Counter((list(State).index(job.state), job.queue) for job in stored)
    numbers = (0, 1, 2, 3, 4, 5)
    expected = {
        f"{numbers[index]}{queue}".encode(): str(n).encode()
        for (index, queue), n in counted.items()
    }
    with redis_server.client() as client:
        assert client.hgetall(f"{{{namespace}}}:totals") == expected
        weights = client.hgetall(f"{{{namespace}}}:bytes")
        assert {key.decode(): int(n) for key, n in weights.items()} == weighed(stored)
        places = {
            key.decode().partition("}:")[2]: client.zcard(key)
            for key in client.keys(f"{{{namespace}}}:*")
            if key.decode().partition("}:")[2].startswith(("ready:", "kept:", "leases", "ended:"))
        }
        levels = {
            f"ready:{int(level)}:{key.decode().partition('levels:')[2]}"
            for key in client.keys(f"{{{namespace}}}:levels:*")
            for level in client.zrange(key, 0, -1)
        }
    assert sum(places.values()) == len(stored)
    assert levels == {place for place in places if place.startswith("ready:")}


def weighed(jobs: Iterable[Job[bytes]]) -> dict[str, int]:
    """The bytes of completed jobs by queue, where there are any."""
    weights: Counter[str] = Counter()
    for job in jobs:
        if job.state is State.COMPLETED:
            weights[job.queue] += len(job.payload) + len(job.result or b"")
    return dict(+weights)


async def test_a_store_that_was_used_leaves_a_bounded_number_of_keys(
    redis_server: RedisServer,
) -> None:
    """I16: after 500 jobs through all ends the schema, a counter, and hints that expire remain."""
    namespace = "bounded"
    nothing = Retention(completed=0.0, completed_count=0, failed=0.0, cancelled=0.0)
    async with opened(redis_server, namespace) as driver:
        now = T0
        for turn in range(50):
            queue = f"queue-{turn}"
            batch = [
                NewJob(id=f"{turn}-{n}", name="work", queue=queue, priority=n, headers={"a": "b"})
                for n in range(10)
            ]
            await driver.enqueue(batch, now=now)
            claims = await driver.claim(request(queue=queue), now=now)
            await driver.progress(claims[0].hold, b"half", now=now)
            ends = [(c.hold, OUTCOMES[n % 8]) for n, c in enumerate(claims)]
            await driver.record(ends, now=now)
            await driver.cancel([job.id for job in batch[::2]], now=now)
            await driver.retry([ManualRetry(batch[1].id)], now=now)
            await driver.move([Move(job_id=batch[1].id, priority=50)], now=now)
            await driver.delete([batch[1].id], now=now)
            await driver.pause(queue, True)
            await driver.pause(queue, False)
        worker = WorkerInfo(
            id="w", name=None, host="h", pid=1, queues=(), concurrency=1, running=0,
            started_at=now, seen_at=now,
        )  # fmt: skip
        await driver.report(worker, 3600.0)
        later = now + timedelta(seconds=120)
        await driver.prune(nothing, 10_000, now=later)
        await driver.purge(JobFilter(), 10_000, now=later)
        assert (await driver.counts(now=later)).by_queue == {}
        await driver.prune(nothing, 10_000, now=later + timedelta(seconds=120))
    left = keys_of(redis_server, namespace)
    hints = {key for key in left if key.startswith("wake:")}
    with redis_server.client() as client:
        assert all(client.ttl(f"{{{namespace}}}:{key}") > 0 for key in hints)
    assert left - hints == {"schema", "seq"}


async def test_a_prune_forgets_all_ids_that_need_not_be_known(redis_server: RedisServer) -> None:
    """I16: also those of one purge of more than a script may look at."""
    later = T0 + timedelta(seconds=120)
    async with opened(redis_server, "many-gone") as driver:
        for turn in range(5):
            await driver.enqueue(jobs(1000, f"turn-{turn}"), now=T0)
        assert await driver.purge(JobFilter(), 10_000, now=T0) == 5000
        assert await driver.prune(Retention(), 1, now=later) == 0
    assert keys_of(redis_server, "many-gone") == {"schema", "seq", "wake:default"}


async def test_deleted_ids_are_forgotten_also_where_nobody_prunes(
    redis_server: RedisServer,
) -> None:
    async with opened(redis_server, "gone") as driver:
        for turn in range(30):
            now = T0 + timedelta(seconds=40 * turn)
            await driver.enqueue(jobs(5, f"turn-{turn}"), now=now)
            await driver.delete([f"turn-{turn}-{n}" for n in range(5)], now=now)
    with redis_server.client() as client:
        assert client.hlen("{gone}:gone") <= 15
        assert client.hlen("{gone}:gone") == client.zcard("{gone}:gone_at")


async def test_any_bytes_come_back(redis_server: RedisServer) -> None:
    every = bytes(range(256)) + b"\n\r\n" + bytes(range(255, -1, -1))
    async with opened(redis_server) as driver:
        await driver.enqueue([NewJob(id="a", name="work", payload=every, headers={"h": "\n"})])
        (claimed,) = await claim(driver)
        assert claimed.job.payload == every
        assert claimed.job.headers == {"h": "\n"}
        await driver.record([(claimed.hold, Completed(every))])
        job = await driver.get("a")
        assert job is not None
        assert job.result == every


async def test_a_damaged_record_harms_only_itself(redis_server: RedisServer) -> None:
    """I12: it is claimed with a note of what is wrong, and can be ended."""
    async with opened(redis_server, "damage") as driver:
        batch = [NewJob(id=f"job-{n}", name="work", headers={"a": "b"}) for n in range(4)]
        await driver.enqueue(batch)
        with redis_server.client() as client:
            client.hset("{damage}:marks", "job-0", b"rubbish")
            client.hdel("{damage}:jobs", "job-1")
            client.hset("{damage}:jobs", "job-2", b"{no json\nnull")
        claims = {claimed.job.id: claimed for claimed in await claim(driver)}
        assert len(claims) == 4
        assert [claims[f"job-{n}"].damage is None for n in range(4)] == [False] * 3 + [True]
        items = [(claimed.hold, Completed()) for claimed in claims.values()]
        assert {str(answer.value) for answer in await driver.record(items)} == {"applied"}
        assert (await driver.counts()).completed == 4


async def test_future_jobs_ahead_cost_a_claim_nothing(redis_server: RedisServer) -> None:
    async def commands(ahead: int) -> int:
        async with opened(redis_server) as driver:
            later = datetime.now(UTC) + timedelta(days=1)
            future = [NewJob(id=f"f{n}", name="work", at=later, priority=9) for n in range(ahead)]
            await driver.enqueue([*future, *jobs(100)])
            with redis_server.client() as client:
                client.config_resetstat()
                assert len(await claim(driver, 16)) == 16
                stats = client.info("commandstats")
            return sum(stat["calls"] for stat in stats.values())

    assert await commands(5000) == await commands(1)


def test_every_script_says_what_it_takes_and_answers() -> None:
    for path in [*LUA.glob("*.lua"), *LUA.glob("parts/*.lua")]:
        head = [line for line in path.read_text("utf-8").splitlines() if line.startswith("--")]
        assert len(head) >= 2, path.name
    assert {path.stem for path in LUA.glob("*.lua")} == {
        scripts.script(path.stem).name for path in LUA.glob("*.lua")
    }


def test_no_text_in_a_script_has_the_name_of_a_constant() -> None:
    """Their values are written into the places of their names."""
    for path in LUA.glob("*.lua"):
        written = path.read_text("utf-8")
        sources = [written]
        for name in ", ".join(re.findall(r"-- (?:uses|seldom): (.*)", written)).split(", "):
            sources.append((LUA / "parts" / f"{name}.lua").read_text("utf-8"))
        code = [
            line
            for source in sources
            for line in source.splitlines()
            if not line.lstrip().startswith("--") and not DEFINITION.match(line)
        ]
        texts = re.findall(r"'[^']*'", "\n".join(code))
        composed = scripts.script(path.stem).text
        assert all(text in composed for text in texts), path.name


def test_client_is_the_only_module_that_knows_redis_py() -> None:
    folder = LUA.parent
    importing = [
        path.name
        for path in folder.glob("*.py")
        if any(
            line.startswith(("import redis", "from redis", "from hiredis"))
            for line in path.read_text("utf-8").splitlines()
        )
    ]
    assert importing == ["client.py"]
