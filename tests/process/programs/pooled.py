"""A worker with processes, of which a test sees how they end with it.

Arguments: the start method, the handler, its payload, and how the program ends.
"""

import asyncio
import os
import sys
from pathlib import Path

import tenure
from tests.process import pool_handlers
from tests.process.waiting import wait_until


def written(path: str) -> str:
    return Path(path).read_text()


async def main(method: str, handler: str, payload: str, end: str) -> None:
    async with tenure.connect("memory://") as queue:
        pool = tenure.ProcessPool(size=2, start_method=method)
        worker = tenure.Worker(queue, process_pool=pool)
        worker.register("pid", pool_handlers.pid, executor="process")
        worker.register("work", getattr(pool_handlers, handler), executor="process")
        handle = worker.run()
        await queue.dispatch("work", payload)
        await asyncio.to_thread(wait_until, Path(payload).exists, lambda: "it does not begin")
        other = await queue.dispatch("pid")
        idle = await other.result(timeout=30.0)
        sys.stdout.write(f"{os.getpid()} {written(payload)} {idle}\n")
        sys.stdout.flush()
        if end == "leave":  # without a word, as a program does that has failed
            sys.exit(3)
        await handle.wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
