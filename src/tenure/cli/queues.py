"""`tenure queues`: list, pause, resume and purge queues."""

from difflib import get_close_matches

import click

from tenure.cli.asked import asked, shared
from tenure.cli.consent import confirmed, with_consent
from tenure.cli.families import Family
from tenure.cli.matching import Filter, matches
from tenure.cli.opening import Patience, on_store
from tenure.cli.progressing import counting
from tenure.cli.shows import amount, document, note, table
from tenure.queue import Queue
from tenure.states import State
from tenure.types import Counts

__all__ = ["COLUMNS", "numbers", "queues"]

COLUMNS = ("PENDING", "SCHEDULED", "BLOCKED", "PROCESSING", "COMPLETED", "FAILED", "CANCELLED")

_PURGED = click.Choice([state.value for state in State if state is not State.PROCESSING])


def numbers(counts: Counts) -> tuple[object, ...]:
    """The counts in the order of `COLUMNS`."""
    over = "+" if counts.capped else ""
    return (
        f"{counts.pending:,}{over}",
        f"{counts.scheduled:,}{over}",
        counts.blocked,
        counts.processing,
        counts.completed,
        counts.failed,
        counts.cancelled,
    )


@click.group("queues", cls=Family)
@shared
def queues() -> None:
    """List, pause, resume and purge queues."""


@queues.command("list")
@shared
def list_queues() -> None:
    """List the queues of the store with the numbers of their jobs."""
    counts = on_store(asked(), lambda store, _: store.counts())
    by_queue = sorted(counts.by_queue.items())
    if asked().json:
        document(
            [{"name": q, "paused": q in counts.paused, "counts": each} for q, each in by_queue]
        )
        return
    rows = [(q, "yes" if q in counts.paused else "no", *numbers(each)) for q, each in by_queue]
    table(("QUEUE", "PAUSED", *COLUMNS), rows, empty="the store has no queue yet")


@queues.command("pause")
@click.argument("queue")
@shared
def pause(queue: str) -> None:
    """Let no worker claim from QUEUE any more; running jobs go on."""
    _switch(queue, paused=True)


@queues.command("resume")
@click.argument("queue")
@shared
def resume(queue: str) -> None:
    """Let workers claim from QUEUE again."""
    _switch(queue, paused=False)


def _switch(queue: str, *, paused: bool) -> None:
    async def work(store: Queue, _: Patience) -> Counts:
        before = await store.counts()
        await (store.pause(queue) if paused else store.resume(queue))
        return before

    before = on_store(asked(), work)
    if queue not in before.by_queue:
        near = get_close_matches(queue, before.by_queue, n=1)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        note(f"note: the store has had no jobs in the queue {queue!r} yet{meant}")
    if asked().json:
        document({"queue": queue, "paused": paused})
    else:
        note(f"{queue} is {'paused' if paused else 'not paused'} now")


@queues.command("purge")
@click.argument("queue")
@click.option("--state", type=_PURGED, required=True, help="Which of its jobs.")
@with_consent
@shared
def purge(queue: str, state: str, yes: bool) -> None:
    """Delete the jobs of QUEUE that are in one state.

    It asks first.
    """
    which = Filter(state, queue, None)
    number, more = on_store(
        asked(), lambda store, patience: matches(store, patience, which, (State(state),))
    )
    if number:
        about = "more than " if more else ""
        confirmed(f"{about}{amount(number)} of {queue} ({state}) will be deleted", yes=yes)

    async def work(store: Queue, patience: Patience) -> int:
        with counting("jobs") as told:

            def step(done: int) -> None:
                patience.renew()
                told(done)

            return await store.purge(queue, state=state, progress=step)

    deleted = on_store(asked(), work) if number else 0
    if asked().json:
        document({"deleted": deleted})
    else:
        note(f"{amount(deleted)} deleted")
