"""What was measured in each round, as medians, ratios, a Markdown table and JSON."""

import os
import platform
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

import tenure

__all__ = ["Figures", "Row", "conditions", "percentile"]


@dataclass(kw_only=True)
class Row:
    """One measurement on one store: a value for each round, and its ratio to the reference."""

    measure: str
    store: str
    durability: str
    unit: str
    values: list[float] = field(default_factory=list[float])
    ratios: list[float] = field(default_factory=list[float])

    def as_json(self) -> dict[str, object]:
        return {
            "measure": self.measure,
            "store": self.store,
            "durability": self.durability,
            "unit": self.unit,
            "rounds": self.values,
            "median": median(self.values),
            "ratios": self.ratios,
            "median_ratio": median(self.ratios) if self.ratios else None,
        }


class Figures:
    """The rows in the order in which they were first measured."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], Row] = {}

    def add(
        self,
        measure: str,
        store: str,
        durability: str,
        unit: str,
        value: float,
        *,
        reference: float | None,
    ) -> None:
        """Add one round. `reference` is in commits/s: a rate is divided by it, a time multiplied.

        None means that the comparison would say nothing.
        """
        row = self._rows.setdefault(
            (measure, store),
            Row(measure=measure, store=store, durability=durability, unit=unit),
        )
        row.values.append(value)
        if reference is not None:
            row.ratios.append(value / 1000 * reference if unit == "ms" else value / reference)

    def rows(self) -> list[Row]:
        """Grouped by store."""
        stores = list(dict.fromkeys(row.store for row in self._rows.values()))
        return sorted(self._rows.values(), key=lambda row: stores.index(row.store))

    def markdown(self) -> Iterator[str]:
        """Lines of a table, ratios first; `median (min-max)` in each cell."""
        yield "| store | durability | measurement | x reference | figure | unit |"
        yield "|---|---|---|---:|---:|---|"
        for row in self.rows():
            yield (
                f"| {row.store} | {row.durability} | {row.measure} | {_spread(row.ratios)} "
                f"| {_spread(row.values)} | {row.unit} |"
            )


def conditions() -> dict[str, object]:
    """What the figures depend on; nothing that names the machine."""
    return {
        "tenure": tenure.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
    }


def percentile(values: list[float], percent: float) -> float:
    """The smallest value that `percent` of all do not exceed."""
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)  # rounded up
    return ordered[max(0, int(rank) - 1)]


def _spread(values: list[float]) -> str:
    if not values:
        return ""
    middle, least, most = _short(median(values)), _short(min(values)), _short(max(values))
    return middle if least == most else f"{middle} ({least}-{most})"


def _short(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
