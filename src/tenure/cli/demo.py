"""`tenure demo`: the tour, on a file that is gone afterwards."""

import sys
import tempfile
from pathlib import Path

import click

from tenure.cli.asked import asked, shared
from tenure.cli.complaints import Complaint
from tenure.cli.exits import Exit
from tenure.cli.shows import document

__all__ = ["demo"]


@click.command("demo")
@shared
def demo() -> None:
    """Show real jobs and accidents on a temporary SQLite file.

    Some 1,800 jobs, of which some fail, hang, are cancelled, or lose their worker; fails when one
    is not accounted for.
    """
    told = asked()
    if told.given is not None:
        raise click.UsageError("the demo has a store of its own, so --url has no place here")
    import sqlite3

    from tenure.cli.tour.screen import Screen
    from tenure.cli.tour.tour import taken

    screen = Screen(sys.stderr if told.json else sys.stdout)
    with tempfile.TemporaryDirectory(prefix="tenure-demo-") as folder:
        description = f"SQLite {sqlite3.sqlite_version} (synchronous=FULL)"
        account = taken(screen, f"sqlite:///{Path(folder) / 'jobs.db'}", description)
    if told.json:
        document(account)
    if account.problems:
        remedy = "what is shown above says which; please report it"
        raise Complaint("jobs are not accounted for", remedy, Exit.FAILED)
