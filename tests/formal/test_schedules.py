"""Schedules, searched through: an instant fires once, and without a rule it does not (I13)."""

from pathlib import Path

import pytest

from tests.formal.checker import Bounds, search

BOUNDS = {
    "every fault": Bounds(flags=("LAST=2",), least=150_000),
    "three hours": Bounds(flags=("STRAYS=0",), least=100_000),
    "three workers": Bounds(flags=("WORKERS=3", "LAST=2", "STRAYS=0", "PAUSES=0"), least=80_000),
    "the clock set back": Bounds(flags=("STEPS=1", "LAST=2", "STRAYS=0"), least=100_000),
    "in the end": Bounds(flags=("LAST=2", "STRAYS=0"), least=80_000, lives=True),
}

# the rule that is missing: the bounds, and the guarantee that breaks
BROKEN = {
    "FIRE_COMPARES_NOT": ("every fault", "I13_an_instant_fires_once"),
    "FIRE_LOOKS_AT_NO_REVISION": ("every fault", "I13_an_old_revision_fires_nothing"),
    "FIRE_IN_A_PAUSE": ("every fault", "I13_a_pause_fires_nothing"),
    "FIRE_EARLY": ("every fault", "I13_nothing_fires_early"),
    "JOB_FIRST": ("every fault", "I13_an_instant_fires_once"),
    "TICK_FIRST": ("in the end", "I13_each_due_instant_fires"),
    "PUT_ALWAYS_RENEWS": ("in the end", "I13_each_due_instant_fires"),
}


@pytest.mark.parametrize("bounds", BOUNDS)
def test_an_instant_fires_once_and_in_the_end(bounds: str, tmp_path: Path) -> None:
    searched = search("schedules", BOUNDS[bounds], tmp_path)
    assert searched.broken is None, searched.explain()
    assert searched.exhausted, searched.output
    assert searched.states >= BOUNDS[bounds].least


@pytest.mark.parametrize("rule", BROKEN)
def test_without_a_rule_its_guarantee_breaks(rule: str, tmp_path: Path) -> None:
    bounds, guarantee = BROKEN[rule]
    searched = search("schedules", BOUNDS[bounds], tmp_path, f"BAD_{rule}")
    assert searched.broken == guarantee, searched.explain()
