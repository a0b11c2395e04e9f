"""Jobs per second: draining a full queue, and the three ways to dispatch.

Every measurement gets a new store, and is believed only when the store's own counts agree.
"""

import asyncio
import time

from stores import PAYLOAD, Mismatch

import tenure

__all__ = ["ABREAST", "dispatch_abreast", "dispatch_in_bulk", "dispatch_one_by_one", "drain"]

ABREAST = 50
_PATIENCE = 600.0


async def drain(url: str, *, jobs: int, concurrency: int) -> float:
    """From the start of a worker to the moment at which the store has the last job completed."""
    handled = 0
    all_handled = asyncio.Event()

    async def nothing(payload: object) -> None:
        nonlocal handled
        handled += 1
        if handled >= jobs:
            all_handled.set()

    async with tenure.connect(url) as queue:
        await queue.dispatch_many(tenure.Call("nothing", PAYLOAD) for _ in range(jobs))
        worker = tenure.Worker(queue, concurrency=concurrency)
        worker.register("nothing", nothing)
        began = time.perf_counter()
        async with worker.run() as handle, asyncio.timeout(_PATIENCE):
            await all_handled.wait()
            # Only the store knows when it has the last outcome, so it is asked.
            while (await queue.counts()).completed < jobs:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            seconds = time.perf_counter() - began
            error = await handle.shutdown()
        counts = await queue.counts()
    left = counts.pending + counts.scheduled + counts.processing + counts.failed + counts.cancelled
    if error is not None or handled != jobs or counts.completed != jobs or left:
        raise Mismatch(
            f"{jobs} dispatched, {handled} handled, {counts.completed} "
            f"completed and {left} others in the store, first error: {error}"
        )
    return jobs / seconds


async def dispatch_one_by_one(url: str, *, jobs: int) -> float:
    """Each dispatch is awaited before the next begins."""
    async with tenure.connect(url) as queue:
        began = time.perf_counter()
        for _ in range(jobs):
            await queue.dispatch("nothing", PAYLOAD)
        seconds = time.perf_counter() - began
        await _check_pending(queue, jobs)
    return jobs / seconds


async def dispatch_abreast(url: str, *, jobs: int) -> float:
    """Fifty tasks dispatch at once, each one by one, as the requests of a web server would."""
    async with tenure.connect(url) as queue:

        async def some() -> None:
            for _ in range(jobs // ABREAST):
                await queue.dispatch("nothing", PAYLOAD)

        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(ABREAST):
                group.create_task(some())
        seconds = time.perf_counter() - began
        stored = jobs // ABREAST * ABREAST
        await _check_pending(queue, stored)
    return stored / seconds


async def dispatch_in_bulk(url: str, *, jobs: int) -> float:
    """One call for all; it stores a thousand in each transaction."""
    async with tenure.connect(url) as queue:
        calls = [tenure.Call("nothing", PAYLOAD) for _ in range(jobs)]
        began = time.perf_counter()
        await queue.dispatch_many(calls)
        seconds = time.perf_counter() - began
        await _check_pending(queue, jobs)
    return jobs / seconds


async def _check_pending(queue: tenure.Queue, jobs: int) -> None:
    counts = await queue.counts()
    if counts.pending != jobs and not counts.capped:
        raise Mismatch(f"{counts.pending} of {jobs} jobs are stored")
