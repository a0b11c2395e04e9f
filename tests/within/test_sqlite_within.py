"""`within=` and `complete_within` on a SQLite file: with the caller's own writes, or not at all."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import tenure
from tests.within.connections import Caller, sqlite_callers

each_caller = pytest.mark.parametrize("kind", sqlite_callers())


class Scene:
    """A queue, and a program with a connection of its own to the same file."""

    def __init__(self, queue: tenure.Queue, caller: Caller, path: str) -> None:
        self.queue = queue
        self.caller = caller
        self.path = path

    def notes(self) -> list[str]:
        """The program's own rows, as another connection sees them."""
        with sqlite3.connect(self.path) as connection:
            return [text for (text,) in connection.execute("SELECT text FROM notes")]

    async def pending(self) -> int:
        return (await self.queue.counts()).pending


@asynccontextmanager
async def scene(kind: str, folder: Path) -> AsyncGenerator[Scene]:
    path = str(folder / "app.db")
    url = f"sqlite:///{path}?synchronous=NORMAL&busy_timeout=5"
    async with tenure.connect(url) as queue:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE notes (text TEXT)")
        async with sqlite_callers()[kind](path) as caller:
            yield Scene(queue, caller, path)


@each_caller
async def test_a_job_is_stored_by_the_commit_together_with_the_callers_rows(
    kind: str, tmp_path: Path
) -> None:
    """I5: nobody sees it before; it is not the dispatch that commits."""
    async with scene(kind, tmp_path) as s:
        await s.caller.write("order 1")
        job = await s.queue.dispatch("ship", {"order": 1}, within=s.caller.connection)
        assert await s.pending() == 0
        assert s.notes() == []
        await s.caller.commit()
        assert (await s.queue.get(job.id)).payload == {"order": 1}
        assert s.notes() == ["order 1"]


@each_caller
async def test_a_transaction_that_is_rolled_back_leaves_no_job(kind: str, tmp_path: Path) -> None:
    """Alike for many, and before the first write of the caller's own."""
    async with scene(kind, tmp_path) as s:
        job = await s.queue.dispatch("ship", within=s.caller.connection)
        calls = [tenure.Call("ship", n) for n in range(2500)]
        await s.queue.dispatch_many(calls, within=s.caller.connection)
        await s.caller.write("order 1")
        await s.caller.rollback()
        with pytest.raises(tenure.JobNotFound):
            await s.queue.get(job.id)
        assert await s.pending() == 0
        assert s.notes() == []
        await s.queue.dispatch_many(calls, within=s.caller.connection)
        await s.caller.commit()
        assert await s.pending() == 2500


@each_caller
async def test_what_is_refused_leaves_the_transaction_usable(kind: str, tmp_path: Path) -> None:
    """A duplicate stores nothing of its call, and the caller goes on."""
    async with scene(kind, tmp_path) as s:
        await s.queue.dispatch("ship", 1, id="taken")
        await s.caller.write("before")
        calls = [tenure.Call("ship", 0), tenure.Call("ship", 2, id="taken")]
        with pytest.raises(tenure.DuplicateJob):
            await s.queue.dispatch_many(calls, within=s.caller.connection)
        with pytest.raises(tenure.InvalidJob):
            await s.queue.dispatch("", within=s.caller.connection)
        await s.caller.write("after")
        await s.queue.dispatch("ship", 3, within=s.caller.connection)
        await s.caller.commit()
        assert s.notes() == ["before", "after"]
        assert sorted(job.payload for job in (await s.queue.list()).jobs) == [1, 3]


@each_caller
async def test_the_commit_wakes_an_idle_worker(kind: str, tmp_path: Path) -> None:
    """Long before its poll; and not before the commit."""
    async with scene(kind, tmp_path) as s:
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


async def test_a_connection_that_is_of_no_use_is_refused_and_left_alone(tmp_path: Path) -> None:
    """Another file, autocommit, closed, something else altogether: named by its type."""
    async with scene("sqlite3", tmp_path) as s:
        other = sqlite3.connect(tmp_path / "other.db")
        bare = sqlite3.connect(s.path, isolation_level=None)
        closed = sqlite3.connect(s.path)
        closed.close()
        wrong: list[tuple[Any, str]] = [
            (other, "must be to the queue's own file"),
            (bare, "must be in a transaction"),
            (closed, "closed database"),
            ("sqlite://", "must be a connection of sqlite3"),
        ]
        for connection, rule in wrong:
            with pytest.raises(tenure.InvalidConfiguration, match=rule) as caught:
                await s.queue.dispatch("ship", within=connection)
            assert caught.value.option == "within"
        assert not bare.in_transaction
        assert not other.in_transaction
        assert await s.pending() == 0
        other.close()
        bare.close()


async def test_a_transaction_that_read_before_another_wrote_is_told_to_begin_again(
    tmp_path: Path,
) -> None:
    """SQLite cannot let it write any more; nothing is half done."""
    async with scene("sqlite3 begun", tmp_path) as s:
        s.caller.connection.execute("SELECT count(*) FROM notes").fetchone()
        await s.queue.dispatch("other")
        with pytest.raises(tenure.StoreUnavailable, match="BEGIN IMMEDIATE"):
            await s.queue.dispatch("ship", within=s.caller.connection)
        await s.caller.rollback()
        await s.queue.dispatch("ship", within=s.caller.connection)
        await s.caller.commit()
        assert await s.pending() == 2


async def test_a_transaction_that_has_read_nothing_waits_for_who_writes(tmp_path: Path) -> None:
    """As long as its connection does for any write: it must not read before it has the lock."""
    async with scene("sqlite3 begun", tmp_path) as s:
        other = sqlite3.connect(s.path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        other.execute("INSERT INTO notes VALUES ('other')")
        commit = threading.Timer(0.2, other.execute, ["COMMIT"])
        commit.start()
        await s.queue.dispatch("ship", within=s.caller.connection)
        await s.caller.commit()
        commit.join()
        other.close()
        assert await s.pending() == 1


@pytest.mark.parametrize("url", ["memory://", "sqlite:///:memory:"])
async def test_a_store_without_connections_of_others_refuses_within(url: str) -> None:
    """No option is accepted and ignored."""
    async with tenure.connect(url) as queue:
        connection = sqlite3.connect(":memory:")
        with pytest.raises((tenure.Unsupported, tenure.InvalidConfiguration), match="within"):
            await queue.dispatch("ship", within=connection)
        connection.close()
        assert (await queue.counts()).pending == 0
