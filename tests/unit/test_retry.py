"""`RetryPolicy`: when another attempt follows, and after how long."""

import asyncio
import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenure

numbers = st.floats(0, 1e300)
caps = st.floats(0, 3653 * 86400)


@given(
    base=numbers,
    factor=st.floats(1, 1e300),
    cap=caps,
    jitter=st.booleans(),
    attempt=st.integers(1, 10_000),
)
def test_every_delay_is_finite_and_between_zero_and_the_cap(
    base: float, factor: float, cap: float, jitter: bool, attempt: int
) -> None:
    """A41: whatever the numbers, nothing overflows."""
    policy = tenure.RetryPolicy(base=base, factor=factor, cap=cap, jitter=jitter)
    delay = policy.delay(attempt)
    assert math.isfinite(delay)
    assert 0.0 <= delay <= policy.bound(attempt) <= cap


@pytest.mark.parametrize(("factor", "attempts"), [(5.0, 60), (2.0, 2000), (1e300, 10_000)])
def test_a_backoff_that_would_overflow_stays_at_the_cap(factor: float, attempts: int) -> None:
    """A41: the bounds grow to the cap and stay there."""
    policy = tenure.RetryPolicy(
        max_attempts=attempts, base=1.0, factor=factor, cap=86400.0, jitter=False
    )
    delays = [policy.delay(attempt) for attempt in range(1, attempts + 1)]
    assert delays[0] == 1.0
    assert delays[-1] == 86400.0
    assert all(before <= after for before, after in pairwise(delays))


@given(st.floats(1e-3, 1e3), st.floats(1, 10), st.integers(1, 20))
def test_without_jitter_the_delay_is_the_formula(base: float, factor: float, attempt: int) -> None:
    """min(cap, base * factor ** (n - 1))."""
    policy = tenure.RetryPolicy(base=base, factor=factor, cap=1e6, jitter=False)
    expected = min(1e6, base * factor ** (attempt - 1))
    assert policy.delay(attempt) == pytest.approx(expected, rel=1e-9)


def test_the_documented_example() -> None:
    """The defaults: 1, 2, 4, 8 s, at most an hour, five attempts."""
    policy = tenure.RetryPolicy()
    assert policy.max_attempts == 5
    assert [policy.bound(n) for n in range(1, 5)] == pytest.approx([1.0, 2.0, 4.0, 8.0])
    assert policy.bound(100) == 3600.0


def test_full_jitter_spreads_evenly_over_the_bound() -> None:
    """Between 0 and the bound, and not around it."""
    policy = tenure.RetryPolicy(base=100.0, jitter=True)
    delays = [policy.delay(1) for _ in range(2000)]
    assert 0.0 <= min(delays) < 10.0
    assert 90.0 < max(delays) <= 100.0
    assert 40.0 < sum(delays) / len(delays) < 60.0


@pytest.mark.parametrize("options", [{"base": 0.0}, {"cap": 0.0}, {"base": 0, "cap": 0}])
def test_zero_is_an_immediate_retry(options: dict[str, float]) -> None:
    """Not an error, and never the logarithm of it."""
    assert tenure.RetryPolicy(**options).delay(7) == 0.0  # type: ignore[arg-type]


class Mine(ValueError):
    pass


@pytest.mark.parametrize(
    ("retry_on", "give_up_on", "error", "retried"),
    [
        ((Exception,), (), ValueError(), True),
        ((Exception,), (), TimeoutError(), True),
        ((Exception,), (), SystemExit(), False),
        ((Exception,), (), asyncio.CancelledError(), False),
        ((BaseException,), (), SystemExit(), True),
        ((ValueError,), (), Mine(), True),
        ((Mine,), (), ValueError(), False),
        ((Exception,), (ValueError,), Mine(), False),
        ((ValueError,), (Mine,), ValueError(), True),
        ((ValueError,), (Mine,), Mine(), False),
        ((), (), ValueError(), False),
    ],
)
def test_retried_are_instances_of_retry_on_and_not_of_give_up_on(
    retry_on: tuple[type[BaseException], ...],
    give_up_on: tuple[type[BaseException], ...],
    error: BaseException,
    retried: bool,
) -> None:
    """Subclasses count; `give_up_on` is stronger."""
    policy = tenure.RetryPolicy(retry_on=retry_on, give_up_on=give_up_on)
    assert policy.retries(error) is retried


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_attempts", 0),
        ("max_attempts", -1),
        ("max_attempts", 10_001),
        ("max_attempts", 2.0),
        ("max_attempts", True),
        ("max_attempts", None),
        ("base", -1),
        ("base", float("nan")),
        ("base", float("inf")),
        ("base", "1"),
        ("factor", 0.5),
        ("factor", float("inf")),
        ("factor", True),
        ("cap", -0.1),
        ("cap", float("nan")),
        ("cap", None),
        ("cap", 3653 * 86400 + 1),
        ("retry_on", ValueError),
        ("retry_on", [ValueError]),
        ("retry_on", ("ValueError",)),
        ("retry_on", (int,)),
        ("give_up_on", None),
        ("give_up_on", (ValueError(),)),
    ],
)
def test_an_impossible_option_is_refused_by_name(option: str, value: Any) -> None:
    """`InvalidConfiguration`, when the policy is built; A42: zero never means for ever."""
    options: dict[str, Any] = {option: value}
    with pytest.raises(tenure.InvalidConfiguration) as caught:
        tenure.RetryPolicy(**options)
    assert caught.value.option == option
    assert option in str(caught.value)


def test_a_policy_shows_its_numbers() -> None:
    """For people who print a worker's configuration."""
    assert "max_attempts=5" in repr(tenure.RetryPolicy())
