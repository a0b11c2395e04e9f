"""A worker process: `python -m chaos.worker NAME LEDGER URL CONCURRENCY LEASE`.

It notes each start of a handler, and all that its worker tells it, and runs until its stdin closes.
"""

import asyncio
import logging
import sys

import tenure
from chaos.ledger import Ledger

__all__ = ["JOB", "SECONDS"]

JOB = "short"
SECONDS = 0.005


async def main(name: str, ledger: Ledger, url: str, concurrency: int, lease: float) -> None:
    async def short(payload: int, job: tenure.RunningJob) -> list[str | int]:
        ledger.note("started", job.id, job.attempt)
        await asyncio.sleep(SECONDS)
        return [name, job.attempt]  # the store itself shows whose completion it has taken

    def observe(event: tenure.Event) -> None:
        match event:
            case tenure.JobSettled(job=job, attempt=attempt, outcome=outcome):
                ledger.note("settled", job.id, attempt, type(outcome).__name__)
            case tenure.JobsReclaimed(job_ids=ids):
                for job_id in ids:
                    ledger.note("reclaimed", job_id)
            case tenure.ErrorReported(error=error):
                job_id = getattr(error, "job_id", None) or ""
                ledger.note("error", job_id, text=f"{type(error).__name__}: {error}")
            case _:
                pass

    # Errors come through the observer; stderr is left for what should not happen.
    logging.getLogger("tenure").addHandler(logging.NullHandler())
    closed = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), closed.set)
    async with tenure.connect(url) as queue:
        worker = tenure.Worker(queue, concurrency=concurrency, lease=lease, observers=[observe])
        worker.register(JOB, short)
        async with worker.run():
            ledger.note("ready")
            await closed.wait()


if __name__ == "__main__":
    asyncio.run(
        main(sys.argv[1], Ledger(sys.argv[2]), sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
    )
