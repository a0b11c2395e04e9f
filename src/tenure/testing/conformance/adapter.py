"""Runs the kit under pytest, one test for each check. The only module here that imports pytest.

@parametrize_checks
def test_conformance(check: Check) -> None:
    run_check(check, open_store)

@parametrize_repeatable_checks
def test_conformance_of_repeats(check: Check) -> None:
    run_check(check, repeating(open_store))
"""

import asyncio

import pytest

from tenure.testing.conformance import CHECKS, REPEATABLE, Check, OpenStore, prove

__all__ = ["parametrize_checks", "parametrize_repeatable_checks", "run_check"]


def _id(check: Check) -> str:
    return f"{check.guarantee.replace(' ', '_')}-{check.name}"


parametrize_checks: pytest.MarkDecorator = pytest.mark.parametrize("check", CHECKS, ids=_id)
parametrize_repeatable_checks: pytest.MarkDecorator = pytest.mark.parametrize(
    "check", REPEATABLE, ids=_id
)


def run_check(check: Check, open_store: OpenStore) -> None:
    """Run one check on a fresh store, in an event loop of its own.

    Skips the test only for a capability that the driver does not name, and says which.
    """
    result = asyncio.run(prove(check, open_store))
    if result.error is not None:
        raise result.error
    if result.missing:
        pytest.skip(result.reason)
