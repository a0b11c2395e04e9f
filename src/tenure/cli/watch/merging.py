"""The metrics of all processes of a program as one: what each counts is added up.

A process that has ended stays in the sums, else these would fall, and a counter that falls is read
as one that began anew. Pure: no process is asked here.
"""

from collections.abc import Callable, Iterable, Sequence

from tenure.cli.watch.terms import Family, Sample

__all__ = ["Sums", "counted"]

_ADDED_UP = frozenset({"counter", "histogram"})
# Gauges of which a sum would say nothing; all others are added up.
_LARGEST = frozenset(
    {
        "tenure_queue_oldest_waiting_seconds",
        "tenure_schedules_overdue_seconds",
        "process_max_fds",
        "python_info",
    }
)
_SMALLEST = frozenset({"process_start_time_seconds"})


def counted(families: Iterable[Family]) -> list[Family]:
    """Those that count what has happened, and so outlive their process."""
    return [family for family in families if family.kind in _ADDED_UP]


class Sums:
    """Metrics that are put together, in the order in which they were first seen."""

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}
        self._values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}

    def add(self, families: Iterable[Family]) -> None:
        """Put the metrics of one process in."""
        for family in families:
            self._families.setdefault(family.name, family)
            values = self._values.setdefault(family.name, {})
            join = _joined(family)
            for sample in family.samples:
                # Prometheus reads the order of labels as it likes, a histogram's buckets in theirs.
                key = (sample.name, tuple(sample.labels.items()))
                known = values.get(key)
                values[key] = sample.value if known is None else join(known, sample.value)

    def families(self) -> Sequence[Family]:
        return [
            Family(family.name, family.kind, family.text, _samples(self._values[family.name]))
            for family in self._families.values()
        ]


def _joined(family: Family) -> Callable[[float, float], float]:
    if family.name in _LARGEST:
        return max
    return min if family.name in _SMALLEST else _sum


def _sum(one: float, other: float) -> float:
    return one + other


def _samples(
    values: dict[tuple[str, tuple[tuple[str, str], ...]], float],
) -> Sequence[Sample]:
    return [Sample(name, dict(labels), value) for (name, labels), value in values.items()]
