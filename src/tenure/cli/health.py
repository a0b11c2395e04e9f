"""`tenure health`: one look, for a supervisor or a probe, at whether jobs are being run."""

import asyncio
from collections.abc import Sequence

import click

from tenure.cli.asked import asked, shared
from tenure.cli.complaints import Complaint
from tenure.cli.exits import Exit
from tenure.cli.opening import Patience, on_store
from tenure.cli.shows import amount, document, note
from tenure.driver import Capability
from tenure.presence import WorkerInfo
from tenure.queue import Queue
from tenure.types import Counts

__all__ = ["health"]


@click.command("health")
@click.option(
    "--workers", "least", type=click.IntRange(0), default=0, help="How many there must be at least."
)
@shared
def health(least: int) -> None:
    """Say whether the store answers, and whether each queue with due jobs is served.

    Exit code 7 where it is not, 3 where the store does not answer.
    """

    async def look(store: Queue, _: Patience) -> tuple[Counts, Sequence[WorkerInfo] | None]:
        if Capability.PRESENCE not in store.capabilities:
            return await store.counts(), None
        counts, workers = await asyncio.gather(store.counts(), store.workers())
        return counts, workers

    counts, workers = on_store(asked(), look)
    wrong = _wrong(counts, workers, least)
    if asked().json:
        document({"healthy": not wrong, "problems": wrong})
    elif not wrong:
        note("healthy")
    if wrong:
        raise Complaint(
            "; ".join(wrong), "start a worker for it: `tenure worker APP`", Exit.UNHEALTHY
        )


def _wrong(counts: Counts, workers: Sequence[WorkerInfo] | None, least: int) -> list[str]:
    if workers is None:
        return []
    served = {name for worker in workers for name in worker.queues}
    wrong = [
        f"{amount(each.pending)} of the queue {name} are due, and no worker serves it"
        for name, each in sorted(counts.by_queue.items())
        if each.pending and name not in counts.paused and name not in served
    ]
    if len(workers) < least:
        wrong.append(f"there must be {amount(least, 'worker')}, and there are {len(workers)}")
    return wrong
