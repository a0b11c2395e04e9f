"""W3: every shape of a handler: sync, async, partials, methods, objects; and what it is given."""

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import tenure
from tenure.handlers import Handlers, HandlerSpec, nearest


def spec_of(function: Any, **options: Any) -> HandlerSpec:
    handlers = Handlers()
    given: dict[str, Any] = {"retry": None, "timeout": None, "replace": False} | options
    handlers.add("work", function, **given)
    return handlers.snapshot()["work"]


def plain(payload: Any) -> Any: ...
def plain_job(payload: Any, job: Any) -> Any: ...
def plain_default(payload: Any, job: Any = None) -> Any: ...
def plain_other(payload: Any, limit: int = 5) -> Any: ...
def plain_keyword(payload: Any, *, limit: int = 5) -> Any: ...
def plain_many(*args: Any) -> Any: ...
def plain_all(*args: Any, **kwargs: Any) -> Any: ...
def plain_three(payload: Any, job: Any, extra: int = 1) -> Any: ...
def plain_positional(payload: Any, job: Any, /) -> Any: ...
async def coroutine(payload: Any) -> Any: ...
async def coroutine_job(payload: Any, job: Any) -> Any: ...
def needs_three(a: Any, b: Any, c: Any) -> Any: ...
def needs_keyword(payload: Any, *, limit: int) -> Any: ...
def needs_none() -> Any: ...


async def stream(payload: Any) -> AsyncIterator[int]:
    yield 1


def generator(payload: Any) -> Iterator[int]:
    yield 1


IDENTITY: Callable[[Any], Any] = lambda payload: payload  # noqa: E731 - it may be a lambda


class Plain:
    def __call__(self, payload: Any) -> Any: ...
    def method(self, payload: Any, job: Any) -> Any: ...
    async def coroutine(self, payload: Any) -> Any: ...
    @classmethod
    def of_class(cls, payload: Any) -> Any: ...
    @staticmethod
    def static(payload: Any, job: Any) -> Any: ...


class Async:
    async def __call__(self, payload: Any, job: Any) -> Any: ...


def wrapped(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


SHAPES: list[tuple[Any, bool, bool]] = [
    (plain, False, False),
    (plain_job, False, True),
    (plain_default, False, True),
    (plain_other, False, False),
    (plain_keyword, False, False),
    (plain_many, False, True),
    (plain_all, False, True),
    (plain_three, False, True),
    (plain_positional, False, True),
    (coroutine, True, False),
    (coroutine_job, True, True),
    (IDENTITY, False, False),
    (functools.partial(plain_job), False, True),
    (functools.partial(coroutine_job), True, True),
    (functools.partial(functools.partial(coroutine)), True, False),
    (functools.partial(needs_three, 1), False, True),
    (functools.partial(needs_keyword, limit=3), False, False),
    (functools.partial(plain_job, job=None), False, False),
    (Plain(), False, False),
    (Plain().method, False, True),
    (Plain().coroutine, True, False),
    (Plain.of_class, False, False),
    (Plain.static, False, True),
    (Async(), True, True),
    (functools.partial(Async()), True, True),
    (wrapped(coroutine_job), False, True),  # its coroutine is awaited all the same
    (stream, False, False),  # its result cannot be stored
    (generator, False, False),
    (print, False, True),
    (str.upper, False, False),
    (Plain, False, False),
]


@pytest.mark.parametrize(("function", "is_async", "wants_job"), SHAPES)
def test_w03_a_handler_may_have_any_shape(function: Any, is_async: bool, wants_job: bool) -> None:
    """W3: `(payload)` or `(payload, job)`, plain or async."""
    if function is Plain:  # a class that takes nothing is none
        with pytest.raises(tenure.InvalidConfiguration):
            spec_of(function)
        return
    spec = spec_of(function)
    assert spec.function is function
    assert (spec.is_async, spec.wants_job) == (is_async, wants_job)


class Model:
    """A class as a handler: its instances are built from payloads, in a thread."""

    def __init__(self, payload: Any) -> None: ...
    async def __call__(self) -> None: ...


def test_w03_a_class_is_called_like_a_function() -> None:
    """W3: that its instances are awaitable when called says nothing of the class."""
    assert spec_of(Model).is_async is False


@pytest.mark.parametrize(
    "function",
    [needs_three, needs_keyword, needs_none, "work", None, 5, functools.partial(plain, 1)],
)
def test_w03_what_cannot_take_a_payload_is_refused(function: Any) -> None:
    """W3: when it is registered, not when a job comes."""
    with pytest.raises(tenure.InvalidConfiguration) as caught:
        spec_of(function)
    assert caught.value.option == "handler"
    assert caught.value.value is function
    assert "'work'" in caught.value.rule


def test_w03_a_taken_name_is_refused_unless_replaced() -> None:
    """W3."""
    handlers = Handlers()
    handlers.add("work", plain, retry=None, timeout=None, replace=False)
    with pytest.raises(tenure.InvalidConfiguration, match="registered already"):
        handlers.add("work", coroutine, retry=None, timeout=None, replace=False)
    assert handlers.snapshot()["work"].function is plain
    handlers.add("work", coroutine, retry=None, timeout=3.0, replace=True)
    assert handlers.snapshot()["work"].function is coroutine
    assert handlers.snapshot()["work"].timeout == 3.0


def test_w03_a_snapshot_does_not_change() -> None:
    """W3."""
    handlers = Handlers()
    handlers.add("work", plain, retry=None, timeout=None, replace=False)
    snapshot = handlers.snapshot()
    handlers.add("more", plain, retry=None, timeout=None, replace=False)
    handlers.add("work", coroutine, retry=None, timeout=None, replace=True)
    assert list(snapshot) == ["work"]
    assert snapshot["work"].function is plain


class Mine:
    """A retry policy of one's own."""

    max_attempts = 2

    def retries(self, error: BaseException) -> bool:
        return True

    def delay(self, attempt: int) -> float:
        return 1.0


def test_w03_a_retry_policy_of_ones_own_is_accepted() -> None:
    """W3: what counts is what it answers."""
    policy = Mine()
    assert spec_of(plain, retry=policy).retry is policy


@pytest.mark.parametrize("policy", [3, True, "5", Mine, tenure.RetryPolicy, object(), {}])
def test_w03_what_is_no_retry_policy_is_refused(policy: Any) -> None:
    """W3: a number or the class itself is a likely mistake."""
    if policy is Mine:  # its bound is there, but calling its methods would fail
        policy = type("Zero", (Mine,), {"max_attempts": 0})()
    with pytest.raises(tenure.InvalidConfiguration) as caught:
        spec_of(plain, retry=policy)
    assert caught.value.option == "retry"


def test_the_nearest_name_is_suggested() -> None:
    """For `HandlerNotFound`."""
    known = {"send_email": spec_of(plain), "report": spec_of(plain)}
    assert nearest("send_emial", known) == " (did you mean 'send_email'?)"
    assert nearest("zzz", known) == ""
    assert nearest("anything", {}) == ""
