"""What a driver does when its server goes, comes back, refuses or is full (K14)."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from redis.crc import key_slot

from tenure.clock import SystemClock
from tenure.drivers.redis import RedisDriver
from tenure.drivers.redis.client import Address
from tenure.drivers.redis.faults import Refused
from tenure.drivers.redis.route import Route
from tenure.errors import StoreError, StoreUnavailable
from tenure.outcomes import Completed, Failed, Outcome, Retried
from tenure.testing.faults import Relay
from tenure.types import Kept, NewJob, Recorded
from tests.drivers.losing import lost_and_repeated
from tests.drivers.redis_extras.support import FAILURE, claim, jobs, opened, request
from tests.servers.redis import RedisServer, free_port, frozen, moving, running

AOF = ("--appendonly", "yes", "--appendfsync", "always")


async def refused(call: Callable[[], Awaitable[Any]], *, ambiguous: bool | None = False) -> str:
    with pytest.raises(StoreUnavailable) as caught:
        await call()
    assert ambiguous is None or caught.value.ambiguous is ambiguous
    return str(caught.value)


async def test_a_killed_server_keeps_what_it_accepted(tmp_path: Path) -> None:
    with running(tmp_path, *AOF) as server:
        async with opened(server, "kept") as driver:
            await driver.enqueue(jobs(20))
            claims = await claim(driver, 5)
            await driver.record([(c.hold, Completed()) for c in claims[:2]])
            server.restart()
            keeper = driver.keeper_handle()
            held = [claimed.hold for claimed in claims[2:]]
            assert await asyncio.to_thread(keeper.extend, held, 60.0) == [Kept.KEPT] * 3
            server.restart()
            assert await asyncio.to_thread(keeper.extend, held[:0], 60.0) == []
            keeper.close()
            answers = await driver.record([(hold, Completed()) for hold in held])
            assert answers == [Recorded.APPLIED] * 3
            counts = await driver.counts()
            assert (counts.pending, counts.completed) == (15, 5)


async def test_a_server_that_is_away_is_unavailable_and_then_used_again(tmp_path: Path) -> None:
    with running(tmp_path, *AOF) as server:
        async with opened(server) as driver:
            await driver.enqueue(jobs(1))
            server.kill()
            for _ in range(3):
                await refused(lambda: claim(driver), ambiguous=None)
            assert "cannot be reached" in await refused(lambda: claim(driver))
            server.start()
            assert len(await claim(driver)) == 1


async def test_an_answer_that_does_not_come_is_ambiguous(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        async with opened(server, timeout=0.2) as driver:
            with server.client() as client:
                client.execute_command("CLIENT", "PAUSE", "1000", "ALL")
            await refused(lambda: driver.enqueue(jobs(1)), ambiguous=True)
            with server.client() as client:
                client.execute_command("CLIENT", "UNPAUSE")
            await driver.enqueue(jobs(1))  # the same again, as the front does
            assert (await driver.counts()).pending == 1


async def test_nobody_is_there(tmp_path: Path) -> None:
    driver = RedisDriver(f"redis://127.0.0.1:{free_port()}", clock=SystemClock())
    await driver.close()
    await refused(driver.open)
    await driver.close()
    await driver.close()


async def test_a_replica_is_unavailable_and_left(tmp_path: Path) -> None:
    with running(tmp_path / "a") as server, running(tmp_path / "b") as other:
        async with opened(server) as driver:
            await driver.enqueue(jobs(2))
            (first,) = await claim(driver, 1)
            with server.client() as client:
                client.execute_command("CONFIG", "SET", "replica-serve-stale-data", "yes")
                client.execute_command("REPLICAOF", "127.0.0.1", str(free_port()))
                for call in (
                    lambda: driver.enqueue(jobs(1, "more")),
                    lambda: driver.record([(first.hold, Completed())]),
                    lambda: claim(driver),
                ):
                    assert "replica" in await refused(call)
                before = client.client_list()
                client.execute_command("REPLICAOF", "NO", "ONE")
            assert len(before) <= 3  # the connections to it were given up
            answer = await driver.exchange([(first.hold, Completed())], request())
            assert answer.recorded == (Recorded.APPLIED,)
            assert len(answer.claims) == 1
        assert other.pid


async def test_a_full_server_does_each_transition_wholly_or_not_at_all(tmp_path: Path) -> None:
    """A21: nothing is lost on the way from one place to the next; all settle afterwards."""
    with running(tmp_path, "--maxmemory-policy", "noeviction") as server:
        async with opened(server, "full") as driver:
            await driver.enqueue(jobs(6))
            claims = await claim(driver, 3)
            outcomes: tuple[Outcome, ...] = (
                Completed(b"1"),
                Failed(FAILURE),
                Retried(0.0, FAILURE),
            )
            items = [(c.hold, o) for c, o in zip(claims, outcomes, strict=True)]
            with server.client() as client:
                client.set("ballast", b"x" * 4_000_000)
                client.config_set("maxmemory", client.info("memory")["used_memory"] - 1_000_000)
                assert "maxmemory" in await refused(lambda: driver.enqueue(jobs(1, "more")))
                answers: list[str] = []
                for item in items:
                    try:
                        answers += [answer.value for answer in await driver.record([item])]
                    except StoreUnavailable:
                        answers.append("unavailable")
                counts = await driver.counts()
                total = (
                    counts.pending + counts.processing + counts.completed
                    + counts.failed + counts.scheduled
                )  # fmt: skip
                assert total == 6
                assert client.hlen("{full}:marks") == client.hlen("{full}:jobs") == 6
                client.config_set("maxmemory", 0)
                client.delete("ballast")
            settled = await driver.record(items)
            assert {answer.value for answer in settled} <= {"applied", "repeated"}
            assert [a == "applied" for a in answers] == [s is Recorded.REPEATED for s in settled]
            counts = await driver.counts()
            assert (counts.completed, counts.failed, counts.pending) == (1, 1, 4)


async def test_a_full_server_takes_no_job_away_from_a_worker(tmp_path: Path) -> None:
    """A21: leases are extended, and none is reclaimed while its outcome cannot be written."""
    with running(tmp_path, "--maxmemory-policy", "noeviction") as server:
        async with opened(server) as driver:
            await driver.enqueue(jobs(2))
            (kept, ended) = await claim(driver, 2)
            later = datetime.now(UTC) + timedelta(seconds=60)
            with server.client() as client:
                client.config_set("maxmemory", 1)
                keeper = driver.keeper_handle()
                answers = await asyncio.to_thread(keeper.extend, [kept.hold], 300.0)
                keeper.close()
                assert answers == [Kept.KEPT]
                assert "maxmemory" in await refused(
                    lambda: driver.record([(ended.hold, Completed(b"1"))])
                )
                assert "maxmemory" in await refused(lambda: driver.reclaim(10, [0.0], now=later))
                client.config_set("maxmemory", 0)
            assert await driver.record([(ended.hold, Completed(b"1"))]) == [Recorded.APPLIED]
            assert await driver.reclaim(10, [0.0], now=later) == []


async def test_callers_that_wait_for_a_connection_wait_no_longer_than_the_time_limit(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as server:
        async with opened(server, timeout=0.3) as driver:
            with frozen(server):
                begun = time.monotonic()
                calls = [driver.get("a") for _ in range(40)]
                errors = await asyncio.gather(*calls, return_exceptions=True)
                assert time.monotonic() - begun < 3
            assert {type(error) for error in errors} == {StoreUnavailable}
            assert any("in use" in str(error) for error in errors)
            await asyncio.gather(*(driver.get("a") for _ in range(40)))


async def test_a_network_that_loses_answers_falls_silent_or_refuses_is_survived(
    redis_server: RedisServer,
) -> None:
    """I14: what may have been done is ambiguous, and the same again is stored once."""
    async with Relay("127.0.0.1", redis_server.port) as relay:
        url = f"redis://{relay.host}:{relay.port}"
        async with opened(url, timeout=0.3, connect_timeout=0.3) as driver:
            assert (await lost_and_repeated(driver, relay))[:2] == [True, True]


async def test_an_idle_connection_that_was_forgotten_in_silence_fails_no_call(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked before it carries anything, and the call goes out on a new one."""
    async with Relay("127.0.0.1", redis_server.port) as relay:
        url = f"redis://{relay.host}:{relay.port}"
        async with opened(url, connect_timeout=0.3) as driver:
            await asyncio.gather(*(driver.get("a") for _ in range(20)))
            relay.forget()
            monkeypatch.setattr("tenure.drivers.redis.client._IDLE", 0)
            begun = time.monotonic()
            await driver.enqueue(jobs(1))
            assert time.monotonic() - begun < 2
            assert (await driver.counts()).pending == 1


async def test_a_refusal_of_the_server_is_definite(redis_server: RedisServer) -> None:
    async with opened(redis_server, "wrong") as driver:
        with redis_server.client() as client:
            client.set("{wrong}:paused", "not a set")
        with pytest.raises(StoreError) as caught:
            await driver.claim(request())
        assert not isinstance(caught.value, StoreUnavailable)


async def test_cancelled_calls_leave_the_driver_usable(redis_server: RedisServer) -> None:
    async with opened(redis_server) as driver:
        for turn in range(20):
            call = asyncio.ensure_future(driver.enqueue([NewJob(id=f"{turn}", name="work")]))
            other = asyncio.ensure_future(claim(driver, 0))
            for _ in range(turn % 5):
                await asyncio.sleep(0)
            call.cancel()
            other.cancel()
            await asyncio.wait([call, other])
        await driver.enqueue(jobs(1))
        assert await driver.get("job-0") is not None


async def test_the_keeper_reconnects_by_itself(tmp_path: Path) -> None:
    with running(tmp_path, *AOF) as server:
        async with opened(server) as driver:
            await driver.enqueue(jobs(1))
            (claimed,) = await claim(driver)
            keeper = driver.keeper_handle()
            answers: list[object] = []

            def keep() -> None:
                try:
                    answers.append(list(keeper.extend([claimed.hold], 60.0)))
                except StoreUnavailable as error:
                    answers.append(error)

            for turn in range(3):
                if turn == 1:
                    server.kill()
                if turn == 2:
                    server.start()
                thread = threading.Thread(target=keep)
                thread.start()
                await asyncio.to_thread(thread.join)
            keeper.close()
            keeper.close()
            assert answers[0] == answers[2] == [Kept.KEPT]
            assert isinstance(answers[1], StoreUnavailable)


async def test_a_slot_that_moves_to_another_node_is_followed(
    redis_cluster: list[RedisServer],
) -> None:
    """While it moves the store is unavailable; nothing is written on two nodes."""
    async with opened(redis_cluster[0], "moving") as driver:
        await driver.enqueue(jobs(3))
        for _ in moving(redis_cluster, key_slot(b"{moving}")):
            assert "moved" in await refused(lambda: driver.enqueue(jobs(1, "more")))
            assert "moved" in await refused(lambda: claim(driver))
        await driver.enqueue(jobs(1, "more"))
        assert len(await claim(driver)) == 4


def test_a_node_that_is_cut_off_from_its_cluster_is_left() -> None:
    """It says CLUSTERDOWN for as long as it is; the others may have replaced it long ago."""
    route = Route("named")
    route.doubt()
    assert route.candidates() == [None]  # not in a cluster: there is nobody else
    nodes = [Address(f"node-{n}", 7000) for n in range(3)]
    route.learn(nodes)
    seen: list[Address | None] = []
    for _ in range(4):
        route.doubt()
        seen.append(route.current)
    assert seen == [*nodes, nodes[0]]
    assert set(route.candidates()) == {None, *nodes}


def test_a_move_to_another_port_of_the_same_host_is_followed() -> None:
    route = Route("named")
    route.follow(Refused("MOVED 7 :7001"))
    assert route.current == Address("named", 7001)
    route.follow(Refused("MOVED 7 other:7002"))
    route.follow(Refused("MOVED 7 :7003"))
    assert route.current == Address("other", 7003)
