"""A process that cancels and retries jobs at random: `python -m chaos.meddler NAME LEDGER URL`.

It notes each job before it asks, and what the store answered. It runs until its stdin closes, and
neither dispatches nor runs a job.
"""

import asyncio
import logging
import random
import sys
from contextlib import suppress

import tenure
from chaos.ledger import Ledger
from chaos.opening import opened

__all__: list[str] = []

PAUSE = 0.15


async def meddle(queue: tenure.Queue, ledger: Ledger) -> None:
    """Cancel a job that waits or runs, or retry one that has failed."""
    if random.random() < 0.3:
        page = await queue.list(state="failed", name="failing", limit=20)
        verb = "retry"
    else:
        page = await queue.list(state=random.choice(("pending", "processing")), limit=50)
        verb = "cancel"
    if page.jobs:
        job_id = random.choice(page.jobs).id
        ledger.note(f"{verb} tried", job_id)
        answer = await (queue.retry(job_id) if verb == "retry" else queue.cancel(job_id))
        ledger.note(f"{verb} {answer}", job_id)


async def main(ledger: Ledger, url: str) -> None:
    closed = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), closed.set)
    async with await opened(url) as queue:
        ledger.note("ready")
        while not closed.is_set():
            # It may then have been done or not; the checker knows that it was tried.
            with suppress(tenure.StoreError):
                await meddle(queue, ledger)
            await asyncio.sleep(PAUSE)


if __name__ == "__main__":
    logging.getLogger("tenure").addHandler(logging.NullHandler())
    asyncio.run(main(Ledger(sys.argv[2], sys.argv[1]), sys.argv[3]))
