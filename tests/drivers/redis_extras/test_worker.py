"""A worker on a server that goes, refuses and comes back: it resumes by itself, and loses nothing.

Real time and a real server: what is shown is that nobody has to restart anything.
"""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest
import redis
from redis.crc import key_slot

import tenure
from tenure.errors import (
    JobFailed,
    LeaseLost,
    PartialDispatch,
    StateTransitionError,
    StoreError,
    StoreUnavailable,
)
from tenure.testing.faults import Relay
from tests.drivers.redis_extras.hosting import Host, hosting, until
from tests.drivers.redis_extras.support import opened, request
from tests.servers.redis import RedisServer, add_replica, frozen, moving, running, running_cluster

RESUMED = 5.0  # seconds after the return of the server
DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


def url(relay: Relay) -> str:
    return f"redis://{relay.host}:{relay.port}"


@pytest.fixture
def own_server(tmp_path: Path) -> Generator[RedisServer]:
    """A server that the test may kill and set up as it likes, and that forgets nothing."""
    with running(tmp_path, *DURABLE) as server:
        yield server


@asynccontextmanager
async def resuming(host: Host, before: int) -> AsyncGenerator[None]:
    """Within: the server is of use again. Everything done so far and new jobs are soon completed.

    `before` jobs were started by then; none of them was interrupted, and none starts again.
    """
    yield
    begun = time.monotonic()
    await host.completed(before)
    await host.dispatch("quick", range(before, before + 4))
    await host.completed(before + 4)
    assert time.monotonic() - begun < RESUMED
    assert Counter(host.started) == Counter(range(before + 4))
    assert host.interrupted == []
    assert {isinstance(error, StoreError) for error in host.errors} <= {True}


# --- the server is away -------------------------------------------------------------------------


async def test_a_worker_resumes_after_a_restart_of_the_server(own_server: RedisServer) -> None:
    """Handlers run on meanwhile; what they ended with is written after the reconnect."""
    async with hosting(own_server.url) as host:
        await host.dispatch("gated", range(4))
        await host.running(4)
        own_server.kill()
        host.go.set()
        await host.reported(StoreUnavailable)
        assert sorted(host.finished) == [0, 1, 2, 3]
        own_server.start()
        async with resuming(host, 4):
            pass


async def test_handlers_that_run_through_an_outage_keep_their_holds(
    own_server: RedisServer,
) -> None:
    """The outage is longer than the lease: nobody else was there, so they are still theirs."""
    async with hosting(own_server.url, lease=1.0) as host:
        await host.dispatch("gated", range(4))
        await host.running(4)
        own_server.kill()
        await asyncio.sleep(1.5)
        own_server.start()
        await asyncio.sleep(1.5)
        host.go.set()
        async with resuming(host, 4):
            pass


async def test_an_outcome_whose_hold_was_replaced_meanwhile_is_refused_and_reported(
    own_server: RedisServer,
) -> None:
    """The worker is cut off for longer than its lease; another claims its job."""
    async with (
        Relay("127.0.0.1", own_server.port) as relay,
        hosting(url(relay), "replaced", lease=1.0) as host,
        opened(own_server, "replaced") as other,
    ):
        (handle,) = await host.dispatch("gated", range(1))
        await host.running(1)
        relay.refuse()
        relay.cut()
        host.go.set()
        await asyncio.sleep(1.1)
        assert [hold.job_id for hold in await other.reclaim(10, [0.0])] == [handle.id]
        (claimed,) = await other.claim(request(1))
        relay.accept()
        (refused,) = await host.reported(StateTransitionError)
        assert isinstance(refused, StateTransitionError)
        assert (refused.job_id, refused.operation) == (handle.id, "complete")
        job = await other.get(handle.id)
        assert job is not None
        assert (str(job.state), job.serial) == ("processing", claimed.hold.serial)


async def test_a_worker_survives_a_network_that_swallows_everything(
    own_server: RedisServer,
) -> None:
    """Whatever the server had received it does when it wakes up; it is done once all the same."""
    async with hosting(own_server.url, timeout=0.5, connect_timeout=0.5) as host:
        await host.dispatch("gated", range(4))
        await host.running(4)
        with frozen(own_server):
            host.go.set()
            await host.reported(StoreUnavailable)
            await asyncio.sleep(1.0)
        async with resuming(host, 4):
            pass


@pytest.mark.parametrize("how", ["closed", "closing"])
async def test_a_server_that_is_away_is_asked_for_ever_less_often(
    own_server: RedisServer, how: str
) -> None:
    """A20: no loop turns without a pause, whether the port is closed or hangs up at once."""
    async with (
        Relay("127.0.0.1", own_server.port) as relay,
        hosting(url(relay), lease=12.0) as host,
    ):
        await host.dispatch("gated", range(2))
        await host.running(2)
        before, begun = relay.accepted, time.process_time()
        if how == "closed":
            relay.refuse()
        else:
            relay.turn_away()
        relay.cut()
        host.go.set()
        await asyncio.sleep(4.0)
        # The recorder, the claimer, its hints, the keeper and the reclaimer, each with few tries.
        assert relay.accepted - before <= 30
        assert len(host.errors) <= 20
        assert time.process_time() - begun < 1.0
        relay.accept()
        async with resuming(host, 2):
            pass


# --- the server refuses -------------------------------------------------------------------------


def replicated(one: RedisServer, other: RedisServer) -> None:
    """Make the other a copy of one, and wait until it is."""
    with one.client() as primary, other.client() as replica:
        replica.execute_command("REPLICAOF", "127.0.0.1", str(one.port))
        end = time.monotonic() + 30
        while replica.info("replication")["master_link_status"] != "up":
            assert time.monotonic() < end
            time.sleep(0.02)
        primary.set("last", "1")
        assert primary.execute_command("WAIT", 1, 10_000) == 1


async def test_a_worker_survives_a_failover_and_back_that_keeps_its_connections(
    own_server: RedisServer, tmp_path: Path
) -> None:
    with running(tmp_path / "other") as other:
        async with hosting(own_server.url) as host:
            await host.dispatch("gated", range(4))
            await host.running(4)
            await asyncio.to_thread(replicated, own_server, other)
            with other.client() as client:
                client.execute_command("REPLICAOF", "NO", "ONE")
            with own_server.client() as client:
                client.execute_command("REPLICAOF", "127.0.0.1", str(other.port))
                host.go.set()
                refused = await host.reported(StoreUnavailable)
                assert "READONLY" in str(refused[0])
                assert (await host.queue.counts()).completed == 0
                client.execute_command("REPLICAOF", "NO", "ONE")
            async with resuming(host, 4):
                pass


async def test_a_worker_follows_a_failover_that_keeps_its_connections(
    own_server: RedisServer, tmp_path: Path
) -> None:
    """The address leads to the new primary; the connections that there are lead to the old one."""
    with running(tmp_path / "other") as other:
        async with (
            Relay("127.0.0.1", own_server.port) as relay,
            hosting(url(relay), lease=3.0) as host,
        ):
            await host.dispatch("gated", range(4))
            await host.running(4)
            await asyncio.to_thread(replicated, own_server, other)
            relay.target = relay.host, other.port
            with other.client() as client:
                client.execute_command("REPLICAOF", "NO", "ONE")
            with own_server.client() as client:
                client.execute_command("REPLICAOF", "127.0.0.1", str(other.port))
            await asyncio.sleep(3.5)  # the keeper has to follow as well
            host.go.set()
            async with resuming(host, 4):
                pass


async def test_a_worker_waits_until_a_server_has_loaded_its_data(tmp_path: Path) -> None:
    """LOADING: the server is back and refuses everything."""
    slowly = ("--key-load-delay", "200000")  # microseconds; it listens every two megabytes
    with running(tmp_path) as server:
        async with hosting(server.url) as host:
            await host.dispatch("gated", range(4))
            await host.running(4)
            with server.client() as client:
                for n in range(10):
                    client.set(f"ballast-{n}", b"x" * 2_200_000)
                client.config_set("rdbcompression", "no")
                client.save()
            server.kill()
            host.go.set()
            starting = asyncio.ensure_future(asyncio.to_thread(server.start, *slowly))

            async def loading() -> bool:
                return any("LOADING" in str(error) for error in host.errors)

            await until(loading)
            await starting
            async with resuming(host, 4):
                pass


@contextmanager
def busy(server: RedisServer) -> Generator[None]:
    """A script of somebody else runs all the while; it is killed at the end."""

    def run() -> None:
        with server.client() as client, pytest.raises(redis.RedisError):
            client.eval("while true do end", 0)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        with server.client() as client:
            while thread.is_alive():
                with suppress(redis.ResponseError):  # not running yet, or not any more
                    client.script_kill()
                thread.join(0.05)


async def test_a_worker_waits_until_the_script_of_somebody_else_ends(
    own_server: RedisServer,
) -> None:
    """A22: the job falls due meanwhile, and is started afterwards without any other dispatch."""
    with own_server.client() as client:
        client.config_set("lua-time-limit", 100)  # milliseconds; then the server answers BUSY
    async with hosting(own_server.url) as host:
        await host.dispatch("gated", range(3))
        await host.dispatch("gated", range(3, 4), delay=0.8)
        await host.running(3)
        with busy(own_server):
            host.go.set()

            async def told() -> bool:
                return any("BUSY" in str(error) for error in host.errors)

            await until(told)
            await asyncio.sleep(1.0)
        async with resuming(host, 4):
            pass


async def test_a_full_server_stops_dispatches_and_loses_nothing(tmp_path: Path) -> None:
    """A21: what cannot be written stays under its lease and settles once memory is free."""
    policy = tenure.RetryPolicy(max_attempts=2, base=0.01, jitter=False)
    with running(tmp_path, "--maxmemory-policy", "noeviction") as server:
        async with hosting(server.url, lease=6.0, retry=policy) as host:
            await host.dispatch("gated", range(2))
            await host.dispatch("failing", range(2, 4))
            await host.running(4)
            with server.client() as client:
                client.config_set("maxmemory", 1)
                with pytest.raises(StoreUnavailable, match="maxmemory"):
                    await host.queue.dispatch("quick", 9)
                await asyncio.sleep(2.5)  # leases are extended meanwhile, which takes no memory
                assert host.errors == []
                host.go.set()
                await host.reported(StoreUnavailable)
                await asyncio.sleep(0.5)
                counts = await host.queue.counts()
                assert (counts.processing, counts.completed, counts.failed) == (4, 0, 0)
                client.config_set("maxmemory", 0)
            await host.completed(2)

            async def failed() -> bool:
                return (await host.queue.counts()).failed == 2

            await until(failed)
        assert sorted(host.started) == [0, 1, 2, 2, 3, 3]
        assert host.interrupted == []
        assert {type(error) for error in host.errors} == {StoreUnavailable, JobFailed}


async def test_a_server_that_keeps_forgetting_scripts_is_not_noticed(
    redis_server: RedisServer,
) -> None:
    """A23: no error reaches anybody."""
    async with hosting(redis_server.url) as host:
        done = asyncio.Event()

        async def forget() -> None:
            with redis_server.client() as client:
                while not done.is_set():
                    client.script_flush()
                    await asyncio.sleep(0.05)

        forgetting = asyncio.ensure_future(forget())
        for number in range(0, 500, 50):
            await asyncio.gather(*(host.queue.dispatch("quick", number + n) for n in range(50)))
        await host.completed(500)
        done.set()
        await forgetting
        assert sorted(host.started) == list(range(500))
        assert host.errors == []


# --- a cluster ----------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_worker_follows_a_failover_in_a_cluster(tmp_path: Path) -> None:
    """The node that the URL names has the store, and dies for good; its replica takes over."""
    with running_cluster(tmp_path, "--cluster-node-timeout", "1000") as nodes:
        slot = key_slot(b"{failover}")
        primary = nodes[slot * 3 // 16384]
        await asyncio.to_thread(add_replica, nodes, primary, tmp_path / "replica")
        async with hosting(primary.url, "failover", lease=3.0) as host:
            await host.dispatch("gated", range(4))
            await host.running(4)
            with primary.client() as client:
                assert client.execute_command("WAIT", 1, 10_000) == 1
            primary.kill()
            with nodes[-1].client() as client:

                async def taken_over() -> bool:
                    return "master" in client.execute_command("ROLE")[0].decode()

                await until(taken_over)
            await asyncio.sleep(3.5)  # the keeper has to follow as well
            host.go.set()
            async with resuming(host, 4):
                pass


async def test_a_worker_follows_a_slot_that_moves(redis_cluster: list[RedisServer]) -> None:
    """While it moves nothing is done; afterwards all goes on at the other node."""
    async with hosting(redis_cluster[0].url, "moves") as host:
        await host.dispatch("gated", range(4))
        await host.running(4)
        for step in moving(redis_cluster, key_slot(b"{moves}")):
            if step == "half way":
                host.go.set()
                await host.reported(StoreUnavailable)
        async with resuming(host, 4):
            pass


# --- at rest and under load ---------------------------------------------------------------------


async def test_an_idle_worker_asks_little_of_the_server(own_server: RedisServer) -> None:
    """At most five commands a second."""
    with own_server.client() as client:

        def commands() -> int:
            stats = client.info("commandstats")
            return sum(
                stats[name]["calls"]
                for name in stats
                if name in ("cmdstat_evalsha", "cmdstat_xread")
            )

        async with hosting(own_server.url) as host:
            await host.dispatch("quick", range(3))
            await host.completed(3)
            await asyncio.sleep(1.5)
            before = commands()
            await asyncio.sleep(3.0)
            assert commands() - before <= 5 * 3
            assert len(client.client_list()) <= 6 + 1


async def test_a_server_killed_three_times_under_load_loses_no_dispatch_that_returned(
    own_server: RedisServer,
) -> None:
    """I5: every dispatch that returned is completed, and each completion is recorded once."""
    async with hosting(own_server.url, "killed") as host:
        returned: list[str] = []
        stop = asyncio.Event()

        async def dispatch(number: int) -> None:
            while not stop.is_set():
                try:
                    handle = await host.queue.dispatch("quick", number)
                except (StoreUnavailable, PartialDispatch):
                    await asyncio.sleep(0.05)
                else:
                    returned.append(handle.id)

        dispatching = [asyncio.ensure_future(dispatch(number)) for number in range(8)]
        for turn in range(3):

            async def some_more(least: int = 200 * (turn + 1)) -> bool:
                return len(returned) >= least

            await until(some_more)
            own_server.kill()
            await asyncio.sleep(0.3)
            own_server.start()
        stop.set()
        await asyncio.gather(*dispatching)

        async def empty() -> bool:
            try:
                counts = await host.queue.counts()
            except StoreUnavailable:
                return False
            return counts.pending == counts.processing == 0

        await until(empty)
        async with opened(own_server, "killed") as driver:
            for job_id in returned:
                job = await driver.get(job_id)
                assert job is not None
                assert str(job.state) == "completed"
        lost = [e for e in host.errors if isinstance(e, LeaseLost | StateTransitionError)]
        assert lost == []
