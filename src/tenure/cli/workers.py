"""`tenure workers`: the workers that are there."""

from collections.abc import Sequence

import click

from tenure.cli.asked import asked, shared
from tenure.cli.families import Family
from tenure.cli.opening import on_store
from tenure.cli.shows import document, table

__all__ = ["workers"]


@click.group("workers", cls=Family)
@shared
def workers() -> None:
    """The workers of the store."""


@workers.command("list")
@shared
def list_workers() -> None:
    """List the workers that are there, as each said of itself when it was last seen."""
    found = on_store(asked(), lambda store, _: store.workers())
    if asked().json:
        document(found)
        return
    columns = (
        *("ID", "NAME", "HOST", "PID", "QUEUES", "RUNNING", "JOBS", "LAST CLAIM", "SEEN"),
        *("VERSION", "PYTHON"),
    )
    rows = [
        (
            each.id,
            each.name,
            each.host,
            str(each.pid),
            ",".join(each.queues),
            f"{each.running}/{each.concurrency}",
            _few(each.jobs),
            each.claimed_at,
            each.seen_at,
            each.version,
            each.python,
        )
        for each in found
    ]
    table(columns, rows, empty="no worker is there")


def _few(jobs: Sequence[str]) -> str | None:
    """The first of the jobs, and how many more there are; --json has more of them."""
    if not jobs:
        return None
    return jobs[0] if len(jobs) == 1 else f"{jobs[0]} +{len(jobs) - 1}"
