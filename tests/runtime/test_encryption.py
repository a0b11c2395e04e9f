"""A codec between a queue and its store: what is sealed, who can read it, and what else goes on."""

import sqlite3
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.codec import SEAL
from tenure.driver import Capability
from tests.front.test_control import finish
from tests.runtime.arrange import hidden, running
from tests.runtime.scenes import errors_of, unreachable
from tests.runtime.world import World, each_store, open_world

OLD, NEW = (urlsafe_b64encode(bytes(range(n, n + 32))).decode() for n in (1, 101))


def queue_of(world: World, *keys: str) -> tenure.Queue:
    """Another queue on the world's store, with these keys; without any it has no codec."""
    codec = tenure.Fernet(keys) if keys else None
    return tenure.Queue(world.driver, clock=world.clock, codec=codec)


def worker_of(world: World, *keys: str, **options: Any) -> tuple[tenure.Worker, list[Any]]:
    """A worker that gives back what it got, and the payloads that it got."""
    options = {"poll_interval": 30.0} | options
    worker = tenure.Worker(queue_of(world, *keys), **options)
    seen: list[Any] = []

    @worker.handler("echo")
    async def echo(payload: Any, job: tenure.RunningJob) -> Any:
        assert job.payload == payload
        seen.append(payload)
        return {"echo": payload}

    return worker, seen


async def raw(world: World, job: tenure.JobHandle) -> tenure.Job[bytes]:
    stored = await world.inner.get(job.id)
    assert stored is not None
    return stored


@each_store
async def test_payload_and_result_are_sealed_in_the_store_and_plain_to_all_others(
    store: str, tmp_path: Path
) -> None:
    """I10: what went in comes back; names and headers are as they were."""
    async with open_world(store, tmp_path) as world:
        queue = queue_of(world, OLD)
        worker, seen = worker_of(world, OLD)
        job = await queue.dispatch("echo", {"to": "ada"}, headers={"trace": "t"})
        async with running(world, worker):
            await world.advance(1.0)
            assert seen == [{"to": "ada"}]
            record = await queue.get(job.id)
            assert (record.state, record.attempt) == ("completed", 1)
            assert (record.payload, record.result) == ({"to": "ada"}, {"echo": {"to": "ada"}})
            assert (await queue.list()).jobs == (record,)
            assert await job.result() == {"echo": {"to": "ada"}}
            stored = await raw(world, job)
            assert stored.result is not None
            assert stored.payload.startswith(SEAL)
            assert stored.result.startswith(SEAL)
            assert b"ada" not in stored.payload + stored.result
            assert (stored.name, stored.headers) == ("echo", {"trace": "t"})


@each_store
async def test_progress_and_log_are_sealed_and_go_on_from_attempt_to_attempt(
    store: str, tmp_path: Path
) -> None:
    """The next attempt reads what the one before has left, also after a rotation."""
    async with open_world(store, tmp_path) as world:
        queue = queue_of(world, OLD)
        job = await queue.dispatch("copy", max_attempts=2)
        for keys in ((OLD,), (NEW, OLD)):
            worker, _ = worker_of(world, *keys)

            @worker.handler("copy")
            async def copy(payload: None, job: tenure.RunningJob) -> None:
                await job.set_progress(job.attempt / 4, "secret note")
                await job.log(f"secret line {job.attempt}")
                raise tenure.Retry(after=60)

            async with running(world, worker) as handle:
                await world.advance(61.0 if keys == (NEW, OLD) else 1.0)
                assert len(errors_of(handle)) == 1
        progress: Any = (await queue_of(world, NEW).get(job.id)).progress
        assert (progress.fraction, progress.note) == (0.5, "secret note")
        assert [line.text for line in progress.log] == ["secret line 1", "secret line 2"]
        stored = (await raw(world, job)).progress
        assert stored is not None
        assert stored.startswith(SEAL)
        assert b"secret" not in stored
        assert (await queue_of(world).get(job.id)).progress == tenure.Damaged(stored)


async def test_a_result_of_none_needs_no_codec() -> None:
    """As without one: nothing is stored."""
    async with open_world() as world:
        worker, _ = worker_of(world, OLD)

        @worker.handler("nothing")
        async def nothing(payload: None) -> None: ...

        queue = queue_of(world, OLD)
        job = await queue.dispatch("nothing")
        async with running(world, worker):
            await world.advance(1.0)
            assert (await raw(world, job)).result is None
            assert (await queue.get(job.id)).state == "completed"


# --- keys ---------------------------------------------------------------------------------------


@each_store
async def test_jobs_of_before_a_rotation_are_read_and_run_after_it(
    store: str, tmp_path: Path
) -> None:
    """`[new, old]`: the first key encrypts, all decrypt."""
    async with open_world(store, tmp_path) as world:
        done = await queue_of(world, OLD).dispatch("echo", "done")
        await finish(world, tenure.Completed(SEAL + tenure.Fernet(OLD).encode(b'"old"')))
        before = await queue_of(world, OLD).dispatch("echo", "before")
        after = await queue_of(world, NEW, OLD).dispatch("echo", "after")
        worker, seen = worker_of(world, NEW, OLD)
        async with running(world, worker):
            await world.advance(1.0)
            assert seen == ["before", "after"]
            queue = queue_of(world, NEW, OLD)
            assert (await queue.get(done.id)).result == "old"
            for job in (before, after):
                assert await queue.get(job.id) != await queue_of(world, OLD).get(job.id)
            # The results are under the new key alone.
            record = await queue_of(world, NEW).get(before.id)
            assert isinstance(record.payload, tenure.Damaged)
            assert record.result == {"echo": "before"}


@each_store
@pytest.mark.parametrize("keys", [(), (NEW,)], ids=["no codec", "another key"])
async def test_i12_a_job_under_a_missing_key_is_left_to_a_worker_that_has_it(
    store: str, tmp_path: Path, keys: tuple[str, ...]
) -> None:
    """I12, W9: 5, 10, 20 s; no attempt is spent, nothing fails, and others go on."""
    async with open_world(store, tmp_path) as world:
        delays: list[float | None] = []

        def observe(event: tenure.Event) -> None:
            if isinstance(event, tenure.JobSettled) and isinstance(event.outcome, tenure.Released):
                assert event.outcome.reason == "no key here"
                delays.append(event.outcome.delay)

        worker, seen = worker_of(world, *keys, concurrency=1, observers=[observe])
        jobs = await queue_of(world, OLD).dispatch_many([tenure.Call("echo", 1, priority=1)] * 3)
        await queue_of(world, *keys).dispatch("echo", "mine")
        async with running(world, worker) as handle:
            await world.advance(1.0)
            assert seen == ["mine"]
            assert delays == [5.0] * 3
            await world.advance(20.0)
            assert delays == [5.0] * 3 + [10.0] * 3 + [20.0] * 3
            for job in jobs:
                record = await queue_of(world, OLD).get(job.id)
                assert (record.state, record.attempt, record.stalls) == ("pending", 0, 0)
                assert record.error is None
            [error] = errors_of(handle)
            assert isinstance(error, tenure.UnknownKey)
            assert (error.name, error.path) == ("echo", "payload")
            assert error.job_id in {job.id for job in jobs}
            assert (error.key_id is None) is (keys == ())
        newer, seen = worker_of(world, NEW, OLD)
        async with running(world, newer):
            await world.advance(30.0)
            assert seen == [1, 1, 1]


async def test_i12_a_missing_key_is_reported_once_per_name_and_minute() -> None:
    async with open_world() as world:
        worker, _ = worker_of(world)
        worker.register("other", print)
        queue = queue_of(world, OLD)
        await queue.dispatch_many([tenure.Call(name) for name in ("echo", "echo", "other")])
        async with running(world, worker) as handle:
            await world.advance(59.0)
            errors = errors_of(handle)
            assert all(isinstance(error, tenure.UnknownKey) for error in errors)
            assert len(errors) == 2
            await world.advance(60.0)
            assert len(errors_of(handle)) == 2


async def test_i12_where_the_store_cannot_delay_a_job_without_its_key_fails() -> None:
    """W9: as for a name without a handler; released at once it would come back for ever."""
    async with open_world(**hidden("memory", Capability.DELAY)) as world:
        worker, seen = worker_of(world)
        job = await queue_of(world, OLD).dispatch("echo")
        async with running(world, worker) as handle:
            await world.settle()
            record = await world.job(job)
            assert (record.state, record.attempt, seen) == ("failed", 0, [])
            assert record.error is not None
            assert record.error.kind == "serialization"
            assert [type(error) for error in errors_of(handle)] == [tenure.UnknownKey]


@each_store
@pytest.mark.parametrize("damaged", [SEAL, SEAL + b"?", SEAL + b"?" * 99, b"\x00\xff", b"{"])
async def test_w17_bytes_that_are_no_token_are_damaged_and_fail(
    store: str, tmp_path: Path, damaged: bytes
) -> None:
    """W17, I12: as without a codec; only that job."""
    async with open_world(store, tmp_path) as world:
        await world.inner.enqueue([tenure.NewJob(id="bad", name="echo", payload=damaged)])
        worker, seen = worker_of(world, OLD)
        queue = queue_of(world, OLD)
        await queue.dispatch("echo", "good")
        async with running(world, worker) as handle:
            await world.advance(1.0)
            record = await queue.get("bad")
            assert record.payload == tenure.Damaged(damaged)
            assert record.state == "failed"
            assert record.error is not None
            assert record.error.kind == "serialization"
            assert seen == ["good"]
            [error] = errors_of(handle)
            assert type(error) is tenure.SerializationError


@each_store
async def test_a_job_that_cannot_be_read_here_shows_its_bytes(store: str, tmp_path: Path) -> None:
    """`Damaged(raw)`, from get and list; its other fields are there."""
    async with open_world(store, tmp_path) as world:
        job = await queue_of(world, OLD).dispatch("echo", 1)
        stored = await raw(world, job)
        for queue in (queue_of(world, NEW), queue_of(world)):
            assert (await queue.get(job.id)).payload == tenure.Damaged(stored.payload)
            [listed] = (await queue.list()).jobs
            assert (listed.name, listed.payload) == ("echo", tenure.Damaged(stored.payload))


# --- schedules ----------------------------------------------------------------------------------


async def definition(world: World) -> bytes:
    [record] = (await world.inner.schedules()).items
    return record.definition


@each_store
async def test_the_payload_of_a_schedule_is_sealed_and_any_worker_fires_it(
    store: str, tmp_path: Path
) -> None:
    """Firing needs no key: what is stored passes on into the jobs."""
    async with open_world(store, tmp_path) as world:
        queue = queue_of(world, OLD)
        shown = await queue.schedule("daily", "@every 60s", "echo", {"to": "ada"})
        assert shown.payload == {"to": "ada"}
        assert [each.payload for each in await queue.schedules()] == [{"to": "ada"}]
        [locked] = await queue_of(world).schedules()
        assert isinstance(locked.payload, tenure.Damaged)
        assert locked.payload.raw.startswith(SEAL)
        ticking = tenure.Worker(queue_of(world), queues=["none"])
        async with running(world, ticking):
            await world.advance(61.0)
        worker, seen = worker_of(world, OLD)
        await queue.run_schedule("daily")
        async with running(world, worker):
            await world.advance(1.0)
            assert seen == [{"to": "ada"}] * 2


@each_store
async def test_a_schedule_stored_again_is_the_same_though_it_encrypts_differently(
    store: str, tmp_path: Path
) -> None:
    """Called at every start of a program it must not begin anew."""
    async with open_world(store, tmp_path) as world:
        await queue_of(world, OLD).schedule("daily", "@every 60s", "echo", {"n": 1})
        first = await definition(world)
        for keys in ((OLD,), (NEW, OLD)):
            await queue_of(world, *keys).schedule("daily", "@every 60s", "echo", {"n": 1})
            assert await definition(world) == first
        for priority in (0, 1):
            before = await definition(world)
            queue = queue_of(world, OLD)
            await queue.schedule("daily", "@every 60s", "echo", {"n": 2}, priority=priority)
            assert await definition(world) != before
        # One that cannot be read, or is stored in plain, is replaced.
        for queue in (queue_of(world, NEW), queue_of(world), queue_of(world, OLD)):
            before = await definition(world)
            await queue.schedule("daily", "@every 60s", "echo", {"n": 2})
            assert await definition(world) != before
        assert (await queue_of(world, OLD).schedules())[0].payload == {"n": 2}


# --- a store from before, and repeats -------------------------------------------------------------


@each_store
async def test_plain_jobs_of_before_are_read_and_run(store: str, tmp_path: Path) -> None:
    """Encryption can be turned on under a store that is in use."""
    async with open_world(store, tmp_path) as world:
        done = await world.queue.dispatch("echo", "done")
        await finish(world, tenure.Completed(b'"plain"'))
        job = await world.queue.dispatch("echo", {"n": 1})
        worker, seen = worker_of(world, OLD)
        async with running(world, worker):
            await world.advance(1.0)
            assert seen == [{"n": 1}]
            assert (await queue_of(world, OLD).get(done.id)).result == "plain"
            stored = await raw(world, job)
            assert stored.payload == b'{"n":1}'
            assert stored.result is not None
            assert stored.result.startswith(SEAL)


@each_store
async def test_i14_the_same_id_with_the_same_content_is_stored_once(
    store: str, tmp_path: Path
) -> None:
    """I14: also from another process, and after keys were added in front."""
    async with open_world(store, tmp_path) as world:
        await queue_of(world, OLD).dispatch("echo", {"n": 1}, id="once")
        await queue_of(world, OLD).dispatch("echo", {"n": 1}, id="once")
        await queue_of(world, NEW, OLD).dispatch("echo", {"n": 1}, id="once")
        for other in ({"n": 2}, {"n": 1, "m": 1}):
            with pytest.raises(tenure.DuplicateJob):
                await queue_of(world, OLD).dispatch("echo", other, id="once")
        with pytest.raises(tenure.DuplicateJob):
            await queue_of(world, OLD).dispatch("echo", {"n": 1}, id="once", priority=1)
        assert (await world.queue.counts()).pending == 1


@each_store
async def test_i14_a_dispatch_whose_answer_was_lost_is_stored_once(
    store: str, tmp_path: Path
) -> None:
    """I5, I14: as without a codec."""
    async with open_world(store, tmp_path) as world:
        world.driver.fail("enqueue", unreachable(ambiguous=True), times=1, after=True)
        job = await world.run(queue_of(world, OLD).dispatch("echo", 1))
        assert (await queue_of(world, OLD).get(job.id)).payload == 1
        assert (await world.queue.counts()).pending == 1


async def test_the_payload_limit_is_on_the_json() -> None:
    """What encryption adds is nobody's concern."""
    async with open_world() as world:
        codec = tenure.Fernet(OLD)
        queue = tenure.Queue(world.driver, clock=world.clock, codec=codec, payload_limit=100)
        job = await queue.dispatch("echo", "x" * 98)
        assert len((await raw(world, job)).payload) > 100
        with pytest.raises(tenure.InvalidJob, match="at most 100 bytes"):
            await queue.dispatch("echo", "x" * 99)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


async def test_no_plaintext_is_in_the_file(tmp_path: Path) -> None:
    """Not of payload, result or a completion of the handler's own, the write-ahead log included."""
    path = tmp_path / "jobs.db"
    async with open_world("sqlite", tmp_path) as world:
        queue = queue_of(world, OLD)
        worker, seen = worker_of(world, OLD)

        @worker.handler("within")
        async def within(payload: str, job: tenure.RunningJob) -> None:
            connection = sqlite3.connect(path)
            connection.execute("BEGIN IMMEDIATE")
            await job.complete_within(connection, {"answer": "secret-within"})
            connection.commit()
            connection.close()

        jobs = await queue.dispatch_many(
            [tenure.Call("echo", f"secret-{n}") for n in range(50)]
            + [tenure.Call("within", "secret-payload")]
        )
        waiting = await queue.dispatch("echo", "secret-waiting", delay=3600)
        async with running(world, worker):
            await world.run(jobs[-1].result())
            await world.advance(5.0)
            assert len(seen) == 50
            assert await jobs[-1].result() == {"answer": "secret-within"}
            assert await jobs[0].result() == {"echo": "secret-0"}
            assert (await queue.get(waiting.id)).payload == "secret-waiting"
            files = contents(tmp_path)
            assert {"jobs.db", "jobs.db-wal"} <= set(files)
            assert any(waiting.id.encode() in data for data in files.values())
            assert any(SEAL in data for data in files.values())
            assert [name for name, data in files.items() if b"secret" in data] == []
    assert not any(b"secret" in data for data in contents(tmp_path).values())
