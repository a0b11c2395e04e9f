"""A worker process that the demo starts in order to kill it: `second_worker.py URL QUEUE LEASE`."""

import asyncio
import sys

import handlers

import tenure


async def main(url: str, queue_name: str, lease: float) -> None:
    async with tenure.connect(url) as queue:
        worker = tenure.Worker(queue, queues=[queue_name], concurrency=1, lease=lease)
        worker.register("killed-worker", handlers.survive)
        async with worker.run() as handle:
            await handle.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
