"""`tenure dev APP`: a worker that is replaced when the code changes. Runs no job itself."""

import logging
import sys
import traceback
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from tenure._processes.supervisor import Supervisor
from tenure._processes.terms import ChildSettings
from tenure.cli.apps import AppError, parts_of
from tenure.cli.asked import asked, shared
from tenure.cli.changes import Changes
from tenure.cli.child import ChildApp
from tenure.cli.logs import log_to_stderr
from tenure.cli.values import duration
from tenure.clock import SystemClock
from tenure.worker import Worker

__all__ = ["dev"]

_DRAIN = "5s"

_logger = logging.getLogger("tenure.cli")


@click.command("dev")
@click.argument("app")
@click.option("--concurrency", type=click.IntRange(1, 100_000), help="Slots of the worker.")
@click.option("--queues", metavar="A,B", help="The queues to serve, instead of the app's.")
@click.option(
    "--drain-timeout",
    type=duration,
    default=_DRAIN,
    show_default=True,
    metavar="DURATION",
    help="For jobs that run when the code changes, or at the end.",
)
@shared
def dev(app: str, concurrency: int | None, queues: str | None, drain_timeout: float) -> int:
    """Run the worker of APP, with its schedules, and replace it when the code changes.

    Watches the Python files below the working directory. Running jobs may finish, others are put
    back; code that does not load is shown, and the next change is waited for. Ctrl-C ends it.
    """
    told = asked()
    told.refuse_url()
    parts_of(app)
    form = "json" if told.json else "short"
    log_to_stderr(form, debug=told.debug)
    logging.getLogger("watchfiles").setLevel(logging.WARNING)  # it counts changes
    child = ChildApp(
        app,
        concurrency=concurrency,
        queues=None if queues is None else tuple(queues.split(",")),
        max_jobs=None,
        max_memory=None,
        log_format=form,
        debug=told.debug,
        counts=False,
    )
    settings = ChildSettings(drain=drain_timeout, replace_unhealthy=60.0, started=child.started)
    folder = Path.cwd()
    with Changes(folder, SystemClock()) as changes:
        how = " by looking at them (watchfiles would tell at once)" if changes.by_looking else ""
        _logger.info("watching the Python files below %s%s", folder, how)
        _logger.info(
            "at a change running jobs have %g s, then fresh code takes over", drain_timeout
        )
        return int(Supervisor(_FreshApp(child), 1, settings, renewal=changes).run())


@dataclass(frozen=True, slots=True)
class _FreshApp:
    """The app as its files are now: without compiled ones, and with what is wrong where it is."""

    child: ChildApp

    def __call__(self) -> Worker | Awaitable[Worker]:
        # Two changes in a second that leave the size of a file as it was would not be told apart.
        sys.dont_write_bytecode = True
        try:
            return self.child()
        except AppError as error:
            where = "".join(f"\n  {line}" for line in _where(error))
            raise AppError(f"{error}{where}", error.remedy) from error


def _where(error: AppError) -> Iterator[str]:
    """The place in the program itself that raised, with its line."""
    cause = error.__cause__
    if isinstance(cause, SyntaxError) and cause.filename is not None:
        yield f"{_short(cause.filename)}, line {cause.lineno}: {(cause.text or '').strip()}"
    elif cause is not None:
        own = [
            frame
            for frame in traceback.extract_tb(cause.__traceback__)
            if Path(frame.filename).is_relative_to(Path.cwd())
        ]
        for frame in own[-1:]:
            yield f"{_short(frame.filename)}, line {frame.lineno}: {frame.line or ''}"


def _short(name: str) -> str:
    path = Path(name)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else name
