"""A worker for other circumstances, and one that claims no more."""

import asyncio

import pytest

import tenure


async def _nothing(payload: object) -> None:
    return


def _worker() -> tenure.Worker:
    queue = tenure.connect("memory://")
    worker = tenure.Worker(queue, queues={"a": 2, "b": 1}, slots={"a": 1}, concurrency=4)
    worker.register("nothing", _nothing)
    return worker


def test_an_adjusted_worker_has_what_was_given_and_keeps_the_rest() -> None:
    worker = _worker()
    other = worker.adjusted(queues=["a", "c"])
    assert (worker.queues, other.queues) == (("a", "b"), ("a", "c"))
    assert other.queue is worker.queue
    assert list(other.handlers) == ["nothing"]
    assert worker.adjusted().queues == worker.queues


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"queues": []}])
def test_what_a_worker_refuses_an_adjusted_one_refuses_too(wrong: dict[str, list[str]]) -> None:
    with pytest.raises(tenure.InvalidConfiguration):
        _worker().adjusted(**wrong)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def test_observers_are_told_besides_its_own() -> None:
    told: list[str] = []
    done = asyncio.Event()

    def observe(event: tenure.Event) -> None:
        told.append(type(event).__name__)
        if isinstance(event, tenure.JobSettled):
            done.set()

    worker = _worker().adjusted(observers=[observe])
    async with worker.queue as queue, worker.run():
        await queue.dispatch("nothing", queue="a")
        await done.wait()
    assert "JobStarted" in told


@pytest.mark.parametrize("early", [True, False])
async def test_a_worker_that_stopped_claiming_finishes_what_it_has(early: bool) -> None:
    """Also when it was told to before it had begun."""
    started, go = asyncio.Event(), asyncio.Event()

    async def gate(payload: object) -> None:
        started.set()
        await go.wait()

    worker = _worker()
    worker.register("gate", gate)
    async with worker.queue as queue, worker.run() as handle:
        first = await queue.dispatch("gate", queue="b")
        if not early:
            await started.wait()
        handle.stop_claiming()
        second = await queue.dispatch("nothing", queue="b")
        go.set()
        if not early:
            await first.result(timeout=10)
        await handle.shutdown()
        assert (await queue.get(second.id)).state == "pending"
        assert (await queue.get(first.id)).state == ("pending" if early else "completed")
