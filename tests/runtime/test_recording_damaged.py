"""W17: what cannot be read ends its own attempt, and nothing else."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import tenure
from tests.runtime.scenes import errors_of, running
from tests.runtime.world import World, each_store, open_world

UNREADABLE = [b"", b"{", b'{"a": nan}', b'"\xff"', b"[" * 5000, b"1 2"]


async def enqueue(world: World, job_id: str, payload: bytes, **fields: Any) -> None:
    """Store a job as another program might, without the checks of a dispatch."""
    await world.inner.enqueue([tenure.NewJob(id=job_id, name="work", payload=payload, **fields)])


@each_store
@pytest.mark.parametrize("payload", UNREADABLE, ids=lambda payload: repr(payload[:12]))
async def test_w17_a_payload_that_does_not_decode_fails_its_job_and_reaches_no_handler(
    store: str, tmp_path: Path, payload: bytes
) -> None:
    """W17, I12: the attempt has ended as failed, with a `SerializationError`, and others run."""
    async with open_world(store, tmp_path) as world:
        handled: list[object] = []

        async def work(payload: object) -> None:
            handled.append(payload)

        worker = tenure.Worker(world.queue, concurrency=1)
        worker.register("work", work)
        await enqueue(world, "before", b"1")
        await enqueue(world, "bad", payload)
        await enqueue(world, "after", b"2")
        async with running(worker) as handle:
            await world.advance(1.0)
            assert handled == [1, 2]
            record = await world.queue.get("bad")
            assert (record.state, record.attempt) == ("failed", 1)
            assert record.error is not None
            assert record.error.kind == "serialization"
            assert isinstance(record.payload, tenure.Damaged)
            assert record.payload.raw == payload
            [error] = errors_of(handle)
            assert isinstance(error, tenure.SerializationError)
            assert (error.job_id, error.path) == ("bad", "payload")
            assert "bad" in str(error)
            assert not (await world.queue.counts()).processing


@each_store
async def test_w17_a_payload_that_does_not_decode_is_not_tried_again(
    store: str, tmp_path: Path
) -> None:
    """W17: it would not decode the next time either, whatever the retry policy says."""
    async with open_world(store, tmp_path) as world:
        handled: list[object] = []
        worker = tenure.Worker(world.queue)
        worker.register("work", handled.append, retry=tenure.RetryPolicy(max_attempts=5, base=0.1))
        await enqueue(world, "bad", b"{", max_attempts=5)
        async with running(worker) as handle:
            await world.advance(60.0)
            record = await world.queue.get("bad")
            assert (record.state, record.attempt) == ("failed", 1)
            assert handled == []
            [error] = errors_of(handle)
            assert isinstance(error, tenure.SerializationError)


async def test_w17_a_damaged_record_harms_only_itself() -> None:
    """W17, I12: the driver says that it could not read a record; it is failed, never started."""
    async with open_world() as world:
        handled: list[object] = []

        async def work(payload: object) -> None:
            handled.append(payload)

        worker = tenure.Worker(world.queue)
        worker.register("work", work)
        for job_id in ("a", "bad", "b"):
            await enqueue(world, job_id, b'"' + job_id.encode() + b'"')

        async def hook(call: Any) -> Any:
            return [
                replace(claim, damage="headers: not text") if claim.job.id == "bad" else claim
                for claim in await call()
            ]

        world.driver.hooks["claim"] = hook
        async with running(worker) as handle:
            await world.advance(1.0)
            assert handled == ["a", "b"]
            record = await world.queue.get("bad")
            assert (record.state, record.attempt) == ("failed", 0)
            assert record.error is not None
            assert record.error.kind == "damaged"
            assert record.error.message == "the stored record is damaged: headers: not text"
            [error] = errors_of(handle)
            assert isinstance(error, tenure.JobFailed)
            assert error.job_id == "bad"
