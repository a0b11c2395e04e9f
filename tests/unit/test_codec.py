"""The codec: what JSON can carry comes back equal, everything else is refused by its path."""

import contextlib
import datetime as dt
import json
import sys
import types
import uuid
from collections import OrderedDict, UserDict
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenure
from tenure.codec import MAX_DEPTH, decode, encode

LIMIT = 1024 * 1024

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=15
)


@given(values)
def test_any_json_value_comes_back_equal(value: Any) -> None:
    """I10: and in the types that it had."""
    data = encode(value, root="payload", limit=LIMIT)
    back = decode(data)
    assert back == value
    assert shape(back) == shape(value)
    assert json.loads(data) == value  # plain JSON: other languages read it


@given(values)
def test_encoding_is_repeatable(value: Any) -> None:
    """I10, A30: what was decoded encodes to the same bytes again."""
    data = encode(value, root="payload", limit=LIMIT)
    assert encode(decode(data), root="payload", limit=LIMIT) == data


def shape(value: Any) -> Any:
    """The value with the types of its parts in their places."""
    if isinstance(value, dict):
        parts = cast("dict[str, Any]", value)
        return {key: shape(inner) for key, inner in parts.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in cast("list[object]", value)]
    return type(value).__name__


EDGES: list[Any] = [
    {"args": [], "opts": {}, "n": [[], [{}], None], "s": "é\u2028"},
    "\\u0000",  # the text of an escape, not a NUL
    "\x01\x1f\x7f",
    "\U0001f600",
    -0.0,
    5e-324,
    1.7976931348623157e308,
    2**53 + 1,
    2**64,
    -(2**100),
    {"": ""},
    [[[[]]]] * 50,
    OrderedDict(b=1, a=2),
]


@pytest.mark.parametrize("value", EDGES)
def test_a_value_at_the_edge_comes_back_equal(value: Any) -> None:
    """I10, A30."""
    assert decode(encode(value, root="payload", limit=LIMIT)) == value


def test_the_sign_of_zero_comes_back() -> None:
    """I10."""
    assert str(decode(encode(-0.0, root="payload", limit=LIMIT))) == "-0.0"


def nest(depth: int, innermost: Any = None) -> Any:
    for _ in range(depth):
        innermost = [innermost]
    return innermost


def test_nesting_is_accepted_to_its_bound_and_refused_beyond() -> None:
    """Design, section 7: 128 deep."""
    deepest = nest(MAX_DEPTH)
    assert decode(encode(deepest, root="payload", limit=LIMIT)) == deepest
    with pytest.raises(tenure.SerializationError, match="128 deep") as caught:
        encode(nest(MAX_DEPTH + 1), root="payload", limit=LIMIT)
    assert caught.value.path == "payload" + "[0]" * MAX_DEPTH
    wide = [[n] for n in range(1000)]  # many brackets, little depth
    assert decode(encode(wide, root="payload", limit=LIMIT)) == wide


def test_a_value_that_contains_itself_is_refused() -> None:
    """Design, section 7: it is endlessly deep."""
    value: list[Any] = []
    value.append(value)
    with pytest.raises(tenure.SerializationError, match="128 deep"):
        encode(value, root="payload", limit=LIMIT)


class Number(IntEnum):
    ONE = 1


class Colour(StrEnum):
    RED = "red"


class Custom:
    pass


REFUSED: list[tuple[Any, str, str]] = [
    (float("nan"), "payload", "finite"),
    (float("inf"), "payload", "finite"),
    ({"a": [1.0, float("-inf")]}, "payload.a[1]", "finite"),
    ("a\0", "payload", "NUL"),
    ({"a": {"b": ["x", "x\0"]}}, "payload.a.b[1]", "NUL"),
    ({"a\0b": ["x\0"]}, "payload key 'a\\x00b'", "NUL"),
    ("\ud800", "payload", "lone surrogate"),
    ([{"k": "x\udfff"}], "payload[0].k", "lone surrogate"),
    ({"\ud800": 1}, "payload key '\\ud800'", "lone surrogate"),
    ((1, 2), "payload", "got tuple"),
    ({"a": (1,)}, "payload.a", "got tuple"),
    ([{1, 2}], "payload[0]", "got set"),
    ([frozenset([1])], "payload[0]", "got frozenset"),
    ({"a-b": b"bytes"}, "payload['a-b']", "got bytes"),
    ([bytearray(b"x")], "payload[0]", "got bytearray"),
    ({"when": dt.datetime(2030, 1, 1, tzinfo=dt.UTC)}, "payload.when", "got datetime"),
    ([dt.date(2030, 1, 1)], "payload[0]", "got date"),
    ([dt.timedelta(1)], "payload[0]", "got timedelta"),
    ([Decimal(1)], "payload[0]", "got Decimal"),
    ([uuid.UUID(int=1)], "payload[0]", "got UUID"),
    ([Custom()], "payload[0]", "got Custom"),
    ([Custom], "payload[0]", "got type"),
    ([1 + 2j], "payload[0]", "got complex"),
    ({1: "a"}, "payload", "keys must be text, got 1"),
    ([{None: "a"}], "payload[0]", "keys must be text, got None"),
    ({"a": {(1, 2): 3}}, "payload.a", "keys must be text"),
    ([types.MappingProxyType({"a": 1})], "payload[0]", "got mappingproxy"),
    ([UserDict(a=1)], "payload[0]", "got UserDict"),
    ({"n": [10**5000]}, "payload.n[0]", "digits"),
]


@pytest.mark.parametrize(("value", "path", "rule"), REFUSED)
def test_what_would_not_come_back_equal_is_refused_with_its_path(
    value: Any, path: str, rule: str
) -> None:
    """Design, section 7; A31, A32: the path leads to the offending part."""
    with pytest.raises(tenure.SerializationError) as caught:
        encode(value, root="payload", limit=LIMIT)
    assert caught.value.path == path
    assert rule in str(caught.value)
    assert str(caught.value).startswith(path)
    str(caught.value).encode()  # a message that can be printed


@given(values, st.sampled_from([float("nan"), "\0", "\udc80", (), b"", {2: 2}]))
def test_one_bad_part_anywhere_refuses_the_whole(value: Any, bad: Any) -> None:
    """A32: however deep, and whatever is beside it."""
    for whole in ([value, bad], {"good": value, "bad": bad}, [[{"x": [value, [bad]]}]]):
        with pytest.raises(tenure.SerializationError) as caught:
            encode(whole, root="payload", limit=LIMIT)
        assert (caught.value.path or "").startswith("payload")
        assert caught.value.path != "payload"


def test_a_list_five_thousand_deep_is_refused() -> None:
    """A32: without exhausting the interpreter's own stack."""
    with pytest.raises(tenure.SerializationError, match="128 deep"):
        encode(nest(5000), root="payload", limit=LIMIT)


@pytest.mark.parametrize("value", [Number.ONE, Colour.RED, [True, Number.ONE]])
def test_values_that_are_equal_to_plain_ones_are_accepted(value: Any) -> None:
    """What comes back is the plain value, which is equal."""
    assert decode(encode(value, root="payload", limit=LIMIT)) == value


def test_the_limit_is_of_the_encoded_bytes_and_names_the_whole() -> None:
    """Design, section 7: at the limit it is accepted, one byte more is refused."""
    assert encode("x" * 98, root="payload", limit=100) == b'"' + b"x" * 98 + b'"'
    with pytest.raises(tenure.SerializationError, match="at most 100 bytes as JSON, got 101") as c:
        encode("x" * 99, root="payload", limit=100)
    assert c.value.path == "payload"
    with pytest.raises(tenure.SerializationError, match="at most 1,048,576 bytes"):
        encode("é" * (LIMIT // 2), root="payload", limit=LIMIT)


def test_the_root_is_the_callers() -> None:
    """The path begins where the caller says."""
    with pytest.raises(tenure.SerializationError) as caught:
        encode([float("nan")], root="calls[3].payload", limit=LIMIT)
    assert caught.value.path == "calls[3].payload[0]"


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"nul", b"\xff", b'"\xff"', b"[1,]", b"NaN", b"{'a': 1}", b"1 2", b'"\\ud8'],
)
def test_bytes_that_are_not_json_are_refused(data: bytes) -> None:
    """W17: as `SerializationError`, whatever the parser says."""
    with pytest.raises(tenure.SerializationError, match="not valid JSON"):
        decode(data)


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_are_refused(data: bytes) -> None:
    """W17: nothing else is ever raised."""
    with contextlib.suppress(tenure.SerializationError):
        decode(data)


def test_json_too_deep_for_the_parser_is_refused() -> None:
    """W17: written by another program, say."""
    depth = sys.getrecursionlimit() * 100
    with pytest.raises(tenure.SerializationError):
        decode(b"[" * depth + b"]" * depth)
