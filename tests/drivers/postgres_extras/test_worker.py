"""A worker on a server that goes and comes back: it resumes by itself, and accounts for every end.

Real time and a real server: what is shown is that nobody has to restart anything.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import tenure
from tenure.errors import (
    LeaseLost,
    PartialDispatch,
    StateTransitionError,
    StoreError,
    StoreUnavailable,
)
from tests.drivers.postgres_extras.support import fresh, opened, request, sessions
from tests.servers.pgbouncer import PgBouncer, pooling
from tests.servers.postgres import PostgresServer

RESUMED = 5.0  # seconds after the return of the server


class Host:
    """A worker whose handlers wait until they are let go, and what was reported."""

    def __init__(self, queue: tenure.Queue) -> None:
        self.queue = queue
        self.go = asyncio.Event()
        self.started: list[int] = []
        self.interrupted: list[int] = []
        self.finished: list[int] = []
        self.errors: list[tenure.QueueError] = []

    async def gated(self, number: int) -> int:
        self.started.append(number)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.interrupted.append(number)
            raise
        self.finished.append(number)
        return number

    async def quick(self, number: int) -> int:
        self.started.append(number)
        return number

    async def collect(self, handle: tenure.WorkerHandle) -> None:
        async for error in handle.errors():
            self.errors.append(error)

    async def dispatch(self, name: str, numbers: range) -> list[tenure.JobHandle]:
        return [await self.queue.dispatch(name, number) for number in numbers]

    async def completed(self, count: int) -> None:
        await until(lambda: self._completed(count))

    async def _completed(self, count: int) -> bool:
        try:
            return (await self.queue.counts()).completed == count
        except StoreUnavailable:
            return False


async def until(holds: Callable[[], Awaitable[bool]], seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not await holds():  # noqa: ASYNC110  # nothing tells of it
            await asyncio.sleep(0.02)


@asynccontextmanager
async def hosting(
    url: str, schema: str | None = None, lease: float = 30.0, **options: Any
) -> AsyncGenerator[Host]:
    async with tenure.connect(url, schema=schema or fresh(), **options) as queue:
        host = Host(queue)
        worker = tenure.Worker(queue, concurrency=8, lease=lease)
        worker.register("gated", host.gated)
        worker.register("quick", host.quick)
        handle = worker.run()
        collecting = asyncio.ensure_future(host.collect(handle))
        try:
            yield host
        finally:
            host.go.set()
            await handle.shutdown(5.0)
            await collecting


async def running(host: Host, count: int) -> None:
    async def all_started() -> bool:
        return len(host.started) >= count

    await until(all_started)


@pytest.mark.parametrize("through", ["direct", "pooler"])
async def test_a_worker_resumes_after_a_restart_of_the_server(
    own_server: PostgresServer, through: str
) -> None:
    """Handlers run on meanwhile; what they ended with is written after the reconnect."""
    with pooling(own_server) as pooler:
        url = own_server.url if through == "direct" else pooler.url
        async with hosting(url) as host:
            await host.dispatch("gated", range(4))
            await running(host, 4)
            own_server.kill()
            host.go.set()
            await asyncio.sleep(1.0)
            assert sorted(host.finished) == [0, 1, 2, 3]
            assert host.interrupted == []
            own_server.start()
            begun = time.monotonic()
            await host.completed(4)
            await host.dispatch("quick", range(4, 8))
            await host.completed(8)
            assert time.monotonic() - begun < RESUMED
        assert sorted(host.started) == list(range(8))
        assert host.interrupted == []
        assert {isinstance(error, StoreError) for error in host.errors} <= {True}


async def test_handlers_that_run_through_an_outage_keep_their_holds(
    own_server: PostgresServer,
) -> None:
    """The outage is longer than the lease: nobody else was there, so they are still theirs."""
    async with hosting(own_server.url, lease=1.0) as host:
        await host.dispatch("gated", range(4))
        await running(host, 4)
        own_server.kill()
        await asyncio.sleep(1.5)
        own_server.start()
        await asyncio.sleep(1.5)
        host.go.set()
        await host.completed(4)
        assert sorted(host.started) == [0, 1, 2, 3]
        assert host.interrupted == []


async def test_an_outcome_whose_hold_was_replaced_meanwhile_is_refused_and_reported(
    own_server: PostgresServer,
) -> None:
    """The worker is cut off for longer than its lease; another claims its job."""
    role = fresh()
    own_server.ask(f"CREATE ROLE {role} LOGIN")
    own_server.ask(f"CREATE SCHEMA {role} AUTHORIZATION {role}")
    url = own_server.url.replace("postgres@", f"{role}@")
    async with hosting(url, role, lease=1.0) as host, opened(own_server.url, role) as other:
        (handle,) = await host.dispatch("gated", range(1))
        await running(host, 1)
        own_server.ask(f"ALTER ROLE {role} CONNECTION LIMIT 0")
        own_server.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", role
        )
        host.go.set()
        await asyncio.sleep(1.1)
        assert [hold.job_id for hold in await other.reclaim(10, [0.0])] == [handle.id]
        (claimed,) = await other.claim(request(1))
        own_server.ask(f"ALTER ROLE {role} CONNECTION LIMIT -1")

        async def reported() -> bool:
            return any(isinstance(error, StateTransitionError) for error in host.errors)

        await until(reported)
        job = await other.get(handle.id)
        assert job is not None
        assert (str(job.state), job.serial) == ("processing", claimed.hold.serial)
        (refused,) = [e for e in host.errors if isinstance(e, StateTransitionError)]
        assert (refused.job_id, refused.operation) == (handle.id, "complete")


async def test_a_worker_survives_a_failover_that_keeps_its_connections(
    own_server: PostgresServer,
) -> None:
    async with hosting(own_server.url) as host:
        await host.dispatch("gated", range(4))
        await running(host, 4)
        await host.dispatch("quick", range(4, 8))
        await host.completed(4)
        own_server.read_only(True)
        host.go.set()
        await asyncio.sleep(1.0)
        assert (await host.queue.counts()).completed == 4
        own_server.read_only(False)
        begun = time.monotonic()
        await host.completed(8)
        await host.dispatch("quick", range(8, 12))
        await host.completed(12)
        assert time.monotonic() - begun < RESUMED
        assert sorted(host.started) == list(range(12))
        assert not [e for e in host.errors if isinstance(e, LeaseLost | StateTransitionError)]


async def test_an_idle_worker_asks_little_of_the_server(own_server: PostgresServer) -> None:
    """At most five statements with a commit a second."""

    def commits() -> int:
        own_server.ask("SELECT pg_stat_clear_snapshot()")
        ((count,),) = own_server.ask(
            "SELECT sum(xact_commit)::int FROM pg_stat_database WHERE datname = 'postgres'"
        )
        return int(count)

    async with hosting(own_server.url) as host:
        await host.dispatch("quick", range(3))
        await host.completed(3)
        await asyncio.sleep(1.5)
        before = commits()
        await asyncio.sleep(3.0)
        assert commits() - before <= 5 * 3 + 4  # and what asking cost itself
        assert len(sessions(own_server)) <= 6


async def test_a_worker_behind_a_pooler_does_its_work(pgbouncer: PgBouncer) -> None:
    async with hosting(pgbouncer.url) as host:
        await host.queue.dispatch_many([tenure.Call("quick", number) for number in range(500)])
        await host.completed(500)
        assert sorted(host.started) == list(range(500))
        assert host.errors == []


@pytest.mark.slow
async def test_a_server_killed_three_times_under_load_loses_no_dispatch_that_returned(
    own_server: PostgresServer,
) -> None:
    """I5: every dispatch that returned is completed, and each completion is recorded once."""
    schema = fresh()
    async with hosting(own_server.url, schema) as host:
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
        for _ in range(3):
            await asyncio.sleep(1.0)
            own_server.kill()
            await asyncio.sleep(0.5)
            own_server.start()
        await asyncio.sleep(1.0)
        stop.set()
        await asyncio.gather(*dispatching)

        async def empty() -> bool:
            try:
                counts = await host.queue.counts()
            except StoreUnavailable:
                return False
            return counts.pending == counts.processing == 0

        await until(empty)
        assert len(returned) > 100
        rows = own_server.ask(f"SELECT id, state FROM {schema}.jobs")
        states = dict(rows)
        assert {states.get(job_id) for job_id in returned} == {3}
        assert (await host.queue.counts()).completed == len(rows)
