"""The waits beside exponential backoff: linear, listed, and from a function of the user's own."""

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenure

CAP = 3653 * 86400
seconds = st.one_of(
    st.floats(0, CAP), st.integers(0, CAP), st.timedeltas(timedelta(), timedelta(days=3653))
)
wide = st.one_of(seconds, st.floats(0, 1e308), st.integers(0, 2**1000))
lists = st.lists(seconds, min_size=1, max_size=20)


def listed(**options: Any) -> tenure.RetryPolicy:
    return tenure.RetryPolicy.delays([1, 5, 30], **options)


def asked(**options: Any) -> tenure.RetryPolicy:
    return tenure.RetryPolicy.of(lambda attempt, error: 5, **options)


KINDS: dict[str, Callable[..., tenure.RetryPolicy]] = {
    "exponential": tenure.RetryPolicy,
    "linear": tenure.RetryPolicy.linear,
    "delays": listed,
    "of": asked,
}
each_kind = pytest.mark.parametrize("kind", list(KINDS))


@given(data=st.data(), attempt=st.integers(1, 10_000), cap=seconds, jitter=st.booleans())
def test_every_policys_delay_is_finite_and_between_zero_and_the_cap(
    data: st.DataObject, attempt: int, cap: float | timedelta, jitter: bool
) -> None:
    """A41: whatever the kind, the numbers and the attempt."""
    most = cap.total_seconds() if isinstance(cap, timedelta) else cap
    kind = data.draw(st.sampled_from(list(KINDS)))
    options: dict[str, Any] = {"cap": cap, "jitter": jitter}
    if kind == "exponential":
        factor = data.draw(st.floats(1, 1e300))
        policy = tenure.RetryPolicy(base=data.draw(wide), factor=factor, **options)
    elif kind == "linear":
        policy = tenure.RetryPolicy.linear(step=data.draw(wide), **options)
    elif kind == "delays":
        policy = tenure.RetryPolicy.delays(data.draw(lists), **options)
    else:
        given = data.draw(wide)
        policy = tenure.RetryPolicy.of(lambda attempt, error: given, **options)
    delay = policy.delay_after(attempt, ValueError())
    assert isinstance(delay, float)
    assert math.isfinite(delay)
    assert 0.0 <= delay <= policy.bound(attempt) <= most


def test_linear_waits_grow_by_the_step_to_the_cap() -> None:
    policy = tenure.RetryPolicy.linear(step=10, cap=35, jitter=False)
    assert [policy.delay(attempt) for attempt in range(1, 6)] == [10.0, 20.0, 30.0, 35.0, 35.0]
    assert policy.max_attempts == 5
    assert tenure.RetryPolicy.linear(step=1e308).bound(10_000) == 3600.0


def test_listed_waits_come_in_their_order_and_the_last_repeats() -> None:
    """`max_attempts` is one more than there are waits, unless it is given."""
    policy = tenure.RetryPolicy.delays([1, 5.5, timedelta(minutes=1)])
    assert [policy.delay(attempt) for attempt in range(1, 6)] == [1.0, 5.5, 60.0, 60.0, 60.0]
    assert policy.max_attempts == 4
    assert tenure.RetryPolicy.delays([1], max_attempts=7).max_attempts == 7
    assert tenure.RetryPolicy.delays((n for n in (3, 4)), cap=3.5).delay(2) == 3.5
    # No cap of its own: what is listed is meant.
    assert tenure.RetryPolicy.delays([86400.0]).delay(1) == 86400.0


def test_a_function_sees_the_attempt_and_the_error_and_may_give_up() -> None:
    seen: list[tuple[int, BaseException]] = []

    def wait(attempt: int, error: BaseException) -> float | timedelta | None:
        seen.append((attempt, error))
        return (2, timedelta(hours=2), None)[attempt - 1]

    policy = tenure.RetryPolicy.of(wait)
    error = ValueError()
    assert [policy.delay_after(attempt, error) for attempt in (1, 2, 3)] == [2.0, 7200.0, None]
    assert seen == [(1, error), (2, error), (3, error)]
    assert tenure.RetryPolicy.of(wait, cap=timedelta(hours=1)).delay_after(2, error) == 3600.0


@pytest.mark.parametrize(
    "nonsense", [math.nan, math.inf, -math.inf, -1, timedelta(seconds=-1), "5", True, [5], 10**400]
)
def test_a_function_that_gives_nonsense_is_an_error_that_says_what(nonsense: Any) -> None:
    policy = tenure.RetryPolicy.of(lambda attempt, error: nonsense)
    with pytest.raises(tenure.InvalidConfiguration, match="the delay after attempt 3"):
        policy.delay_after(3, ValueError())


@each_kind
def test_with_jitter_every_wait_is_drawn_below_its_bound(kind: str) -> None:
    """And only then; the exponential and the linear one do unless told otherwise."""
    policy = KINDS[kind](jitter=True, cap=4.0)
    delays = [policy.delay_after(9, ValueError()) for _ in range(500)]
    assert all(delay is not None and 0.0 <= delay <= 4.0 for delay in delays)
    assert len(set(delays)) > 400
    steady = KINDS[kind](jitter=False, cap=4.0)
    assert {steady.delay_after(9, ValueError()) for _ in range(9)} == {4.0}
    assert KINDS[kind]().jitter is (kind in ("exponential", "linear"))


@each_kind
def test_every_kind_takes_the_same_classes(kind: str) -> None:
    policy = KINDS[kind](retry_on=(LookupError,), give_up_on=(KeyError,))
    assert policy.retries(IndexError())
    assert not policy.retries(KeyError())
    assert not policy.retries(ValueError())


@each_kind
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_attempts", 0),
        ("max_attempts", -1),
        ("max_attempts", 10_001),
        ("cap", -1),
        ("cap", math.nan),
        ("cap", timedelta(days=3654)),
        ("retry_on", ValueError),
        ("give_up_on", (1,)),
    ],
)
def test_every_kind_refuses_the_same_options(kind: str, option: str, value: Any) -> None:
    """A42: among them no attempts and fewer."""
    with pytest.raises(tenure.InvalidConfiguration) as caught:
        KINDS[kind](**{option: value})
    assert caught.value.option == option


@pytest.mark.parametrize(
    ("build", "option"),
    [
        (lambda: tenure.RetryPolicy.linear(step=-1), "step"),
        (lambda: tenure.RetryPolicy.linear(step="1"), "step"),  # type: ignore[arg-type]
        (lambda: tenure.RetryPolicy.linear(step=10**400), "step"),
        (lambda: tenure.RetryPolicy(base=timedelta(seconds=-1)), "base"),
        (lambda: tenure.RetryPolicy.delays([]), "delays"),
        (lambda: tenure.RetryPolicy.delays("15"), "delays"),  # type: ignore[arg-type]
        (lambda: tenure.RetryPolicy.delays(5), "delays"),  # type: ignore[arg-type]
        (lambda: tenure.RetryPolicy.delays([1, -1]), "delays[1]"),
        (lambda: tenure.RetryPolicy.delays([1, math.nan]), "delays[1]"),
        (lambda: tenure.RetryPolicy.delays([3654 * 86400]), "delays[0]"),
        (lambda: tenure.RetryPolicy.delays([1] * 10_000), "delays"),
        (lambda: tenure.RetryPolicy.of(5), "function"),  # type: ignore[arg-type]
    ],
)
def test_an_impossible_wait_is_refused_by_name(
    build: Callable[[], tenure.RetryPolicy], option: str
) -> None:
    """When the policy is built, not when a job fails."""
    with pytest.raises(tenure.InvalidConfiguration) as caught:
        build()
    assert caught.value.option == option


def test_an_async_function_is_refused() -> None:
    """It would give a coroutine and no delay."""

    async def wait(attempt: int, error: BaseException) -> float:
        return 1.0

    with pytest.raises(tenure.InvalidConfiguration, match="plain function"):
        tenure.RetryPolicy.of(wait)  # type: ignore[arg-type]


def test_every_kind_shows_how_it_was_made() -> None:
    def wait(attempt: int, error: BaseException) -> float:
        return 1.0

    assert repr(tenure.RetryPolicy.linear(step=2)).startswith("RetryPolicy.linear(step=2.0, ")
    assert repr(tenure.RetryPolicy.delays([1, 5])).startswith("RetryPolicy.delays([1.0, 5.0], ")
    assert repr(tenure.RetryPolicy.of(wait)).startswith("RetryPolicy.of(wait, max_attempts=5")
