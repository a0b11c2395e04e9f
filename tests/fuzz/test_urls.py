"""Any text in place of a store's URL, and anything as an option: a driver, or a refusal by name.

Nothing is connected to. What stands where a password does is never in a message.
"""

import contextlib
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tenure

SCHEMES = ("sqlite", "redis", "rediss", "unix", "postgresql", "postgres", "memory", "mysql", "")
OPTIONS = (
    *("synchronous", "busy_timeout", "namespace", "schema", "migrate", "timeout"),
    *("connect_timeout", "pooled", "tls_ca", "wrong", ""),
)
SECRET = "hunter2hunter2"  # what must not be shown

_parts = st.text(max_size=12) | st.sampled_from(["localhost", "[::1]", "[", "h:99999", "a@b", "%"])
_values = (
    st.text(max_size=8)
    | st.sampled_from(["FULL", "1", "-1", "nan", "inf", "1e999", "true", "True", "0"])
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.binary(max_size=4)
    | st.lists(st.integers(), max_size=2)
)


@st.composite
def urls(draw: st.DrawFn) -> str:
    rest = draw(_parts)
    query = "&".join(
        f"{draw(st.sampled_from(OPTIONS))}={quote(draw(st.text(max_size=6)))}"
        for _ in range(draw(st.integers(0, 2)))
    )
    return f"{draw(st.sampled_from(SCHEMES))}://{rest}/{draw(_parts)}" + (query and f"?{query}")


def connected(url: Any, options: dict[str, Any]) -> None:
    """Build a queue; raises `InvalidConfiguration` or nothing."""
    tenure.connect(url, **options)


@given(st.text(max_size=60) | urls(), st.dictionaries(st.sampled_from(OPTIONS[:-1]), _values))
@example("sqlite:///a\0b", {})
@example("postgresql://h:port/db", {})
@example("redis://h/0", {"timeout": float("nan")})
def test_any_url_with_any_options_is_taken_or_refused(url: str, options: dict[str, Any]) -> None:
    with contextlib.suppress(tenure.InvalidConfiguration):
        connected(url, options)


@given(
    st.sampled_from(SCHEMES[:-2]),
    _parts,
    st.sampled_from(OPTIONS[:-1]) | st.text(max_size=5),
    st.text(max_size=6),
)
def test_nothing_that_is_said_shows_the_password(
    scheme: str, rest: str, option: str, value: str
) -> None:
    """Neither a refusal nor, where the URL is taken, the queue that it makes."""
    url = f"{scheme}://user:{SECRET}@{rest}/0?{quote(option)}={quote(value)}"
    try:
        said = repr(tenure.connect(url))
    except tenure.InvalidConfiguration as refused:
        said = f"{refused} {refused!r} {refused.__cause__!r} {refused.__context__!r}"
    assert SECRET not in said
    with pytest.raises(tenure.InvalidConfiguration) as caught:
        connected(url, {"wrong": 1})
    assert SECRET not in f"{caught.value} {caught.value!r}"
