"""How a worker shares itself among its queues."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tenure._runtime.lines import Lines
from tenure._runtime.settings import ServedQueue


def lines(weights: dict[str, float], *, strict: bool = False, concurrency: int = 16) -> Lines:
    queues = [ServedQueue(name=name, weight=weight) for name, weight in weights.items()]
    return Lines(queues, Counter[str], strict=strict, concurrency=concurrency)


def serve(asked: Lines, waiting: Counter[str], limit: int) -> Counter[str]:
    """What a store would give: queue by queue, as asked."""
    taken: Counter[str] = Counter()
    claims: list[Any] = []
    for queue in asked.ask(limit):
        count = min(waiting[queue.name], queue.limit, limit - sum(taken.values()))
        taken[queue.name] += count
        claims += [SimpleNamespace(job=SimpleNamespace(queue=queue.name))] * count
    asked.taken(claims)
    waiting.subtract(taken)
    return taken


def serve_often(asked: Lines, waiting: Counter[str], limit: int, *, times: int) -> Counter[str]:
    served: Counter[str] = Counter()
    for _ in range(times):
        served += serve(asked, waiting, limit)
    return served


@given(
    weights=st.lists(st.integers(1, 20), min_size=2, max_size=5),
    limits=st.lists(st.integers(1, 16), min_size=400, max_size=400),
)
def test_queues_with_work_are_served_by_weight(weights: list[int], limits: list[int]) -> None:
    """Whatever the number of free slots was each time: never off by more than two worker's full."""
    names = {f"q{n}": float(weight) for n, weight in enumerate(weights)}
    asked = lines(names)
    waiting = Counter(dict.fromkeys(names, 10**9))
    served: Counter[str] = Counter()
    for limit in limits:
        served += serve(asked, waiting, limit)
    total = sum(served.values())
    for name, weight in names.items():
        assert abs(served[name] - total * weight / sum(names.values())) <= 2 * 16


def test_a_queue_with_nothing_to_do_takes_nothing_from_the_others() -> None:
    asked = lines({"busy": 1, "idle": 100})
    waiting = Counter({"busy": 1000})
    assert serve_often(asked, waiting, 16, times=10) == {"busy": 160}


def test_a_queue_that_was_empty_for_long_takes_over_for_no_more_than_a_worker_full() -> None:
    """It is not owed what it had no use for."""
    asked = lines({"a": 1, "b": 1}, concurrency=10)
    waiting = Counter({"a": 10**6})
    for _ in range(100):
        serve(asked, waiting, 10)
    waiting["b"] = 10**6
    served = serve_often(asked, waiting, 10, times=20)
    assert 100 <= served["b"] <= 120


def test_strict_is_the_given_order_always() -> None:
    asked = lines({"first": 1, "second": 1}, strict=True)
    waiting = Counter({"first": 40, "second": 40})
    assert [dict(serve(asked, waiting, 16)) for _ in range(3)] == [
        {"first": 16, "second": 0},
        {"first": 16, "second": 0},
        {"first": 8, "second": 8},
    ]
