"""`tenure stats`: how many jobs are where."""

import asyncio

import click

from tenure.cli.asked import asked, shared
from tenure.cli.opening import Patience, on_store
from tenure.cli.queues import COLUMNS, numbers
from tenure.cli.shows import document, table
from tenure.driver import Capability
from tenure.queue import Queue
from tenure.types import Counts

__all__ = ["stats"]


@click.command("stats")
@shared
def stats() -> None:
    """Count the jobs by state, in all and by queue, and the workers."""

    async def look(store: Queue, _: Patience) -> tuple[Counts, int | None]:
        counts = store.counts()
        if Capability.PRESENCE not in store.capabilities:
            return await counts, None
        found, workers = await asyncio.gather(counts, store.workers())
        return found, len(workers)

    counts, workers = on_store(asked(), look)
    if asked().json:
        document({"counts": counts, "workers": workers})
        return
    rows = [("(all)", *numbers(counts))]
    rows += [
        (f"{name}{' (paused)' if name in counts.paused else ''}", *numbers(each))
        for name, each in sorted(counts.by_queue.items())
    ]
    table(("QUEUE", *COLUMNS), rows, empty="")
    if workers is not None:
        click.echo(f"\nworkers: {workers}")
