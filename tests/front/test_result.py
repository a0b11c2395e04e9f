"""`JobHandle.result`: waits for the end and gives it, whichever it was."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import tenure
from tests.front.test_control import failed, finish
from tests.runtime.world import each_store, open_world


@each_store
async def test_the_result_of_a_completed_job(store: str, tmp_path: Path) -> None:
    """Waits through pending and processing."""
    async with open_world(store, tmp_path) as world:
        job = await world.queue.dispatch("work")
        waiting = asyncio.create_task(job.result(timeout=60))
        await world.advance(5.0)
        assert not waiting.done()
        await finish(world, tenure.Completed(b'{"answer":42}'))
        assert await world.run(waiting) == {"answer": 42}


@each_store
async def test_the_end_of_a_job_without_a_result_is_an_error(store: str, tmp_path: Path) -> None:
    """Failed, cancelled, deleted."""
    async with open_world(store, tmp_path) as world:
        job = await world.queue.dispatch("work")
        await finish(world, failed(world))
        with pytest.raises(tenure.JobFailed) as caught:
            await job.result()
        assert (caught.value.job_id, caught.value.name, caught.value.attempt) == (job.id, "work", 1)
        assert caught.value.failure.message == "no"
        await world.queue.delete(job.id)
        with pytest.raises(tenure.JobNotFound):
            await job.result()
        other = await world.queue.dispatch("work")
        await world.queue.cancel(other.id)
        with pytest.raises(tenure.JobCancelled):
            await other.result()


async def test_a_job_that_does_not_end_in_time_is_a_timeout() -> None:
    """After as long as was asked for, and not a poll later."""
    async with open_world() as world:
        job = await world.queue.dispatch("work")
        began = world.clock.monotonic()
        with pytest.raises(TimeoutError, match="still pending"):
            await world.run(job.result(timeout=1.25))
        assert world.clock.monotonic() - began == pytest.approx(1.25)
        with pytest.raises(TimeoutError):
            await job.result(timeout=0)


async def test_a_result_or_an_error_that_does_not_decode_is_told_and_not_waited_for() -> None:
    """I12: a damaged record harms only itself."""
    async with open_world() as world:
        good = await world.queue.dispatch("work")
        await finish(world, tenure.Completed(b"{not json"))
        with pytest.raises(tenure.SerializationError) as caught:
            await good.result()
        assert caught.value.job_id == good.id
        bad = await world.queue.dispatch("work")
        await finish(world, failed(world))

        async def without_error(call: Callable[[], Awaitable[Any]]) -> Any:
            return replace(await call(), error=None)

        world.driver.hooks["get"] = without_error
        with pytest.raises(tenure.JobFailed) as failure:
            await bad.result(timeout=1)
        assert failure.value.failure.kind == "damaged"
