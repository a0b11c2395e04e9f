"""`within=` and `complete_within` on PostgreSQL: with the caller's own writes, or not at all."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import asyncpg
import psycopg
import pytest

import tenure
from tests.servers.postgres import PostgresServer, postgres_server
from tests.within.postgres_connections import POSTGRES_CALLERS, PostgresCaller

__all__ = ["postgres_server"]  # a fixture

each_caller = pytest.mark.parametrize("kind", POSTGRES_CALLERS)


class Scene:
    """A queue, and a program with a connection of its own to the same database."""

    def __init__(self, queue: tenure.Queue, caller: PostgresCaller, server: PostgresServer) -> None:
        self.queue = queue
        self.caller = caller
        self.server = server

    def notes(self) -> list[str]:
        """The program's own rows, as another connection sees them."""
        return sorted(text for (text,) in self.server.ask(f"SELECT text FROM {self.caller.table}"))

    async def pending(self) -> int:
        return (await self.queue.counts()).pending


@asynccontextmanager
async def scene(kind: str, server: PostgresServer) -> AsyncGenerator[Scene]:
    name = f"t_{uuid4().hex}"
    table = f"notes_{name}"
    server.ask(f"CREATE TABLE {table} (text text PRIMARY KEY)")
    opening = POSTGRES_CALLERS[kind](server.url, table)
    async with tenure.connect(server.url, schema=name) as queue, opening as caller:
        yield Scene(queue, caller, server)
    server.ask(f"DROP TABLE {table}")
    server.ask(f"DROP SCHEMA {name} CASCADE")


@each_caller
async def test_a_job_is_stored_by_the_commit_together_with_the_callers_rows(
    kind: str, postgres_server: PostgresServer
) -> None:
    """I5, I10: nobody sees it before; every option arrives as it was given."""
    async with scene(kind, postgres_server) as s:
        await s.caller.write("order 1")
        jobs = await s.queue.dispatch_many(
            [
                tenure.Call("ship", {"n": 1, "é": [None]}, priority=-3, headers={"a": "ü\n%s $1"}),
                tenure.Call("ship", None, delay=60, max_attempts=3, timeout=1.5),
            ],
            within=s.caller.connection,
        )
        assert await s.pending() == 0
        assert s.notes() == []
        await s.caller.commit()
        first, second = [await s.queue.get(job.id) for job in jobs]
        assert (first.payload, first.priority) == ({"n": 1, "é": [None]}, -3)
        assert (first.headers, first.max_attempts) == ({"a": "ü\n%s $1"}, None)
        assert (second.payload, second.max_attempts, second.timeout) == (None, 3, 1.5)
        assert round((second.run_at - second.created_at).total_seconds()) == 60
        assert s.notes() == ["order 1"]


@each_caller
async def test_a_transaction_that_is_rolled_back_leaves_no_job(
    kind: str, postgres_server: PostgresServer
) -> None:
    """Alike for many, and before the first write of the caller's own."""
    async with scene(kind, postgres_server) as s:
        job = await s.queue.dispatch("ship", within=s.caller.connection)
        await s.caller.write("order 1")
        await s.caller.rollback()
        with pytest.raises(tenure.JobNotFound):
            await s.queue.get(job.id)
        calls = [tenure.Call("ship", n) for n in range(1500)]
        await s.queue.dispatch_many(calls, within=s.caller.connection)
        await s.caller.rollback()
        assert (await s.pending(), s.notes()) == (0, [])
        await s.queue.dispatch_many(calls, within=s.caller.connection)
        await s.caller.commit()
        assert await s.pending() == 1500


@each_caller
async def test_what_is_refused_leaves_the_transaction_usable(
    kind: str, postgres_server: PostgresServer
) -> None:
    """PostgreSQL itself would end it at the first error."""
    async with scene(kind, postgres_server) as s:
        await s.queue.dispatch("ship", 1, id="taken")
        await s.caller.write("before")
        calls = [tenure.Call("ship", 0), tenure.Call("ship", 2, id="taken")]
        with pytest.raises(tenure.DuplicateJob):
            await s.queue.dispatch_many(calls, within=s.caller.connection)
        gone = f"t_{uuid4().hex}"
        async with tenure.connect(s.server.url, schema=gone) as elsewhere:
            postgres_server.ask(f"DROP SCHEMA {gone} CASCADE")
            with pytest.raises(tenure.InvalidConfiguration, match="must lead to the database"):
                await elsewhere.dispatch("ship", within=s.caller.connection)
        await s.caller.write("after")
        await s.queue.dispatch("ship", 3, within=s.caller.connection)
        await s.caller.commit()
        assert s.notes() == ["after", "before"]
        assert sorted(job.payload for job in (await s.queue.list()).jobs) == [1, 3]


@each_caller
async def test_the_commit_wakes_an_idle_worker(kind: str, postgres_server: PostgresServer) -> None:
    """Long before its poll; and not before the commit."""
    async with scene(kind, postgres_server) as s:
        done = asyncio.Event()
        worker = tenure.Worker(s.queue, poll_interval=60.0)

        @worker.handler("ship")
        async def ship(payload: str) -> None:
            if payload == "within":
                done.set()

        async with worker.run():
            first = await s.queue.dispatch("ship", "first")
            await first.result(timeout=10)  # it has begun, and has nothing left to do
            await s.queue.dispatch("ship", "within", within=s.caller.connection)
            assert await s.pending() == 0
            assert not done.is_set()
            await s.caller.commit()
            await asyncio.wait_for(done.wait(), 10.0)


@each_caller
async def test_a_completion_is_committed_with_the_handlers_rows(
    kind: str, postgres_server: PostgresServer
) -> None:
    """The rolled back one has failed and is tried again."""
    async with scene(kind, postgres_server) as s:
        worker = tenure.Worker(s.queue)

        @worker.handler("pay", retry=tenure.RetryPolicy(base=0.01))
        async def pay(payload: None, job: tenure.RunningJob) -> None:
            await s.caller.write(f"attempt {job.attempt}")
            await job.complete_within(s.caller.connection, f"paid by {job.attempt}")
            if job.attempt == 1:
                await s.caller.rollback()
            else:
                await s.caller.commit()

        job = await s.queue.dispatch("pay")
        async with worker.run() as handle:
            assert await job.result(timeout=20) == "paid by 2"
            error = await handle.next_error()
        assert isinstance(error, tenure.JobFailed)
        assert "was not committed" in error.failure.message
        assert s.notes() == ["attempt 2"]


@pytest.mark.parametrize("kind", ["asyncpg", "psycopg async"])
async def test_an_open_completion_holds_up_neither_the_keeper_nor_other_outcomes(
    kind: str, postgres_server: PostgresServer
) -> None:
    """I6, W16, W18: its row is locked for many leases; all else goes on, and no claim is lost."""
    async with scene(kind, postgres_server) as s:
        worker = tenure.Worker(s.queue, lease=0.6, concurrency=8)
        rival = tenure.Worker(s.queue, lease=0.6, concurrency=1)
        starts: list[str] = []
        written = asyncio.Event()
        gate = asyncio.Event()

        @worker.handler("pay")
        async def pay(payload: None, job: tenure.RunningJob) -> None:
            starts.append(job.id)
            await job.complete_within(s.caller.connection)
            written.set()
            await gate.wait()
            await s.caller.commit()

        @worker.handler("quick")
        async def quick(payload: int) -> int:
            return payload

        rival.register("pay", pay)
        rival.register("quick", quick)
        job = await s.queue.dispatch("pay")
        async with worker.run() as one, rival.run() as other:
            await asyncio.wait_for(written.wait(), 10)
            for n in range(20):
                quick_job = await s.queue.dispatch("quick", n)
                assert await quick_job.result(timeout=10) == n
                await asyncio.sleep(0.1)  # real leases, of the server's clock: several run by
            assert (await s.queue.get(job.id)).state == "processing"
            gate.set()
            await job.result(timeout=10)
            assert starts == [job.id]
            assert one.try_next_error() is None
            assert other.try_next_error() is None


async def test_a_transaction_that_is_left_open_holds_up_no_other_outcome(
    postgres_server: PostgresServer,
) -> None:
    """W16: its handler has returned; the write that waits for it waits alone."""
    async with scene("asyncpg", postgres_server) as s:
        worker = tenure.Worker(s.queue)
        returned = asyncio.Event()

        @worker.handler("pay")
        async def pay(payload: None, job: tenure.RunningJob) -> None:
            await job.complete_within(s.caller.connection)
            returned.set()

        @worker.handler("quick")
        async def quick(payload: int) -> int:
            return payload

        left_open = await s.queue.dispatch("pay")
        async with worker.run() as handle:
            await asyncio.wait_for(returned.wait(), 10)
            for n in range(20):
                quick_job = await s.queue.dispatch("quick", n)
                assert await quick_job.result(timeout=5) == n
            assert (await s.queue.get(left_open.id)).state == "processing"
            await s.caller.rollback()
            with pytest.raises(tenure.JobFailed, match="was not committed"):
                await left_open.result(timeout=10)
            assert isinstance(await handle.next_error(), tenure.JobFailed)


@pytest.mark.parametrize("kind", ["psycopg", "SQLAlchemy Session"])
async def test_a_handler_in_a_thread_completes_with_a_plain_call(
    kind: str, postgres_server: PostgresServer
) -> None:
    """It has been done when the call returns; an async connection is refused there."""
    async with scene(kind, postgres_server) as s:
        worker = tenure.Worker(s.queue)

        @worker.handler("pay")
        def pay(payload: None, job: tenure.RunningJob) -> None:
            job.complete_within(s.caller.connection, "paid")
            s.caller.connection.commit()

        job = await s.queue.dispatch("pay")
        async with worker.run():
            assert await job.result(timeout=10) == "paid"


async def test_a_connection_that_is_of_no_use_is_refused_and_left_alone(
    postgres_server: PostgresServer,
) -> None:
    """Autocommit, a failed transaction, closed, something else: named by its type."""
    async with scene("psycopg", postgres_server) as s:
        url = postgres_server.url
        with psycopg.connect(url, autocommit=True) as bare, psycopg.connect(url) as failed:
            with pytest.raises(psycopg.Error):
                failed.execute("SELECT 1 / 0")
            closed = psycopg.connect(url)
            closed.close()
            alone = await asyncpg.connect(url)
            broken = await asyncpg.connect(url)
            await broken.execute("BEGIN")
            with pytest.raises(asyncpg.DivisionByZeroError):
                await broken.execute("SELECT 1 / 0")
            wrong: list[tuple[Any, str]] = [
                (bare, "must be in a transaction: use"),
                (failed, "that has not failed"),
                (closed, "must be open"),
                (alone, "must be in a transaction: use"),
                (broken, "that has not failed"),
                (url, "must be a connection of psycopg"),
            ]
            for connection, rule in wrong:
                with pytest.raises(tenure.InvalidConfiguration, match=rule) as caught:
                    await s.queue.dispatch("ship", within=connection)
                assert caught.value.option == "within"
            await alone.close()
            await broken.close()
        assert await s.pending() == 0
