"""States and outcomes: what each outcome makes of a job, and that only drawn transitions occur."""

from datetime import UTC, datetime
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenure
from tenure.outcomes import Outcome, outcome_digest, settle
from tenure.states import TERMINAL, TRANSITIONS, State

FAILURE = tenure.Failure(kind="error", message="no", at=datetime(2030, 1, 1, tzinfo=UTC), attempt=1)
delays = st.floats(0, 1e9)
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(tenure.Completed, st.none() | st.binary(max_size=20)),
    st.builds(tenure.Retried, delays, st.just(FAILURE)),
    st.builds(tenure.Snoozed, delays),
    st.builds(tenure.Released, st.text(max_size=10), st.none() | delays),
    st.builds(tenure.Failed, st.just(FAILURE), st.booleans()),
    st.builds(tenure.Cancelled, st.text(max_size=10), st.booleans()),
)


def test_the_strategy_has_every_outcome() -> None:
    """A new outcome must be tested here."""
    assert {kind.__name__ for kind in get_args(Outcome)} == {
        "Completed",
        "Retried",
        "Snoozed",
        "Released",
        "Failed",
        "Cancelled",
    }


@given(outcomes, st.integers(1, 10_000), st.integers(0, 1000), st.booleans())
def test_an_outcome_takes_a_processing_job_only_where_a_transition_leads(
    outcome: Outcome, attempt: int, stalls: int, cancel: bool
) -> None:
    """I1: and a terminal job has no delay."""
    after = settle(outcome, attempt=attempt, stalls=stalls, cancel_requested=cancel)
    assert after.state in TRANSITIONS[State.PROCESSING]
    if after.state in TERMINAL:
        assert after.delay is None


@given(outcomes, st.integers(1, 10_000), st.integers(0, 1000), st.booleans())
def test_a_start_is_given_back_by_releases_snoozes_and_what_was_not_started(
    outcome: Outcome, attempt: int, stalls: int, cancel: bool
) -> None:
    """Design, section 2: and by nothing else, asked to cancel or not."""
    after = settle(outcome, attempt=attempt, stalls=stalls, cancel_requested=cancel)
    given_back = isinstance(outcome, tenure.Released | tenure.Snoozed) or (
        isinstance(outcome, tenure.Failed | tenure.Cancelled) and not outcome.started
    )
    assert after.attempt == attempt - given_back


@given(outcomes, st.integers(1, 10_000), st.integers(0, 1000))
def test_every_outcome_but_a_release_ends_the_row_of_stalls(
    outcome: Outcome, attempt: int, stalls: int
) -> None:
    """Design, section 2."""
    after = settle(outcome, attempt=attempt, stalls=stalls, cancel_requested=False)
    assert after.stalls == (stalls if isinstance(outcome, tenure.Released) else 0)


@pytest.mark.parametrize(
    ("outcome", "state", "delay", "asked"),
    [
        (tenure.Completed(b"1"), "completed", None, "completed"),
        (tenure.Completed(), "completed", None, "completed"),
        (tenure.Retried(4.0, FAILURE), "pending", 4.0, "cancelled"),
        (tenure.Snoozed(9.0), "pending", 9.0, "cancelled"),
        (tenure.Released("shutdown"), "pending", None, "cancelled"),
        (tenure.Released("no handler", 5.0), "pending", 5.0, "cancelled"),
        (tenure.Failed(FAILURE), "failed", None, "failed"),
        (tenure.Failed(FAILURE, started=False), "failed", None, "failed"),
        (tenure.Cancelled("asked"), "cancelled", None, "cancelled"),
        (tenure.Cancelled("asked", started=False), "cancelled", None, "cancelled"),
    ],
)
def test_each_outcome_has_its_state_also_when_the_job_was_asked_to_cancel(
    outcome: Outcome, state: str, delay: float | None, asked: str
) -> None:
    """Section 3: `Retried`, `Snoozed`, `Released` become cancelled; the others stand."""
    after = settle(outcome, attempt=3, stalls=2, cancel_requested=False)
    assert (after.state, after.delay) == (state, delay)
    after = settle(outcome, attempt=3, stalls=2, cancel_requested=True)
    assert after.state == asked
    assert after.delay is None


def test_every_state_has_its_transitions_and_no_other() -> None:
    """I1: the drawing is complete."""
    assert set(TRANSITIONS) == set(State)
    assert {"completed", "failed", "cancelled"} == TERMINAL
    assert TRANSITIONS[State.COMPLETED] == frozenset()
    for state in (State.FAILED, State.CANCELLED):
        assert TRANSITIONS[state] == {State.PENDING}  # a manual retry
    assert TRANSITIONS[State.PROCESSING] == {State.PENDING, *TERMINAL}
    assert all(state not in follows for state, follows in TRANSITIONS.items())


@given(outcomes, outcomes)
def test_a_digest_tells_outcomes_apart(one: Outcome, other: Outcome) -> None:
    """Section 3: the same outcome repeats, another does not."""
    assert outcome_digest(one) == outcome_digest(one)
    if outcome_digest(one) == outcome_digest(other):
        assert one == other or type(one) is type(other)


def test_a_digest_does_not_carry_what_cannot_be_stored() -> None:
    """Any text may be in a reason."""
    assert outcome_digest(tenure.Released("\ud800\0")).isprintable()


def test_completions_with_none_and_with_null_differ() -> None:
    """A handler's None is no result, not a stored null."""
    assert outcome_digest(tenure.Completed()) != outcome_digest(tenure.Completed(b"null"))
