"""W1, W2: what a worker is built from, and what it refuses."""

import asyncio
import inspect
from datetime import timedelta
from typing import Any

import pytest

import tenure
from tenure.driver import Capability
from tenure.drivers.memory import MemoryDriver
from tests.runtime.arrange import Requests, hidden, running
from tests.runtime.scenes import errors_of
from tests.runtime.world import open_world


def queue_in_memory() -> tenure.Queue:
    return tenure.Queue(MemoryDriver())


# --- W1 -----------------------------------------------------------------------------------------


def test_w01_the_options_and_their_defaults_are_those_of_the_product_page() -> None:
    """W1: all keyword-only; the defaults are visible in the signature."""
    parameters = list(inspect.signature(tenure.Worker).parameters.values())
    assert parameters[0].name == "queue"
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters[1:])
    assert {p.name: p.default for p in parameters[1:]} == {
        "concurrency": 16,
        "poll_interval": 1.0,
        "job_timeout": 300.0,
        "lease": None,
        "drain_timeout": 25.0,
        "overdue_grace": None,
        "queues": None,  # "default", and those that the tasks name
        "tasks": (),
        "max_stalls": 5,
        "prefetch": 0,
        "name": None,
        "observers": (),
        "strict": False,
        "slots": None,
        "replacement_slots": 0,
        "retention": tenure.Retention(),
        "process_pool": None,
        "middleware": (),
        "overrides": None,
    }


@pytest.mark.parametrize("duration", [3, 3.0, timedelta(seconds=3)])
async def test_w01_durations_are_seconds_or_timedelta(duration: float | timedelta) -> None:
    """W1: each duration is taken in either form, and means the same."""
    async with open_world() as world:
        requests = Requests(world)
        worker = tenure.Worker(
            world.queue,
            poll_interval=duration,
            job_timeout=duration,
            lease=duration,
            drain_timeout=duration,
            overdue_grace=duration,
        )

        @worker.handler("endless", timeout=duration)
        async def endless(payload: None) -> None:
            await asyncio.Event().wait()

        job = await world.queue.dispatch("endless", timeout=duration)
        async with running(world, worker) as handle:
            await world.advance(2.99)
            assert await world.state(job) == "processing"
            await world.advance(0.01)
            assert await world.state(job) == "failed"
            assert {request.lease for request in requests.requests} == {3.0}
            [error] = errors_of(handle)
            assert isinstance(error, tenure.JobTimedOut)
            assert error.timeout == 3.0


async def test_w01_the_id_of_a_worker_is_random_and_its_name_is_for_people() -> None:
    """W1: two workers of one name, and two runs of one worker, have different ids."""
    async with open_world() as world:
        requests = Requests(world)
        workers = [tenure.Worker(world.queue, name="mail"), tenure.Worker(world.queue, name="mail")]
        async with (
            running(world, workers[0]) as first,
            running(world, workers[1]) as other,
            running(world, workers[0]) as again,
        ):
            await world.settle()
            ids = {first.worker_id, other.worker_id, again.worker_id}
            assert len(ids) == 3
            assert "mail" not in ids
            assert {request.worker for request in requests.requests} == ids


# --- W2 -----------------------------------------------------------------------------------------

REFUSED: list[tuple[str, Any, str]] = [
    ("concurrency", 0, "from 1"),
    ("concurrency", -1, "from 1"),
    ("concurrency", 1.5, "whole number"),
    ("concurrency", True, "whole number"),
    ("concurrency", "16", "whole number"),
    ("poll_interval", 0, "greater than 0"),
    ("poll_interval", -1.0, "greater than 0"),
    ("poll_interval", float("nan"), "finite"),
    ("poll_interval", float("inf"), "finite"),
    ("poll_interval", "1s", "seconds or a timedelta"),
    ("poll_interval", True, "seconds or a timedelta"),
    ("poll_interval", timedelta(0), "greater than 0"),
    ("job_timeout", 0, "greater than 0"),
    ("job_timeout", -0.5, "greater than 0"),
    ("job_timeout", timedelta(seconds=-1), "greater than 0"),
    ("job_timeout", timedelta.max, "ten years"),
    ("job_timeout", None, "seconds or a timedelta"),
    ("lease", 0, "greater than 0"),
    ("lease", -30, "greater than 0"),
    ("lease", float("inf"), "finite"),
    ("lease", 1e12, "ten years"),
    ("drain_timeout", -1, "not be negative"),
    ("drain_timeout", float("nan"), "finite"),
    ("overdue_grace", -1, "not be negative"),
    ("max_stalls", 0, "from 1 to 1,000"),
    ("max_stalls", 1001, "from 1 to 1,000"),
    ("max_stalls", None, "from 1 to 1,000"),
    ("prefetch", -1, "from 0"),
    ("queues", (), "queue names"),
    ("queues", "default", "queue names"),
    ("queues", ("a", "a"), "different"),
    ("queues", ("a", ""), "1 to 256 bytes"),
    ("queues", ("a", 5), "must be text"),
    ("queues", {}, "queue names"),
    ("queues", {"a": 1, "b\n": 1}, "control characters"),
    ("strict", 1, "True or False"),
    ("slots", 2, "must map"),
    ("slots", {"defualt": 2}, "did you mean 'default'"),
    ("replacement_slots", -1, "from 0"),
    ("replacement_slots", True, "from 0"),
    ("replacement_slots", 1.5, "from 0"),
    ("name", "", "1 to 256 bytes"),
    ("name", "a\nb", "control characters"),
]


@pytest.mark.parametrize(("option", "value", "rule"), REFUSED)
def test_w02_an_impossible_option_is_refused_by_name_value_and_rule(
    option: str, value: Any, rule: str
) -> None:
    """W2: `InvalidConfiguration` carries all three, and its text shows them."""
    options: dict[str, Any] = {option: value}
    with pytest.raises(tenure.InvalidConfiguration) as caught:
        tenure.Worker(queue_in_memory(), **options)
    error = caught.value
    assert error.option == option
    # The part of a list that is wrong, or the whole value.
    assert repr(error.value) in (repr(value), repr(str(value))) or repr(error.value) in repr(value)
    assert rule in error.rule
    assert option in str(error)
    assert error.rule in str(error)
    assert repr(error.value) in str(error)
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(
    "options",
    [
        {"concurrency": 1},
        {"poll_interval": 0.001},
        {"job_timeout": 0.001},
        {"lease": 0.5},
        {"max_stalls": 1},
        {"max_stalls": 1000},
        {"drain_timeout": 0},
        {"overdue_grace": 0},
        {"lease": 10.0, "job_timeout": 300.0},  # leases are extended here
    ],
)
def test_w02_the_bounds_themselves_are_accepted(options: dict[str, Any]) -> None:
    """W2: the first value inside each bound."""
    tenure.Worker(queue_in_memory(), **options)


NO_EXTEND = (Capability.EXTEND, Capability.KEEPER)


@pytest.mark.parametrize("lease", [299.0, 300.0, timedelta(minutes=5)])
async def test_w02_without_extend_a_lease_must_be_longer_than_the_job_timeout(
    lease: float | timedelta,
) -> None:
    """W2: equal is not longer."""
    async with open_world(**hidden("memory", *NO_EXTEND)) as world:
        with pytest.raises(tenure.InvalidConfiguration) as caught:
            tenure.Worker(world.queue, lease=lease)
        assert caught.value.option == "lease"
        assert caught.value.value == 299.0 or caught.value.value == 300.0
        assert "longer than every time limit (here 300 s)" in caught.value.rule
        tenure.Worker(world.queue, lease=300.5)


async def test_w02_without_extend_a_registration_must_not_outlast_the_lease() -> None:
    """W2: a time limit given at registration counts like the worker's own."""
    async with open_world(**hidden("memory", *NO_EXTEND)) as world:
        worker = tenure.Worker(world.queue, lease=400.0)
        worker.register("short", print, timeout=399.0)
        with pytest.raises(tenure.InvalidConfiguration) as caught:
            worker.register("long", print, timeout=400.0)
        assert (caught.value.option, caught.value.value) == ("lease", 400.0)
        # The refusal left nothing behind: the name is free.
        worker.register("long", print, timeout=10.0)


@pytest.mark.parametrize(
    ("missing", "timeout", "lease"),
    [((), None, 30.0), (NO_EXTEND, None, 600.0), (NO_EXTEND, 450.0, 900.0), ((), 450.0, 30.0)],
)
async def test_w02_the_default_lease_follows_what_the_store_can_do(
    missing: tuple[Capability, ...], timeout: float | None, lease: float
) -> None:
    """W2: 30 s where leases are extended, else twice the longest registered time limit."""
    async with open_world(**hidden("memory", *missing)) as world:
        requests = Requests(world)
        worker = tenure.Worker(world.queue)
        worker.register("work", print, timeout=timeout)
        async with running(world, worker):
            await world.settle()
            assert [request.lease for request in requests.requests] == [lease]
