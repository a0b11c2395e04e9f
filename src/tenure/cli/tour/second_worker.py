"""A worker process that the tour starts in order to kill it.

Run as `python -m tenure.cli.tour.second_worker URL QUEUE LEASE`.
"""

import asyncio
import sys

from tenure.cli.tour import handlers
from tenure.queue import connect
from tenure.worker import Worker


async def main(url: str, queue_name: str, lease: float) -> None:
    async with connect(url) as queue:
        worker = Worker(queue, queues=[queue_name], concurrency=1, lease=lease)
        worker.register("killed-worker", handlers.survive)
        async with worker.run() as handle:
            await handle.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
