"""An error as the command line tells it: one line of cause, one line of remedy.

The one place that writes errors. A traceback is shown only when it was asked for.
"""

import traceback

import click

from tenure.cli.apps import AppError
from tenure.cli.asked import Asked
from tenure.cli.exits import Exit, exit_of
from tenure.cli.opening import NoStore
from tenure.cli.shows import one_line
from tenure.errors import (
    DuplicateJob,
    InvalidConfiguration,
    InvalidJob,
    JobNotFound,
    QueueError,
    ScheduleNotFound,
    SchemaMismatch,
    StoreUnavailable,
    Unsupported,
)

__all__ = ["Complaint", "complain"]


class Complaint(Exception):
    """What a command found wrong by itself: why, what to do, and the exit code for it."""

    def __init__(self, cause: str, remedy: str, code: Exit) -> None:
        super().__init__(cause)
        self.cause = cause
        self.remedy = remedy
        self.code = code


def complain(error: BaseException, asked: Asked) -> Exit:
    """Write two lines to standard error; the exit code."""
    if asked.debug:
        click.echo("".join(traceback.format_exception(error)).rstrip(), err=True)
    if isinstance(error, Complaint):
        _write(error.cause, error.remedy)
        return error.code
    if exit_of(error) is Exit.INTERRUPTED:
        _write("interrupted", "what was done stands; look before you run it again")
        return Exit.INTERRUPTED
    cause = error.format_message() if isinstance(error, click.ClickException) else str(error)
    _write(cause or type(error).__name__, _remedy(error, asked))
    return exit_of(error)


def _write(cause: str, remedy: str) -> None:
    click.echo(f"error: {one_line(cause)}", err=True)
    click.echo(f"hint:  {one_line(remedy)}", err=True)


def _remedy(error: BaseException, asked: Asked) -> str:
    match error:
        case click.UsageError(ctx=None):
            return "`tenure --help` lists the commands"
        case click.UsageError(ctx=context):
            assert context is not None
            return f"`{context.command_path} --help` says what it takes"
        case AppError():
            return error.remedy
        case NoStore():
            make = asked.command("schema migrate")
            return f"correct the address, {asked.shown()}, or make a store there with `{make}`"
        case StoreUnavailable():
            return _reach(error, asked)
        case SchemaMismatch() if asked.on_redis and error.found < error.expected:
            return "use another namespace, or drain this one with the tenure that made it"
        case SchemaMismatch() if error.found < error.expected:
            return f"run `{asked.command('schema migrate')}` when no older tenure uses the store"
        case SchemaMismatch():
            return "upgrade tenure in this environment: `pip install --upgrade tenure`"
        case JobNotFound():
            return f"`{asked.command('jobs list')}` lists those there are"
        case ScheduleNotFound():
            return f"`{asked.command('schedules list')}` lists those there are"
        case DuplicateJob():
            return "leave --id out to get a fresh one"
        case Unsupported():
            return "use another store for it: SQLite, Redis and PostgreSQL can do all of it"
        case InvalidConfiguration() | InvalidJob():
            return "correct the value and run it again"
        case QueueError() if asked.debug:
            return "the traceback above says where it comes from"
        case _:
            return "run it again with --debug to see where it comes from"


def _reach(error: StoreUnavailable, asked: Asked) -> str:
    where = f"check that the store is up and reachable: {asked.shown()}"
    unsure = "; the last step may have been done: look before you repeat it"
    return f"{where}{unsure if error.ambiguous else ''}"
