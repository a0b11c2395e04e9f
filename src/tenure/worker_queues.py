"""The options of a worker that say which queues it serves, checked. Pure."""

import math
from collections.abc import Iterable, Mapping
from typing import cast

from tenure._runtime.settings import ServedQueue
from tenure.errors import InvalidConfiguration, InvalidJob
from tenure.handlers import nearest
from tenure.intake import check_name, whole
from tenure.shown import shown

__all__ = ["checked_name", "listed", "served", "still_served"]


def checked_name(option: str, value: object) -> str:
    """A name as a job could have it. Raises `InvalidConfiguration` naming the option."""
    try:
        return check_name(option, value)
    except InvalidJob as error:
        raise InvalidConfiguration(option, value, error.rule) from None


def listed(given: object) -> tuple[object, ...]:
    """What was given as a list; nothing where it is none."""
    try:
        return tuple(cast("Iterable[object]", given))
    except TypeError:
        return ()


def served(queues: object, slots: object) -> tuple[ServedQueue, ...]:
    """The queues with their weights and bounds, in the order in which they were given."""
    weights = _weights(queues)
    bounds = _bounds(slots, weights)
    return tuple(
        ServedQueue(name=name, weight=weight, slots=bounds.get(name))
        for name, weight in weights.items()
    )


def still_served(before: tuple[ServedQueue, ...], queues: object) -> tuple[ServedQueue, ...]:
    """Other queues for the same worker: those that it serves already keep their slots."""
    slots = {queue.name: queue.slots for queue in before}
    return tuple(
        ServedQueue(name=name, weight=weight, slots=slots.get(name))
        for name, weight in _weights(queues).items()
    )


def _weights(queues: object) -> dict[str, float]:
    refused = queues
    if isinstance(queues, Mapping):
        given = cast("Mapping[object, object]", queues)
        weights = {
            checked_name("queues", name): _weight(name, value) for name, value in given.items()
        }
    else:
        names = () if isinstance(queues, str) else listed(queues)
        weights = {checked_name("queues", name): 1.0 for name in names}
        if len(weights) != len(names):
            weights.clear()
    if not weights:
        rule = (
            "must be a list of different queue names, such as ['default'], or map names to weights"
        )
        raise InvalidConfiguration("queues", refused, rule)
    return weights


def _weight(name: object, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        rule = "must be a weight greater than 0"
        raise InvalidConfiguration(f"queues[{shown(name)}]", value, rule)
    return float(value)


def _bounds(slots: object, queues: Mapping[str, float]) -> dict[str, int]:
    if slots is None:
        return {}
    if not isinstance(slots, Mapping):
        raise InvalidConfiguration("slots", slots, "must map queue names to numbers of slots")
    bounds: dict[str, int] = {}
    for name, bound in cast("Mapping[object, object]", slots).items():
        if not isinstance(name, str) or name not in queues:
            rule = f"must name queues that are served ({', '.join(queues)})"
            raise InvalidConfiguration("slots", name, f"{rule}{nearest(str(name), queues)}")
        bounds[name] = whole(f"slots[{name!r}]", bound, 1, 100_000)
    return bounds
