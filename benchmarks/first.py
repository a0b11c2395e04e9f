"""The first figures: drain, dispatch, pick-up. Prints a Markdown table and judges nothing.

    make bench ARGS="--jobs 20000 --concurrency 16,64,256 --store sqlite-full,redis-everysec"

Exits with 1 only when a store and the handlers disagree about what was done. How to read the
table is in the README beside this file.
"""

import argparse
import asyncio
import gc
import json
import sys
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

from figures import Figures, conditions, percentile
from pickup import pick_up
from stores import STORES, Mismatch, Place, Store
from throughput import ABREAST, dispatch_abreast, dispatch_in_bulk, dispatch_one_by_one, drain

DISPATCH_ONE_BY_ONE = 2000


class Options(argparse.Namespace):
    """The command line."""

    jobs: int
    concurrency: list[int]
    store: list[Store]
    rounds: int
    samples: int
    idle: float
    folder: str | None
    json: str | None


def options() -> Options:
    parser = argparse.ArgumentParser(description="Measure tenure.", allow_abbrev=False)
    add = parser.add_argument
    add("--jobs", type=_count, default=20_000, help="jobs of each drain and bulk dispatch")
    add("--concurrency", type=_counts, default=[16, 64, 256], help="slots, such as 16,64,256")
    add("--store", type=_stores, default=[*STORES.values()], help=f"of {','.join(STORES)}")
    add("--rounds", type=_count, default=3)
    add("--samples", type=int, default=150, help="pick-ups in each round; 0 leaves them out")
    add("--idle", type=float, default=2.0, help="seconds of idleness measured in each round")
    add("--folder", help="where the store files go, for another disk (default: temporary)")
    add("--json", metavar="FILE", help="write all rounds to this file as well")
    return parser.parse_args(namespace=Options())


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _counts(text: str) -> list[int]:
    return [_count(part) for part in text.split(",")]


def _stores(text: str) -> list[Store]:
    try:
        return [STORES[name] for name in text.split(",")]
    except KeyError as error:
        known = ", ".join(STORES)
        raise argparse.ArgumentTypeError(f"{error} is not one of {known}") from None


class Benchmark:
    """Runs the rounds. Each measurement has a folder, and so a store, of its own."""

    def __init__(self, chosen: Options, figures: Figures) -> None:
        self._chosen = chosen
        self._figures = figures
        self._values: dict[tuple[str, str], float] = {}  # of this round: by measure and unit
        self._references: list[float] = []  # of this round

    def run(self) -> None:
        with ExitStack() as stack:
            places = {store.name: store.open(stack) for store in self._chosen.store}
            for number in range(self._chosen.rounds):
                for store in self._chosen.store:
                    print(f"round {number + 1}, {store.name}", end=" ", file=sys.stderr, flush=True)
                    self._round(store, places[store.name])
                    print(file=sys.stderr)

    def _round(self, store: Store, place: Place) -> None:
        self._values, self._references = {}, []
        jobs, some = self._chosen.jobs, min(self._chosen.jobs, DISPATCH_ONE_BY_ONE)
        for slots in self._chosen.concurrency:
            draining = partial(drain, jobs=jobs, concurrency=slots)
            self._measure(place, f"drain of no-op jobs, concurrency {slots}", draining)
        one_by_one = partial(dispatch_one_by_one, jobs=some)
        self._measure(place, "dispatch, one at a time", one_by_one)
        abreast = partial(dispatch_abreast, jobs=max(jobs, ABREAST))
        self._measure(place, f"dispatch, {ABREAST} at once", abreast)
        self._measure(place, "dispatch_many", partial(dispatch_in_bulk, jobs=jobs))
        if store.shared and self._chosen.samples > 0:
            self._pick_up(place)
        self._refer(place)
        self._close_round(store)

    def _measure(
        self,
        place: Place,
        measure: str,
        measurement: Callable[[str], Coroutine[None, None, float]],
    ) -> None:
        self._refer(place)
        gc.collect()
        with self._folder() as folder:
            self._values[measure, "jobs/s"] = asyncio.run(measurement(place.fresh(Path(folder))))
        self._tick()

    def _pick_up(self, place: Place) -> None:
        chosen = self._chosen
        self._refer(place)
        with self._folder() as folder:
            url = place.fresh(Path(folder))
            measured = asyncio.run(pick_up(url, samples=chosen.samples, idle=chosen.idle))
        for percent in (50, 95, 99):
            measure = f"idle pick-up, another process, p{percent}"
            self._values[measure, "ms"] = percentile(measured.delays, percent)
        if measured.cpu is not None:
            self._values["idle worker, CPU", "%"] = measured.cpu
        self._tick()

    def _refer(self, place: Place) -> None:
        """Measure the reference once more; a disk is not equally fast all the time."""
        with self._folder() as folder:
            self._references.append(place.writes(Path(folder)))

    def _close_round(self, store: Store) -> None:
        reference = median(self._references)
        values = {("reference: one write at a time", "writes/s"): reference, **self._values}
        for (measure, unit), value in values.items():
            self._figures.add(
                *(measure, store.name, store.durability, unit, value),
                reference=None if unit == "%" else reference,
            )

    def _tick(self) -> None:
        print(".", end="", file=sys.stderr, flush=True)

    def _folder(self) -> "tempfile.TemporaryDirectory[str]":
        return tempfile.TemporaryDirectory(prefix="tenure-bench-", dir=self._chosen.folder)


def main() -> int:
    chosen = options()
    figures = Figures()
    try:
        Benchmark(chosen, figures).run()
    except Mismatch as error:
        print(f"\nno figures: {error}", file=sys.stderr)
        return 1
    print(", ".join(f"{name} {value}" for name, value in conditions().items()))
    print(f"{chosen.rounds} rounds, {chosen.jobs:,} jobs; median (min-max)\n")
    print(*figures.markdown(), sep="\n")
    if chosen.json:
        report = {
            "conditions": conditions(),
            "jobs": chosen.jobs,
            "rounds": chosen.rounds,
            "samples": chosen.samples,
            "figures": [row.as_json() for row in figures.rows()],
        }
        Path(chosen.json).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
