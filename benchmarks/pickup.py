"""How soon an idle worker in another process starts a job, and what it costs while it is idle.

Run as a program it is that worker: `pickup.py URL`, driven through its standard input.
"""

import asyncio
import random
import sys
import time
from asyncio.subprocess import PIPE, Process
from dataclasses import dataclass
from typing import cast

from stores import Mismatch

import tenure

__all__ = ["Idle", "pick_up"]

_PATIENCE = 30.0


@dataclass(frozen=True, kw_only=True)
class Idle:
    """Milliseconds from the call of `dispatch` to the handler's first line; CPU when idle."""

    delays: list[float]
    cpu: float | None


async def pick_up(url: str, *, samples: int, idle: float) -> Idle:
    """Dispatch `samples` jobs, one at a time and at random intervals, to an idle worker."""
    async with tenure.connect(url) as queue:
        process = await asyncio.create_subprocess_exec(
            sys.executable, __file__, url, stdin=PIPE, stdout=PIPE
        )
        try:
            async with asyncio.timeout(_PATIENCE + samples + idle):
                await _cpu_seconds(process)  # it has started
                await (await queue.dispatch("delay", time.monotonic_ns())).result()
                for _ in range(samples):
                    # Long enough for the last job to be over and the worker to be idle again.
                    await asyncio.sleep(random.uniform(0.02, 0.06))
                    await queue.dispatch("delay", time.monotonic_ns())
                await asyncio.sleep(0.5)
                cpu = None
                if idle > 0:
                    before = await _cpu_seconds(process)
                    await asyncio.sleep(idle)
                    cpu = 100 * (await _cpu_seconds(process) - before) / idle
        finally:
            if process.stdin is not None:
                process.stdin.close()
            await process.wait()
        delays = await _results(queue)
    if len(delays) != samples + 1:
        raise Mismatch(f"{len(delays)} of {samples + 1} jobs completed")
    return Idle(delays=delays[:-1], cpu=cpu)  # the oldest, and last in the list, was the warm-up


async def _cpu_seconds(process: Process) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"\n")
    return float(await process.stdout.readline())


async def _results(queue: tenure.Queue) -> list[float]:
    delays: list[float] = []
    cursor: str | None = None
    while True:
        page = await queue.list(state="completed", limit=1000, cursor=cursor)
        delays += [cast("float", job.result) for job in page.jobs]
        cursor = page.cursor
        if cursor is None:
            return delays


async def delay(sent: int) -> float:
    """The handler. The monotonic clock is the same in all processes of a machine."""
    return (time.monotonic_ns() - sent) / 1e6


async def serve(url: str) -> None:
    """The worker process: for each line on standard input the CPU seconds used so far."""
    loop = asyncio.get_running_loop()
    async with tenure.connect(url) as queue:
        worker = tenure.Worker(queue)
        worker.register("delay", delay)
        async with worker.run():
            while await loop.run_in_executor(None, sys.stdin.readline):
                print(time.process_time(), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
