"""Asks before something is destroyed; where nobody can be asked, it takes `--yes`."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from tenure.cli.complaints import Complaint
from tenure.cli.exits import Exit
from tenure.cli.shows import note

__all__ = ["confirmed", "with_consent"]

F = TypeVar("F", bound=Callable[..., Any])


def with_consent(command: F) -> F:
    """Give a command the option `--yes`."""
    return click.option("--yes", "-y", is_flag=True, help="Do not ask.")(command)


def confirmed(what: str, *, yes: bool) -> None:
    """Say what is about to happen; return only if it may. Raises `Complaint` otherwise."""
    note(what)
    if yes:
        return
    if not sys.stdin.isatty():
        remedy = "add --yes to do it without being asked"
        raise Complaint("not confirmed, so nothing was done", remedy, Exit.USAGE)
    if not click.confirm("Go on?", err=True):
        raise Complaint("nothing was done", "answer y, or add --yes, to do it", Exit.FAILED)
