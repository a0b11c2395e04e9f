"""The rounds: contestants take turns at each measurement (A B C, A B C, ...), on each store.

A contestant that breaks, or whose store and handlers disagree, loses that figure and all later ones
of that store; it is told at the end. Nothing is judged here.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from statistics import median

from benchmarks import measures
from benchmarks.contestants import Contestant, Unavailable, contestants, prepare, version
from benchmarks.cores import cores
from benchmarks.costs import costs
from benchmarks.figures import OURS, REFERENCE, Figures, Row
from benchmarks.measures import Value
from benchmarks.options import Options
from benchmarks.processes import Broken
from benchmarks.raw_limits import raw_limit
from benchmarks.recovery import recovery
from benchmarks.stage import Contest
from benchmarks.steady import steady
from benchmarks.stores import Mismatch, Place

__all__ = ["Suite", "Trouble"]

Measure = Callable[[Contest], Iterable[Value]]


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """Why a contestant has no figures. `wrong`: because its figures would be false."""

    who: str
    store: str
    what: str
    wrong: bool


class Suite:
    """Runs the rounds, and collects figures and troubles."""

    def __init__(self, chosen: Options, figures: Figures) -> None:
        self._chosen = chosen
        self._figures = figures
        self._references: dict[str, list[float]] = {}  # of this round, by store
        self.troubles: list[Trouble] = []
        self.contestants: dict[str, str] = {}  # who takes part, and in which version
        self.versions: dict[str, str] = {}
        self.settings: dict[str, str] = {}

    def run(self) -> None:
        with ExitStack() as stack:
            places = {store.name: store.open(stack) for store in self._chosen.store}
            self.versions |= {
                words[0]: words[1] for words in (p.version.split() for p in places.values())
            }
            contests = [*self._enter(places)]
            for number in range(self._chosen.rounds):
                self._references = {}
                for store in self._chosen.store:
                    self._say(f"\nround {number + 1}, {store.name}")
                    self._round([each for each in contests if each.store is store])
                self._imports(contests)
                self._close()
            if "costs" in self._chosen.only:  # once: its own turns are many
                for contest in contests:
                    self._turn(contest, costs)
                self._figures.close_round({})
            self._say("\n")

    def _enter(self, places: dict[str, Place]) -> Iterator[Contest]:
        known = contestants()
        for name in (OURS, *self._chosen.peers):
            who = known[name]
            stores = [
                store for store in self._chosen.store if {store.kind, store.name} & {*who.stores}
            ]
            if not stores:
                continue
            try:
                python = prepare(who, self._chosen.environments)
            except Unavailable as error:
                self._trouble(who, "all", str(error), wrong=False)
                continue
            self.contestants[who.name] = version(who, python)
            self.settings[who.name] = who.settings
            for store in stores:
                yield Contest(
                    who=who,
                    python=python,
                    store=store,
                    place=places[store.name],
                    options=self._chosen,
                )

    # --- one round on one store -----------------------------------------------------------------

    def _round(self, contests: list[Contest]) -> None:
        for measure in self._measures():
            for contest in contests:
                self._refer(contest)
                self._turn(contest, measure)

    def _measures(self) -> Iterator[Measure]:
        chosen = self._chosen
        draining = "drain" in chosen.only
        for slots in chosen.concurrency:
            if draining:
                yield _draining(chosen, "nothing", slots, 1)
            if "raw" in chosen.only:  # right after the drain that it is compared with
                yield partial(raw_limit, slots=slots)
        if draining:
            for slots in chosen.concurrency:
                yield _draining(chosen, "nap", slots, 1)
            for workers in chosen.processes:
                if workers > 1:
                    yield _draining(chosen, "nothing", chosen.slots, workers)
                    yield _draining(chosen, "nap", chosen.slots, workers)
        for name in ("dispatch", "pickup", "latency", "idle"):
            if name in chosen.only:
                yield getattr(measures, name)
        for measure in (recovery, cores, steady):
            if measure.__name__ in chosen.only:
                yield measure

    def _turn(self, contest: Contest, measure: Measure) -> None:
        if contest.broken:
            return
        store = contest.store
        try:
            for value in measure(contest):
                self._add(store.name, store.durability, value, contest.who.label)
        except (Broken, Mismatch) as error:
            contest.broken = str(error)
            self._fail(contest.who, store.name, error)
        self._say(".")

    def _refer(self, contest: Contest) -> None:
        """Measure the reference once more; a disk is not equally fast all the time."""
        with contest.folder() as folder:
            writes = contest.place.writes(folder)
        self._references.setdefault(contest.store.name, []).append(writes)

    def _imports(self, contests: list[Contest]) -> None:
        """Of each contestant once, whatever its stores."""
        if "imports" not in self._chosen.only:
            return
        for contest in {each.who.name: each for each in contests}.values():
            try:
                for value in measures.imports(contest):
                    self._add("no store", "none", value, contest.who.name)
            except Broken as error:
                self._fail(contest.who, "no store", error)

    def _add(self, store: str, durability: str, value: Value, who: str) -> None:
        row = Row(
            store=store,
            durability=durability,
            measure=value.measure,
            who=value.who or who,
            unit=value.unit,
            compared=value.compared,
        )
        self._figures.add(row, value.value)

    def _close(self) -> None:
        references = {store: median(writes) for store, writes in self._references.items()}
        for store in self._chosen.store:
            if store.name in references:
                value = Value(measure=REFERENCE, value=references[store.name], unit="writes/s")
                self._add(store.name, store.durability, value, "no queue")
        self._figures.close_round(references)

    def _fail(self, who: Contestant, store: str, error: Broken | Mismatch) -> None:
        if isinstance(error, Broken):
            self._say(f"\n{error.printed}")
        self._trouble(who, store, str(error), wrong=isinstance(error, Mismatch))

    def _trouble(self, who: Contestant, store: str, what: str, *, wrong: bool) -> None:
        self.troubles.append(Trouble(who=who.name, store=store, what=what, wrong=wrong))
        self._say(f"\n!!! {who.name} on {store}: {what}\n")

    def _say(self, text: str) -> None:
        print(text, end="", file=sys.stderr, flush=True)


def _draining(chosen: Options, handler: str, slots: int, workers: int) -> Measure:
    def measure(contest: Contest) -> Iterator[Value]:
        # Whose concurrency is not free takes part once.
        if contest.who.slots is None or slots == chosen.slots:
            yield from measures.drain(contest, handler, slots, workers)

    return measure
