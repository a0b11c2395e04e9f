"""Handlers in processes, without one: options, names that lead to them, errors that come back."""

import asyncio
import functools
import sys
from collections.abc import Callable
from typing import Any

import pytest

import tenure
from tenure._runtime.pool.standin import class_names, stand_in
from tenure.process_pool import check_importable, found, handler_of, importable


def work(payload: Any) -> Any:
    return payload


class Service:
    @staticmethod
    def fixed(payload: Any) -> None: ...

    @classmethod
    def shared(cls, payload: Any) -> None: ...

    def method(self, payload: Any) -> None: ...

    def __call__(self, payload: Any) -> None: ...


def misnamed(payload: Any) -> None: ...


misnamed.__qualname__ = "work"


class Declared:
    """As a task stands where its function was."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__wrapped__ = function

    def __tenure_handler__(self, payload: Any, job: Any) -> Any:
        return ("called", payload)


@Declared
def declared(payload: Any) -> Any: ...


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("size", 0),
        ("size", 1.5),
        ("size", True),
        ("start_method", "fork"),
        ("start_method", 1),
        ("max_jobs", 0),
        ("memory_limit", 1000),
        ("memory_limit", "1G"),
        ("initializer", lambda: None),
        ("initializer", 3),
    ],
)
def test_an_impossible_option_is_refused_by_name(option: str, value: Any) -> None:
    with pytest.raises(tenure.InvalidConfiguration) as caught:
        tenure.ProcessPool(**{option: value})
    assert caught.value.option == option


def test_a_pool_is_a_value() -> None:
    assert tenure.ProcessPool(size=2) == tenure.ProcessPool(size=2)
    assert tenure.ProcessPool().max_jobs == 1000
    with pytest.raises(AttributeError):
        tenure.ProcessPool().size = 3  # type: ignore[misc] # that is the point


def test_a_limit_on_memory_needs_a_system_that_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(tenure.InvalidConfiguration, match="only Linux"):
        tenure.ProcessPool(memory_limit=2**30)


def test_the_pool_of_a_worker_is_one() -> None:
    with pytest.raises(tenure.InvalidConfiguration, match="process_pool"):
        tenure.Worker(tenure.connect("memory://"), process_pool=4)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "function",
    [work, Service.fixed, Service.shared, functools.cmp_to_key, len],
    ids=lambda function: function.__qualname__,
)
def test_a_name_leads_back_to_its_function(function: Callable[..., Any]) -> None:
    path = importable("handler", function)
    check_importable("handler", function, path)
    assert found(path) == function


def nested() -> Callable[..., Any]:
    def inner(payload: Any) -> None: ...

    return inner


AT_THE_TOP = "must be a function at the top of a module"
LOST: list[tuple[Callable[..., Any], str]] = [
    (lambda: None, "must not be a lambda"),
    (nested(), "must not be a function inside another"),
    (functools.partial(work, 1), AT_THE_TOP),
    (Service().method, AT_THE_TOP),
    (Service(), AT_THE_TOP),
]


@pytest.mark.parametrize(("function", "what"), LOST)
def test_what_no_process_could_find_is_refused_at_registration(
    function: Callable[..., Any], what: str
) -> None:
    worker = tenure.Worker(tenure.connect("memory://"))
    with pytest.raises(tenure.InvalidConfiguration) as caught:
        worker.register("work", function, executor="process")
    assert caught.value.option == "handler"
    assert what in str(caught.value)
    assert "move it to the top of a module" in str(caught.value)


def test_what_its_name_does_not_lead_to_is_refused() -> None:
    """As a plain registration, and as a decorated one when the worker runs."""
    worker = tenure.Worker(tenure.connect("memory://"))
    with pytest.raises(tenure.InvalidConfiguration, match="must be what its name"):
        worker.register("work", misnamed, executor="process")
    worker.handler("work", executor="process")(misnamed)

    async def run() -> None:
        worker.run()

    with pytest.raises(tenure.InvalidConfiguration, match="must be what its name"):
        asyncio.run(run())


def test_what_stands_for_a_function_is_called_by_its_handler() -> None:
    function = declared.__wrapped__
    path = importable("handler", function)
    check_importable("handler", function, path)
    assert handler_of(found(path))(1, None) == ("called", 1)
    assert handler_of(found(importable("handler", work))) is work


def test_a_task_with_dependencies_stays_in_the_worker() -> None:
    def pool() -> int:
        return 1

    tasks = tenure.Tasks()

    @tasks.task(executor="process")
    def needy(it: int = tenure.INJECTED) -> None: ...

    needy.function.__annotations__["it"] = _annotated(pool)
    needy.function.__qualname__ = "needy"
    with pytest.raises(tenure.InvalidConfiguration, match="since it has dependencies"):
        tenure.Worker(tenure.connect("memory://"), tasks=[tasks])


def _annotated(function: Callable[..., Any]) -> Any:
    from typing import Annotated

    return Annotated[int, tenure.Depends(function)]


# --- errors -------------------------------------------------------------------------------------


class Particular(Exception):
    def __init__(self, code: int, place: str) -> None:
        super().__init__(code, place)


class Frozen(ValueError):
    def __new__(cls, *args: Any) -> "Frozen":
        raise RuntimeError("not in this way")


class Text(OSError): ...


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("a"), ValueError),
        (Particular(1, "b"), Particular),
        (Text(2, "c"), Text),
        (ConnectionResetError("d"), ConnectionResetError),
        (ExceptionGroup("e", [ValueError()]), Exception),
        (UnicodeDecodeError("utf-8", b"", 0, 1, "f"), UnicodeDecodeError),
        (SystemExit(3), SystemExit),
        (StopIteration(4), Exception),  # which no coroutine can raise
        (tenure.JobNotFound("g"), tenure.JobNotFound),
    ],
)
def test_an_error_is_stood_for_by_the_nearest_class_that_can_be_made(
    error: BaseException, kind: type[BaseException]
) -> None:
    made = stand_in(class_names(error), str(error))
    assert type(made) is kind
    assert made.args == (str(error),)


def test_a_class_that_refuses_is_stood_for_by_its_base() -> None:
    names = tuple(f"{kind.__module__}:{kind.__qualname__}" for kind in Frozen.__mro__)
    assert type(stand_in(names, "text")) is ValueError


def test_a_class_that_is_not_loaded_here_is_not_loaded_for_that() -> None:
    names = ("antigravity:Error", "nowhere:Error", "builtins:LookupError")
    assert type(stand_in(names, "text")) is LookupError
    assert "antigravity" not in sys.modules


def test_what_is_no_error_stands_for_none() -> None:
    assert type(stand_in(("os:path", "builtins:int", "sys:modules"), "text")) is Exception
