"""The limits on what a dispatch may contain, and that what is refused is not stored."""

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenure
from tenure.intake import (
    check_at,
    check_delay,
    check_headers,
    check_max_attempts,
    check_name,
    check_priority,
    check_timeout,
    seconds,
)
from tests.runtime.world import each_store, open_world

HUGE = pytest.param(10**5000, "finite", id="huge")  # more digits than Python prints
BIG = pytest.param(10**5000, id="huge")
ASTRAL = "\U0001d4b3"
NOW = datetime(2030, 1, 1, tzinfo=UTC)
TEN_YEARS = timedelta(days=3653)


def refused(check: Callable[[], object], path: str, rule: str) -> None:
    with pytest.raises(tenure.InvalidJob) as caught:
        check()
    assert caught.value.path == path
    assert rule in caught.value.rule
    assert str(caught.value) == f"{path}: {caught.value.rule}"
    assert isinstance(caught.value, ValueError)
    assert len(str(caught.value)) < 2000
    str(caught.value).encode()


# --- names --------------------------------------------------------------------------------------


@given(st.text())
def test_a_name_is_one_to_256_bytes_without_control_characters(text: str) -> None:
    """Design, section 7; A31: accepted unchanged, or refused."""
    controls = any(ord(char) < 32 or 127 <= ord(char) < 160 for char in text)
    size = len(text.encode("utf-8", "surrogatepass"))
    surrogates = any(0xD800 <= ord(char) <= 0xDFFF for char in text)
    if controls or surrogates or not 1 <= size <= 256:
        with pytest.raises(tenure.InvalidJob):
            check_name("name", text)
    else:
        assert check_name("name", text) is text


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("", "1 to 256 bytes of UTF-8, got 0"),
        ("x" * 257, "got 257"),
        ("é" * 129, "got 258"),
        ("a\0b", "control characters"),
        ("a\n", "control characters"),
        ("\x7f", "control characters"),
        ("\x85", "control characters"),
        ("\ud800", "lone surrogate"),
        (b"bytes", "must be text, got bytes"),
        (None, "must be text, got NoneType"),
        (5, "must be text, got int"),
    ],
)
def test_a_bad_name_is_refused_with_its_place(value: object, rule: str) -> None:
    """Design, section 7."""
    refused(lambda: check_name("queue", value), "queue", rule)


@pytest.mark.parametrize("value", ["x", "x" * 256, "é" * 128, "a b", "a:b/{c}*", "\u2028", ASTRAL])
def test_a_name_at_the_edge_is_accepted(value: str) -> None:
    """Design, section 7."""
    assert check_name("name", value) == value


# --- times --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "delay"),
    [
        (0, 0.0),
        (1.5, 1.5),
        (-1, 0.0),
        (-1e12, 0.0),
        (-(10**400), 0.0),
        (float("-inf"), 0.0),
        (timedelta(seconds=90), 90.0),
        (timedelta.min, 0.0),
        (timedelta(seconds=-1), 0.0),
        (TEN_YEARS, TEN_YEARS.total_seconds()),
    ],
)
def test_a_delay_is_seconds_or_timedelta_and_negative_ones_mean_now(
    value: float | timedelta, delay: float
) -> None:
    """Design, section 7; A35."""
    assert check_delay("delay", value) == delay


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (float("nan"), "finite"),
        (float("inf"), "finite"),
        (1e18, "ten years"),
        (10**400, "finite"),
        HUGE,
        (timedelta.max, "ten years"),
        (TEN_YEARS + timedelta(seconds=1), "ten years"),
        ("60", "seconds or a timedelta"),
        (True, "seconds or a timedelta"),
        (NOW, "seconds or a timedelta"),
        (1j, "seconds or a timedelta"),
    ],
)
def test_an_unusable_delay_is_refused(value: object, rule: str) -> None:
    """A35: no worker ever sees it."""
    refused(lambda: check_delay("delay", value), "delay", rule)


@given(st.floats() | st.integers() | st.timedeltas())
def test_any_delay_is_within_ten_years_or_refused(value: float | timedelta) -> None:
    """A35."""
    try:
        delay = check_delay("delay", value)
    except tenure.InvalidJob:
        return
    assert 0.0 <= delay <= TEN_YEARS.total_seconds()


EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        (NOW, NOW),
        (datetime(2030, 6, 1, 12, tzinfo=EAST), datetime(2030, 6, 1, 10, tzinfo=UTC)),
        (datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)),
        (NOW + TEN_YEARS, NOW + TEN_YEARS),
        (datetime(2030, 6, 1, fold=1, tzinfo=UTC), datetime(2030, 6, 1, tzinfo=UTC)),
    ],
)
def test_at_is_an_aware_instant_kept_in_utc(value: datetime, instant: datetime) -> None:
    """Design, section 7."""
    found = check_at("at", value, NOW)
    assert found == instant
    assert found.tzinfo is UTC


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (datetime(2030, 1, 1), "aware"),  # noqa: DTZ001 - that is the point
        (datetime(300, 1, 1), "aware"),  # noqa: DTZ001
        (datetime.max, "aware"),  # noqa: DTZ901
        (datetime(300, 1, 1, tzinfo=UTC), "between 1970 and ten years ahead"),
        (datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), "between 1970"),
        (datetime.max.replace(tzinfo=UTC), "ten years ahead"),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))), "ten years ahead"),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=12))), "between 1970"),
        (NOW + TEN_YEARS + timedelta(microseconds=1), "ten years ahead"),
        (NOW.date(), "must be a datetime, got date"),
        (1_900_000_000, "must be a datetime, got int"),
        ("2030-01-01", "must be a datetime, got str"),
    ],
)
def test_an_unusable_instant_is_refused(value: object, rule: str) -> None:
    """Design, section 7; A35: naive is refused, whatever its value."""
    refused(lambda: check_at("at", value, NOW), "at", rule)


@given(st.datetimes(timezones=st.timezones()))
def test_any_instant_comes_back_the_same_or_is_refused(value: datetime) -> None:
    """A35."""
    try:
        found = check_at("at", value, NOW)
    except tenure.InvalidJob:
        return
    assert found == value.astimezone(UTC)


def test_seconds_is_for_options_and_says_so() -> None:
    """It raises `InvalidConfiguration`, with option, value and rule."""
    assert seconds("lease", timedelta(minutes=1)) == 60.0
    assert seconds("lease", 5) == 5.0
    for bad in (None, "5", True, math.nan, math.inf, 10**400):
        with pytest.raises(tenure.InvalidConfiguration) as caught:
            seconds("lease", bad)
        assert caught.value.option == "lease"


# --- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-100, -1, 0, 100])
def test_a_priority_is_a_whole_number_from_minus_100_to_100(value: int) -> None:
    """Design, section 7."""
    assert check_priority("priority", value) == value


@pytest.mark.parametrize(
    "value", [-101, 101, 1.0, "1", None, True, pytest.param(10**5000, id="huge")]
)
def test_another_priority_is_refused(value: object) -> None:
    """Design, section 7."""
    refused(lambda: check_priority("priority", value), "priority", "from -100 to 100")


@pytest.mark.parametrize("value", [1, 10_000])
def test_max_attempts_is_from_1_to_10_000(value: int) -> None:
    """Design, section 7."""
    assert check_max_attempts("max_attempts", value) == value


@pytest.mark.parametrize(
    "value", [0, -1, 10_001, 1.5, True, "3", pytest.param(10**5000, id="huge")]
)
def test_other_max_attempts_are_refused(value: object) -> None:
    """Design, section 7; A42: zero does not mean for ever."""
    refused(lambda: check_max_attempts("max_attempts", value), "max_attempts", "from 1 to 10,000")


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (0, "greater than 0"),
        (-1, "greater than 0"),
        (timedelta(0), "greater than 0"),
        (math.nan, "finite"),
        (math.inf, "finite"),
        HUGE,
        ("5", "seconds or a timedelta"),
    ],
)
def test_an_unusable_time_limit_is_refused(value: object, rule: str) -> None:
    """Design, section 7."""
    refused(lambda: check_timeout("timeout", value), "timeout", rule)


# --- headers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "path", "rule"),
    [
        ({"a": 1}, "headers['a']", "must be text, got int"),
        ({"a": "x\0"}, "headers['a']", "NUL"),
        ({"a": "\ud800"}, "headers['a']", "lone surrogate"),
        ({"a\n": "x"}, "headers name 'a\\n'", "control characters"),
        ({"": "x"}, "headers name ''", "1 to 256 bytes"),
        ({1: "x"}, "headers name 1", "must be text"),
        ({"a": "x" * 16384}, "headers", "at most 16,384 bytes, got 16,385"),
        ([("a", "b")], "headers", "must map names to text, got list"),
        ([], "headers", "must map names to text, got list"),
        ({"k" * 5000: "x"}, "headers name '" + "k" * 78 + "…", "1 to 256 bytes"),
    ],
)
def test_unusable_headers_are_refused(value: object, path: str, rule: str) -> None:
    """Design, section 7."""
    refused(lambda: check_headers("headers", value), path, rule)


def test_headers_at_the_limit_are_accepted() -> None:
    """Names and values together."""
    headers = {"a": "x" * 16383}
    assert check_headers("headers", headers) == headers
    assert check_headers("headers", {}) == {}


# --- what is refused is not stored --------------------------------------------------------------

BAD: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "name"),
    ({"name": "a\0"}, "name"),
    ({"queue": "x" * 257}, "queue"),
    ({"id": "\n"}, "id"),
    ({"id": ""}, "id"),
    ({"payload": float("nan")}, "payload"),
    ({"payload": {"a": [float("inf")]}}, "payload.a[0]"),
    ({"payload": {"a\0b": ["x\0"]}}, "payload key 'a\\x00b'"),
    ({"payload": [{"x": {"y": "\0"}}]}, "payload[0].x.y"),
    ({"payload": "\ud800"}, "payload"),
    ({"payload": NOW}, "payload"),
    ({"payload": b"x"}, "payload"),
    ({"payload": [{1}]}, "payload[0]"),
    ({"payload": {(1, 2): 3}}, "payload"),
    ({"payload": "x" * (1024 * 1024 - 1)}, "payload"),
    ({"delay": float("nan")}, "delay"),
    ({"delay": timedelta.max}, "delay"),
    ({"delay": 1e18}, "delay"),
    ({"at": datetime(2031, 1, 1)}, "at"),  # noqa: DTZ001
    ({"at": datetime.max.replace(tzinfo=UTC)}, "at"),
    ({"at": NOW, "delay": 1}, "at"),
    ({"priority": 101}, "priority"),
    ({"max_attempts": 0}, "max_attempts"),
    ({"timeout": 0}, "timeout"),
    ({"headers": {"a": 1}}, "headers['a']"),
    ({"headers": []}, "headers"),
]


def deep() -> Any:
    value: Any = None
    for _ in range(5000):
        value = [value]
    return value


@each_store
async def test_refused_input_is_never_stored(store: str, tmp_path: Path) -> None:
    """Section 7, A31, A32, A35: alike on every store, for one job and within many."""
    async with open_world(store, tmp_path) as world:
        for options, path in [*BAD, ({"payload": deep()}, "payload" + "[0]" * 128)]:
            given_: dict[str, Any] = {"name": "work"} | options
            with pytest.raises(tenure.InvalidJob) as caught:
                await world.queue.dispatch(**given_)
            assert caught.value.path == path
            good = [tenure.Call("work", n) for n in range(3)]
            with pytest.raises(tenure.InvalidJob) as caught:
                await world.queue.dispatch_many([*good, tenure.Call(**given_), *good])
            assert caught.value.path == f"calls[3].{path}"
        assert await world.queue.counts() == tenure.Counts()
        assert "enqueue" not in world.driver.calls


@each_store
async def test_a_bad_call_after_the_first_chunk_stores_none_of_the_chunks(
    store: str, tmp_path: Path
) -> None:
    """`dispatch_many`: every call is checked before the first is stored."""
    async with open_world(store, tmp_path) as world:
        calls = [tenure.Call("work", n) for n in range(1500)]
        calls.append(tenure.Call("work", "x\0"))
        with pytest.raises(tenure.InvalidJob) as caught:
            await world.queue.dispatch_many(calls)
        assert caught.value.path == "calls[1500].payload"
        assert await world.queue.counts() == tenure.Counts()


@each_store
async def test_the_same_id_twice_in_one_batch_is_refused_and_nothing_stored(
    store: str, tmp_path: Path
) -> None:
    """`dispatch_many`: also across chunks, also with equal content."""
    async with open_world(store, tmp_path) as world:
        calls = [tenure.Call("work", n) for n in range(1200)]
        calls[3].id = calls[1100].id = "mine"
        with pytest.raises(tenure.InvalidJob) as caught:
            await world.queue.dispatch_many(calls)
        assert caught.value.path == "calls[1100].id"
        assert await world.queue.counts() == tenure.Counts()


@each_store
async def test_what_is_accepted_comes_back_equal(store: str, tmp_path: Path) -> None:
    """I10, A30: payload, headers and times, delayed ones too."""
    payload: dict[str, Any] = {
        "args": [],
        "opts": {},
        "n": [[], [{}], None],
        "s": "é\u2028",
        "big": 2**70,
    }
    async with open_world(store, tmp_path) as world:
        job = await world.queue.dispatch(
            "n" * 256,
            payload,
            queue="é" * 128,
            priority=-100,
            delay=timedelta(minutes=1),
            max_attempts=10_000,
            timeout=0.5,
            headers={"a": "é"},
        )
        record = await world.job(job)
        assert record.payload == payload
        assert (record.name, record.queue) == ("n" * 256, "é" * 128)
        assert (record.priority, record.max_attempts, record.timeout) == (-100, 10_000, 0.5)
        assert record.headers == {"a": "é"}
        assert record.run_at == world.clock.now() + timedelta(minutes=1)
        assert (await world.queue.counts()).scheduled == 1
