"""The exit codes of the command line: the one place that says which error has which.

Never prints anything.
"""

from enum import IntEnum

import click

from tenure.cli.apps import AppError
from tenure.cli.families import Interrupted
from tenure.errors import (
    InvalidConfiguration,
    InvalidJob,
    JobNotFound,
    ScheduleNotFound,
    SchemaMismatch,
    StoreUnavailable,
)

__all__ = ["Exit", "exit_of"]


class Exit(IntEnum):
    """How a command ended, as the exit code of its process."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    NO_APP = 4
    SCHEMA = 5
    NOT_FOUND = 6
    UNHEALTHY = 7
    HANDED_BACK = 8
    INTERRUPTED = 130


def exit_of(error: BaseException) -> Exit:
    """The exit code for an error that ended a command."""
    match error:
        case Interrupted() | KeyboardInterrupt() | click.Abort():
            return Exit.INTERRUPTED
        case click.UsageError() | InvalidConfiguration() | InvalidJob():
            return Exit.USAGE
        case StoreUnavailable():
            return Exit.UNREACHABLE
        case AppError():
            return Exit.NO_APP
        case SchemaMismatch():
            return Exit.SCHEMA
        case JobNotFound() | ScheduleNotFound():
            return Exit.NOT_FOUND
        case _:
            return Exit.FAILED
