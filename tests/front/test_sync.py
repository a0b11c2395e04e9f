"""`queue.sync`: every verb of the queue, from threads without an event loop, on each store."""

import asyncio
import inspect
import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_overloads
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy
import sqlalchemy.ext.asyncio
import sqlalchemy.orm

import tenure
from tests.servers.postgres import PostgresServer, postgres_server
from tests.servers.redis import RedisServer, redis_server

__all__ = ["postgres_server", "redis_server"]  # fixtures


@pytest.fixture(params=["memory", "sqlite", "redis", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store. A server that is missing skips its own tests alone, and says so."""
    name = f"sync_{uuid4().hex}"
    if request.param == "redis":
        redis: RedisServer = request.getfixturevalue("redis_server")
        return f"{redis.url}?namespace={name}"
    if request.param == "postgres":
        postgres: PostgresServer = request.getfixturevalue("postgres_server")
        return f"{postgres.url}?schema={name}"
    return "memory://" if request.param == "memory" else file_in(tmp_path)


def file_in(folder: Path) -> str:
    return f"sqlite:///{folder / 'jobs.db'}?synchronous=NORMAL"


@pytest.fixture
def queue(url: str) -> Iterator[tenure.SyncQueue]:
    with tenure.connect(url).sync as queue:
        yield queue


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "tenure-sync"]


# --- the same verbs -----------------------------------------------------------------------------

# What a queue has beside its verbs: for workers and for the twin itself.
OTHER = {
    *("add_middleware", "attach", "clock", "codec", "driver", "middleware", "payload_limit"),
    *("sync", "waits"),
}


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_the_twin_has_every_verb_of_the_queue_and_no_other() -> None:
    assert public(tenure.SyncQueue) == public(tenure.Queue) - OTHER


def shown(verb: Any) -> str:
    """Its signature, with what `queue.sync` gives for a handle."""
    text = str(inspect.signature(verb)).replace("tenure.sync.job_handle.", "tenure.")
    return text.replace("tenure.JobHandle", "tenure.SyncJobHandle")


@pytest.mark.parametrize("verb", sorted(public(tenure.SyncQueue)))
def test_a_verb_is_called_and_answers_as_that_of_the_queue(verb: str) -> None:
    """Names, defaults and types of the arguments, overloads, and the type of the answer."""
    ours: Any = getattr(tenure.SyncQueue, verb)
    theirs: Any = getattr(tenure.Queue, verb)
    if isinstance(theirs, property):
        ours, theirs = ours.fget, theirs.fget
    else:
        assert inspect.iscoroutinefunction(theirs)
        assert not inspect.iscoroutinefunction(ours)
    assert shown(ours) == shown(theirs)
    assert list(map(shown, get_overloads(ours))) == list(map(shown, get_overloads(theirs)))
    assert f"`Queue.{verb}`" in (ours.__doc__ or "")


# --- on each store ------------------------------------------------------------------------------


def test_jobs_are_dispatched_looked_at_and_controlled(queue: tenure.SyncQueue) -> None:
    """I5, I10: plain values, without an event loop in sight."""
    job = queue.dispatch("send", {"to": "a@b"}, priority=3, delay=60, id="one")
    assert (job.id, job.created) == ("one", True)
    many = queue.dispatch_many([tenure.Call("send", n) for n in range(3)])
    assert [each.created for each in many] == [True] * 3
    assert queue.get("one").payload == {"to": "a@b"}
    assert len(queue.list(name="send", limit=2).jobs) == 2
    counts = queue.counts()
    assert (counts.pending, counts.scheduled) == (3, 1)
    assert queue.move("one", priority=5) == "done"
    assert queue.cancel([many[0].id, "none"]) == ["done", "unknown"]
    assert queue.retry(many[0].id) == "done"
    assert queue.delete("one") == "done"
    with pytest.raises(tenure.JobNotFound):
        queue.get("one")
    assert queue.history(many[0].id) is not None
    assert queue.cancel_all(name="send").done == 3
    assert queue.retry_all(state="cancelled").done == 3
    assert queue.delete_all(state="pending", queue="default").done == 3
    assert queue.purge("default", state="pending") == 0


def test_queues_schedules_and_limits_are_kept(queue: tenure.SyncQueue) -> None:
    queue.pause("slow")
    assert queue.counts().by_queue["slow"].pending == 0
    queue.resume("slow")
    assert queue.schedule("nightly", "0 3 * * *", "report").id == "nightly"
    queue.pause_schedule("nightly")
    assert [schedule.paused for schedule in queue.schedules()] == [True]
    queue.resume_schedule("nightly")
    job = queue.run_schedule("nightly")
    assert isinstance(job, tenure.SyncJobHandle)
    assert queue.get(job.id).name == "report"
    assert queue.unschedule("nightly")
    queue.limit("api", per_second=10)
    assert [limit.per_second for limit in queue.limits()] == [10]
    assert queue.remove_limit("api")
    assert list(queue.workers()) == []


async def test_a_result_is_waited_for_in_a_thread_while_a_worker_runs(url: str) -> None:
    """The queue itself and its twin share a store, each on its own event loop."""
    async with tenure.connect(url) as queue:
        worker = tenure.Worker(queue)

        @worker.handler("double")
        async def double(number: int) -> int:
            return 2 * number

        @worker.handler("relay")
        def relay(number: int) -> Any:
            """A plain handler: its thread has no event loop."""
            return queue.sync.dispatch("double", number).result(timeout=30)

        @worker.handler("fail")
        async def fail(payload: None) -> None:
            raise ValueError("no")

        def program() -> Any:
            with pytest.raises(tenure.JobFailed, match="ValueError: no"):
                queue.sync.dispatch("fail").result(timeout=30)
            return queue.sync.dispatch("relay", 21).result(timeout=30)

        async with worker.run() as handle:
            assert await asyncio.to_thread(program) == 42
            assert isinstance(handle.try_next_error(), tenure.JobFailed)
        await queue.close()
    await asyncio.to_thread(queue.sync.close)


def test_sixteen_threads_call_at_once(queue: tenure.SyncQueue) -> None:
    """On one background loop; each gets its own answers."""

    def work(thread: int) -> list[Any]:
        jobs = [queue.dispatch("send", [thread, n]) for n in range(10)]
        return [queue.get(job.id).payload for job in jobs]

    with ThreadPoolExecutor(16) as pool:
        seen = list(pool.map(work, range(16)))
    assert seen == [[[thread, n] for n in range(10)] for thread in range(16)]
    assert len(threads()) == 1
    assert queue.counts().pending == 160


def test_what_is_refused_is_raised_where_it_was_called(queue: tenure.SyncQueue) -> None:
    with pytest.raises(tenure.InvalidJob) as caught:
        queue.dispatch("send", {"a": float("nan")})
    assert caught.value.path == "payload.a"
    with pytest.raises(TimeoutError):
        queue.dispatch("send").result(timeout=0)


# --- the background loop ------------------------------------------------------------------------


def test_one_thread_serves_all_queues_and_ends_with_the_last() -> None:
    """Started by the first call; a close in a program of two does not end it for the other."""
    first, second = tenure.connect("memory://").sync, tenure.connect("memory://").sync
    assert threads() == []
    with first:
        second.dispatch("send")
        assert len(threads()) == 1
    assert len(threads()) == 1
    assert second.counts().pending == 1
    second.close()
    second.close()
    assert threads() == []


def test_a_closed_queue_refuses_calls_until_it_is_opened_again(tmp_path: Path) -> None:
    queue = tenure.connect(file_in(tmp_path)).sync
    with queue:
        job = queue.dispatch("send")
    assert queue.closed
    for call in (queue.counts, job.result):
        with pytest.raises(tenure.RuntimeUnavailable, match="closed"):
            call()
    assert threads() == []
    with queue:
        assert queue.counts().pending == 1


async def test_a_call_on_an_event_loop_is_refused_before_anything_is_begun() -> None:
    """It would stand still meanwhile."""
    queue = tenure.connect("memory://")
    for call in (queue.sync.counts, lambda: queue.sync.dispatch("send"), queue.sync.close):
        with pytest.raises(tenure.RuntimeUnavailable, match="await the verb of the queue itself"):
            call()
    assert threads() == []
    assert (await queue.counts()).pending == 0
    await queue.close()


def test_a_call_on_the_background_loop_itself_is_refused() -> None:
    """Such as in a function given as `progress`: nobody would be left to answer."""
    twin = tenure.connect("memory://").sync
    refused: list[int] = []

    def progress(stored: int) -> None:
        with pytest.raises(tenure.RuntimeUnavailable, match="await"):
            twin.counts()
        refused.append(stored)

    with twin:
        twin.dispatch_many([tenure.Call("send")], progress=progress)
    assert refused == [1]


def test_an_interrupted_wait_is_cancelled_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C while it waits: the wait ends on the background loop as well."""
    queue = tenure.connect("memory://")
    with queue.sync as blocking_queue:
        job = blocking_queue.dispatch("send")
        waiting = threading.Event()

        def interrupted(*_: object) -> Any:
            while not queue.waits.anyone:
                waiting.wait(0.001)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr("concurrent.futures.Future.result", interrupted)
            with pytest.raises(KeyboardInterrupt):
                job.result()
        blocking_queue.counts()
        assert not queue.waits.anyone
        assert blocking_queue.get(job.id).state == "pending"


# --- transactions of the caller's ---------------------------------------------------------------

CONNECTIONS: dict[str, Callable[[str], Any]] = {
    "sqlite3": lambda path: sqlite3.connect(path),
    "Session": lambda path: sqlalchemy.orm.Session(sqlalchemy.create_engine(f"sqlite:///{path}")),
}


@pytest.mark.parametrize("kind", CONNECTIONS)
def test_a_dispatch_within_a_transaction_is_made_on_the_callers_thread(
    kind: str, tmp_path: Path
) -> None:
    """I5: a connection of sqlite3 refuses every other thread."""
    with tenure.connect(file_in(tmp_path)).sync as queue:
        connection = CONNECTIONS[kind](str(tmp_path / "jobs.db"))
        try:
            check_within(queue, connection)
        finally:
            connection.close()
            if kind == "Session":
                connection.get_bind().dispose()


def check_within(queue: tenure.SyncQueue, connection: Any) -> None:
    queue.dispatch("ship", 0, within=connection)
    connection.rollback()
    job = queue.dispatch("ship", 1, within=connection)
    queue.dispatch_many([tenure.Call("ship", n) for n in (2, 3)], within=connection)
    with pytest.raises(tenure.InvalidJob):
        queue.dispatch("", within=connection)
    assert queue.counts().pending == 0
    connection.commit()
    assert sorted(job.payload for job in queue.list().jobs) == [1, 2, 3]
    with pytest.raises(TimeoutError):
        job.result(timeout=0)


@pytest.mark.parametrize("kind", ["psycopg", "Session"])
def test_so_is_one_on_postgresql(kind: str, postgres_server: PostgresServer) -> None:
    name = f"sync_{uuid4().hex}"
    with tenure.connect(postgres_server.url, schema=name).sync as queue:
        if kind == "psycopg":
            with psycopg.connect(postgres_server.url) as connection:
                check_within(queue, connection)
            return
        address = postgres_server.url.replace("postgresql://", "postgresql+psycopg://")
        engine = sqlalchemy.create_engine(address, poolclass=sqlalchemy.NullPool)
        with sqlalchemy.orm.Session(engine) as session:
            check_within(queue, session)


def test_a_connection_that_is_awaited_is_refused(tmp_path: Path) -> None:
    """There is no event loop on the caller's thread that it could wait on."""
    engine = sqlalchemy.ext.asyncio.create_async_engine("postgresql+asyncpg://nowhere/none")
    with tenure.connect(file_in(tmp_path)).sync as queue:
        with pytest.raises(
            tenure.InvalidConfiguration, match="within must be a blocking"
        ) as caught:
            queue.dispatch("ship", within=sqlalchemy.ext.asyncio.AsyncSession(engine))
        assert caught.value.option == "within"
        with pytest.raises(tenure.InvalidConfiguration, match="must be a connection of sqlite3"):
            queue.dispatch("ship", within="nothing")
        assert queue.counts().pending == 0
    with tenure.connect("memory://").sync as queue, pytest.raises(tenure.Unsupported):
        queue.dispatch("ship", within=object())


# --- forks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["sqlite", "redis", "postgres"], indirect=True)
def test_a_child_has_a_loop_of_its_own_and_closes_without_its_parent(
    queue: tenure.SyncQueue,
) -> None:
    """What the parent waits for meanwhile, on its loop, is not the child's to end."""
    job = queue.dispatch("before")
    waiting = ThreadPoolExecutor(1)
    result = waiting.submit(job.result, 0.5)
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)  # one that hangs is killed
        code = 1
        try:
            queue.dispatch("child")
            queue.close()
            with queue:
                code = 0 if queue.counts().pending == 2 and len(threads()) == 1 else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    with pytest.raises(TimeoutError):
        result.result()
    waiting.shutdown()
    queue.dispatch("after")


@pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)
def test_a_child_closes_a_queue_on_which_its_parent_runs_a_worker(url: str) -> None:
    """W26, section 3: the worker is the parent's, and goes on."""
    queue = tenure.connect(url)
    running, stop = threading.Event(), threading.Event()

    async def host() -> None:
        worker = tenure.Worker(queue)

        @worker.handler("double")
        async def double(number: int) -> int:
            return 2 * number

        async with worker.run() as handle:
            running.set()
            await asyncio.to_thread(stop.wait)
            assert handle.try_next_error() is None
        await queue.close()

    with ThreadPoolExecutor(1) as beside:
        hosted = beside.submit(asyncio.run, host())
        running.wait()
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)  # one that hangs is killed
            code = 1
            try:
                queue.sync.close()
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        try:
            assert os.waitstatus_to_exitcode(status) == 0
            assert queue.sync.dispatch("double", 21).result(timeout=30) == 42
        finally:
            stop.set()
        hosted.result()
    queue.sync.close()
