"""`tenure prune`: delete finished jobs beyond their retention, as workers do by themselves."""

import click

from tenure.cli.asked import asked, shared
from tenure.cli.consent import confirmed, with_consent
from tenure.cli.opening import Patience, on_store
from tenure.cli.progressing import counting
from tenure.cli.shows import amount, document, note
from tenure.cli.values import age
from tenure.queue import Queue
from tenure.types import Counts, Retention

__all__ = ["prune"]

_STEP = 500
_FIRST = Retention()


@click.command("prune")
@click.option(
    "--completed", type=age, metavar="AGE", default="24h", show_default=True, help="Keep so long."
)
@click.option(
    "--failed", type=age, metavar="AGE", default="14d", show_default=True, help="Keep so long."
)
@click.option(
    "--cancelled", type=age, metavar="AGE", default="14d", show_default=True, help="Keep so long."
)
@click.option(
    "--completed-count",
    type=click.IntRange(0),
    default=_FIRST.completed_count,
    show_default=True,
    help="Keep the newest so many of each queue.",
)
@with_consent
@shared
def prune(
    completed: float | None,
    failed: float | None,
    cancelled: float | None,
    completed_count: int,
    yes: bool,
) -> None:
    """Delete finished jobs that are older than this; `never` deletes none of a state for its age.

    It asks first. What ended within the last minute is kept in any case.
    """
    retention = Retention(
        completed=completed,
        completed_count=completed_count,
        failed=failed,
        cancelled=cancelled,
    )
    counts = on_store(asked(), lambda store, _: store.counts())
    finished = _finished(counts)
    if finished:
        confirmed(
            f"of {amount(finished, 'finished job')} those beyond their retention will be deleted",
            yes=yes,
        )
    deleted = on_store(asked(), lambda store, patience: _prune(store, patience, retention))
    if asked().json:
        document({"deleted": deleted})
    else:
        note(f"{amount(deleted)} deleted")


def _finished(counts: Counts) -> int:
    return counts.completed + counts.failed + counts.cancelled


async def _prune(store: Queue, patience: Patience, retention: Retention) -> int:
    driver = await store.driver()
    deleted = 0
    with counting("jobs") as told:
        while True:
            step = await driver.prune(retention, _STEP)
            patience.renew()
            deleted += step
            told(deleted)
            if step < _STEP:
                return deleted
