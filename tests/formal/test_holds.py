"""The token protocol, searched through: no guarantee breaks, and each does without its rule.

`BOUNDS` says how many faults of which kind a search combines. A broken variant is searched within
the same bounds in which the protocol as it is passes, so that nothing but the rule that it lacks
makes the difference.
"""

from pathlib import Path

import pytest

from tests.formal.checker import Bounds, search

BOUNDS = {
    "a crash, a loss and a stray": Bounds(flags=("PROMPT",), least=500_000),
    "a suspension and a loss": Bounds(
        flags=("PROMPT", "SLEEPS=1", "CRASHES=0", "STRAYS=0"), least=100_000
    ),
    "a suspension and a stray": Bounds(
        flags=("PROMPT", "SLEEPS=1", "CRASHES=0", "LOSSES=0"), least=300_000
    ),
    "a crash and two losses": Bounds(flags=("PROMPT", "LOSSES=2", "STRAYS=0"), least=100_000),
    "two crashes": Bounds(
        flags=("PROMPT", "CRASHES=2", "MAX_ATTEMPTS=3", "LOSSES=0", "STRAYS=0"), least=50_000
    ),
    "the clock set, and a loss": Bounds(
        flags=("PROMPT", "STEPS=1", "CRASHES=0", "STRAYS=0"), least=150_000
    ),
    "the clock set, and noticed": Bounds(
        flags=("PROMPT", "WARY", "STEPS=1", "CRASHES=0", "LOSSES=0", "STRAYS=0"), least=50_000
    ),
    "two jobs and a loss": Bounds(
        flags=("PROMPT", "JOBS=2", "CRASHES=0", "STRAYS=0"), least=150_000
    ),
    "three workers and a crash": Bounds(
        flags=("PROMPT", "WORKERS=3", "LOSSES=0", "STRAYS=0"), least=200_000
    ),
    "every step slow, and a crash": Bounds(
        flags=("CLAIMS=2", "LOSSES=0", "STRAYS=0"), least=300_000
    ),
    "in the end, with a crash and a loss": Bounds(
        flags=("PROMPT", "STRAYS=0"), least=50_000, lives=True
    ),
    "in the end, with a suspension": Bounds(
        flags=("PROMPT", "SLEEPS=1", "CRASHES=0", "LOSSES=0", "STRAYS=0"), least=30_000, lives=True
    ),
}

_ALL, _SLOW, _JOBS = "a crash, a loss and a stray", "a suspension and a loss", "two jobs and a loss"

# the rule that is missing: the bounds, and the guarantee that breaks
BROKEN = {
    "RECORD_IS_NOT_FENCED": (_SLOW, "I3_other_holds_change_nothing"),
    "EXTEND_REVIVES": (_SLOW, "I3_other_holds_change_nothing"),
    "RECLAIM_KEEPS_HOLD": (_SLOW, "I3_other_holds_change_nothing"),
    "REPEAT_IS_APPLIED": (_ALL, "I3_other_holds_change_nothing"),
    "RECLAIM_CHECKS_NOTHING": (_SLOW, "I6_kept_in_time_stays"),
    "RECLAIM_CHECKS_NOT_EXPIRY": (_SLOW, "I6_kept_in_time_stays"),
    "CLAIM_IGNORES_LEASE": (_ALL, "I2_one_current_hold"),
    "RECLAIM_GIVES_START_BACK": (_ALL, "I4_starts_are_bounded"),
    "RECLAIM_COUNTS_NO_STALL": ("two crashes", "I4_stalls_in_a_row_are_bounded"),
    "CLAIM_TAKES_AWAY": (_ALL, "I5_no_job_is_lost"),
    "ENQUEUE_ANSWERS_FIRST": (_ALL, "I5_no_job_is_lost"),
    "LATE_CLAIM_IS_STARTED": (_SLOW, "I6_starts_under_the_current_hold"),
    "AGE_FROM_THE_REPEAT": (_SLOW, "I6_kept_in_time_stays"),
    "NEVER_WARY": ("the clock set, and noticed", "I6_kept_in_time_stays"),
    "NOTHING_IS_RECLAIMED": ("in the end, with a crash and a loss", "I7_what_is_stored_ends"),
    "CLAIM_KEEPS_SERIAL": (_ALL, "I14_a_repeat_gets_the_first_answer"),
    "CLAIM_DROPS_SETTLED": (_ALL, "I14_a_repeat_gets_the_first_answer"),
    "REPEAT_IS_NOT_KNOWN": (_ALL, "I14_a_repeat_gets_the_first_answer"),
    "AGAIN_RETURNS_ANY_HOLD": (_ALL, "I4_starts_are_bounded"),
    "AGAIN_IS_NOT_LOOKED_UP": (_ALL, "I14_a_lost_answer_costs_no_stall"),
    "OUTCOME_IS_GIVEN_UP": (_ALL, "I14_a_lost_answer_costs_no_stall"),
    "ENQUEUE_FORGETS_WHAT_ENDED": (_ALL, "I14_completed_once"),
    "DISPATCH_REPEATS_UNDER_A_NEW_ID": (_JOBS, "I14_one_dispatch_one_job"),
    "LOST_HANDLER_GOES_ON": (_SLOW, "W19_a_lost_hold_stops_its_handler"),
}


@pytest.mark.parametrize("bounds", BOUNDS)
def test_every_guarantee_holds(bounds: str, tmp_path: Path) -> None:
    searched = search("holds", BOUNDS[bounds], tmp_path)
    assert searched.broken is None, searched.explain()
    assert searched.exhausted, searched.output
    assert searched.states >= BOUNDS[bounds].least


@pytest.mark.parametrize("rule", BROKEN)
def test_without_a_rule_its_guarantee_breaks(rule: str, tmp_path: Path) -> None:
    bounds, guarantee = BROKEN[rule]
    searched = search("holds", BOUNDS[bounds], tmp_path, f"BAD_{rule}")
    assert searched.broken == guarantee, searched.explain()
