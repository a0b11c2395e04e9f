"""The fixtures for pytest: found by pytest wherever tenure is installed, and none used by itself.

No fixture touches a test that does not ask for it. Nothing is imported before one is asked for.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tenure.queue import Queue
    from tenure.tasks import Tasks
    from tenure.testing.bench import Bench
    from tenure.testing.clock import ManualClock

__all__ = ["tenure_bench", "tenure_clock", "tenure_queue", "tenure_store", "tenure_tasks"]


@pytest.fixture
def tenure_tasks() -> "Iterable[Tasks]":
    """The sets of tasks that `tenure_bench` runs: none, unless a project has this fixture, too."""
    return ()


@pytest.fixture
def tenure_bench(tenure_tasks: "Iterable[Tasks]") -> "Iterator[Bench]":
    """A `tenure.testing.Bench` for one test, to which the tasks are bound meanwhile."""
    from tenure.testing.bench import Bench

    with Bench(tasks=tenure_tasks) as bench:
        yield bench


@pytest.fixture
def tenure_queue(tenure_bench: "Bench") -> "Queue":
    """The queue of the bench."""
    return tenure_bench.queue


@pytest.fixture
def tenure_clock(tenure_bench: "Bench") -> "ManualClock":
    """The clock of the bench, which stands still until the test moves it."""
    return tenure_bench.clock


@pytest.fixture
def tenure_store(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Makes empty stores: `tenure_store("sqlite")` is the URL of one, gone after the test.

    "redis" and "postgres" are a namespace or a schema of their own on the server that
    `TENURE_TEST_REDIS_URL` or `TENURE_TEST_POSTGRES_URL` names. Where that is not set the test is
    skipped, or fails if `TENURE_TEST_REQUIRE` is "all".
    """
    from tenure.testing.stores import Stores

    with Stores(tmp_path) as stores:
        yield stores.make
