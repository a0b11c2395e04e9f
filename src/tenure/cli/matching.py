"""Which jobs a command is about: those named by id, or all that match a filter."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from tenure.cli.opening import Patience
from tenure.queue import Queue
from tenure.states import State

__all__ = ["STATE", "Filter", "filtered", "matches"]

F = TypeVar("F", bound=Callable[..., Any])

STATE = click.Choice([state.value for state in State])

_PAGE = 500
_MOST = 100_000


class Filter:
    """State, queue and name, each of which restricts when it is given."""

    def __init__(self, state: str | None, queue: str | None, name: str | None) -> None:
        self.state = state
        self.queue = queue
        self.name = name

    @property
    def given(self) -> bool:
        return not (self.state is None and self.queue is None and self.name is None)


def filtered(command: F) -> F:
    """Give a command the options of a filter."""
    for option in (
        click.option("--name", metavar="NAME", help="Only jobs of this name."),
        click.option("--queue", metavar="QUEUE", help="Only jobs of this queue."),
        click.option("--state", type=STATE, help="Only jobs in this state."),
    ):
        command = option(command)
    return command


async def matches(
    queue: Queue, patience: Patience, which: Filter, states: Sequence[State]
) -> tuple[int, bool]:
    """How many jobs of these states match, and whether there are more than were counted."""
    number = 0
    cursor: str | None = None
    while True:
        page = await queue.list(
            state=which.state, queue=which.queue, name=which.name, limit=_PAGE, cursor=cursor
        )
        patience.renew()
        number += sum(job.state in states for job in page.jobs)
        cursor = page.cursor
        if cursor is None or number >= _MOST:
            return number, cursor is not None
