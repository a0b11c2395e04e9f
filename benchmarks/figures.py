"""What was measured in each round, as medians, ratios, a Markdown table and JSON."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

__all__ = ["OURS", "REFERENCE", "Figures", "Row", "Unit", "percentile"]

Unit = Literal["jobs/s", "writes/s", "ms", "us", "%", "MiB", "1/s", "x"]

OURS = "tenure"
REFERENCE = "reference: one write at a time"
_RATES: tuple[Unit, ...] = ("jobs/s", "writes/s")
_TIMES: dict[Unit, float] = {"ms": 1e3, "us": 1e6}


@dataclass(kw_only=True)
class Row:
    """One measurement of one contestant on one store, round by round.

    `ratios` are to the reference of the same round. `against` says how many times better tenure was
    in the same round: more per second, or less of anything else; only where `compared`. Either may
    be empty.
    """

    store: str
    durability: str
    measure: str
    who: str
    unit: Unit
    compared: bool = True
    values: list[float] = field(default_factory=list[float])
    ratios: list[float] = field(default_factory=list[float])
    against: list[float] = field(default_factory=list[float])

    def as_json(self) -> dict[str, object]:
        return {
            "store": self.store,
            "durability": self.durability,
            "measure": self.measure,
            "who": self.who,
            "unit": self.unit,
            "rounds": self.values,
            "median": median(self.values),
            "ratios": self.ratios,
            "median_ratio": median(self.ratios) if self.ratios else None,
            "tenure_against": self.against,
            "median_tenure_against": median(self.against) if self.against else None,
        }


class Figures:
    """The rows in the order in which they were first measured; rounds are added one by one."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, str], Row] = {}
        self._round: dict[tuple[str, str, str], float] = {}

    def add(self, row: Row, value: float) -> None:
        """Add what one contestant did in the current round; `row` is used where it is the first."""
        key = (row.store, row.measure, row.who)
        self._rows.setdefault(key, row).values.append(value)
        self._round[key] = value

    def close_round(self, references: dict[str, float]) -> None:
        """End the current round, in which the reference of each store made so many writes/s."""
        for key, value in self._round.items():
            store, measure, who = key
            row = self._rows[key]
            reference = references.get(store)
            if reference is not None and row.unit in _RATES:
                row.ratios.append(value / reference)
            elif reference is not None and row.unit == "ms":
                row.ratios.append(value / _TIMES["ms"] * reference)
            ours = self._round.get((store, measure, OURS))
            if row.compared and ours and value and who != OURS:
                row.against.append(ours / value if row.unit in _RATES else value / ours)
        self._round = {}

    def rows(self) -> list[Row]:
        """Grouped by store, then by measurement, the reference first."""
        rows = list(self._rows.values())
        stores = list(dict.fromkeys(row.store for row in rows))
        measures = list(dict.fromkeys([REFERENCE, *(row.measure for row in rows)]))
        return sorted(rows, key=lambda row: (stores.index(row.store), measures.index(row.measure)))

    def markdown(self) -> Iterator[str]:
        """Lines of tables, one for each store; `median (min-max)` in each cell."""
        store = ""
        compared = any(row.against for row in self._rows.values())
        for row in self.rows():
            if row.store != store:
                store = row.store
                yield from ("", f"**{store}**, durability {row.durability}", "")
                yield from _head(compared)
            cells = [row.measure, row.who, _spread(row.values), row.unit, _spread(row.ratios)]
            yield f"| {' | '.join([*cells, _spread(row.against)] if compared else cells)} |"


def _head(compared: bool) -> tuple[str, str]:
    names = ["measurement", "who", "figure", "unit", "x reference"]
    marks = ["---", "---", "---:", "---", "---:"]
    if compared:
        names, marks = [*names, "tenure against it"], [*marks, "---:"]
    return f"| {' | '.join(names)} |", f"|{'|'.join(marks)}|"


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
