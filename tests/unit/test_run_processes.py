"""What `run_processes` refuses before it starts anything. What it does is in tests/process."""

import threading
from itertools import pairwise
from multiprocessing.context import SpawnContext
from typing import Any

import pytest

import tenure
from tenure._processes.app import made, worker_of
from tenure._processes.place import Place
from tenure._processes.terms import ChildSettings

worker = tenure.Worker(tenure.connect("memory://"))


def app() -> tenure.Worker:
    return worker


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        (worker, "a function that makes the worker"),
        (lambda: worker, "a function at the top of a module"),
        ("shop.jobs", "'module:attribute'"),
        (":app", "'module:attribute'"),
        (4, "'module:attribute'"),
    ],
)
def test_an_app_that_no_process_could_find_is_refused(wrong: Any, rule: str) -> None:
    with pytest.raises(tenure.InvalidConfiguration, match=rule) as refused:
        tenure.run_processes(wrong, 2)
    assert refused.value.option == "app"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("processes", 0),
        ("processes", True),
        ("processes", 2.0),
        ("drain_timeout", -1),
        ("drain_timeout", "long"),
        ("replace_unhealthy", float("nan")),
    ],
)
def test_an_option_out_of_bounds_is_refused(option: str, value: Any) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(tenure.InvalidConfiguration) as refused:
        tenure.run_processes(app, **options)
    assert refused.value.option == option


async def test_within_an_event_loop_it_is_refused() -> None:
    with pytest.raises(tenure.RuntimeUnavailable, match=r"Worker\.run"):
        tenure.run_processes(app, 1)


def test_outside_of_the_main_thread_it_is_refused() -> None:
    refused: list[str] = []

    def call() -> None:
        try:
            tenure.run_processes(app, 1)
        except tenure.RuntimeUnavailable as error:
            refused.append(str(error))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert "main thread" in refused[0]


def test_a_name_leads_to_a_worker_or_to_a_function_that_makes_one() -> None:
    module = __name__
    assert made(f"{module}:app") is made(f"{module}:worker") is worker


def test_a_name_that_is_not_there_suggests_the_nearest() -> None:
    with pytest.raises(tenure.InvalidConfiguration, match=r"did you mean 'worker'.*workers worker"):
        made(f"{__name__}:workr")


@pytest.mark.parametrize(("returned", "kind"), [(None, "None"), ("worker", "type str")])
def test_a_function_that_makes_no_worker_is_refused(returned: object, kind: str) -> None:
    with pytest.raises(tenure.InvalidConfiguration, match=kind):
        worker_of(returned)


class Exhausted(SpawnContext):
    """A system that has nothing to give any more."""

    def Pipe(self, duplex: bool = True) -> Any:
        raise OSError("too many open files")


def test_a_place_that_cannot_be_filled_is_tried_later_and_later() -> None:
    settings = ChildSettings(drain=None, replace_unhealthy=None)
    place = Place(1, app, settings, Exhausted())
    due: list[float] = []
    for _ in range(4):
        with pytest.raises(OSError, match="too many"):
            place.start()
        assert not place.filled
        due.append(place.due)
    pauses = [later - sooner for sooner, later in pairwise(due)]
    assert due == sorted(due)
    assert pauses[2] > pauses[0]
