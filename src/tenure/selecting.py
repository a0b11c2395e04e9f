"""Which jobs a caller means by state, queue and name: checked before the store is asked. Pure."""

from tenure.errors import InvalidConfiguration
from tenure.intake import check_name
from tenure.states import State
from tenure.types import JobFilter

__all__ = ["check_state", "selected"]


def selected(state: State | str | None, queue: str | None, name: str | None) -> JobFilter:
    """The filter for these; what is None does not restrict."""
    return JobFilter(
        state=None if state is None else check_state(state),
        queue=None if queue is None else check_name("queue", queue),
        name=None if name is None else check_name("name", name),
    )


def check_state(state: object, allowed: frozenset[State] = frozenset(State)) -> State:
    """One of the allowed states, also by its word. Raises `InvalidConfiguration`."""
    if isinstance(state, str) and state in allowed:
        return State(state)
    rule = f"must be one of {', '.join(each for each in State if each in allowed)}"
    raise InvalidConfiguration("state", state, rule)
