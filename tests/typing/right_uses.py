"""Checked, not run: what type checkers must accept, and know the types of."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Annotated, Any, assert_type

import tenure
from tenure import INJECTED, Depends
from tenure.testing import Bench, Processed

tasks = tenure.Tasks(prefix="mail.")


class Receipt:
    number: int


class Pool: ...


async def pool() -> AsyncIterator[Pool]:
    yield Pool()


@tasks.task
async def bare(to: str, subject: str = "hi") -> Receipt:
    raise NotImplementedError


@tasks.task()
def empty(number: int) -> list[int]:
    return [number]


@tasks.task(queue="mail", max_attempts=5, timeout=30, executor="process")
def full(number: int) -> None: ...


@tasks.task
async def injected(
    to: str,
    pool: Annotated[Pool, Depends(pool)] = INJECTED,
    job: tenure.RunningJob = INJECTED,
) -> int:
    return job.attempt


async def calls(queue: tenure.Queue) -> None:
    assert_type(await bare("a", subject="b"), Receipt)
    assert_type(empty(1), list[int])
    handle = await bare.enqueue("a", subject="b")
    assert_type(handle, tenure.JobHandle[Receipt])
    assert_type(await handle.result(timeout=1), Receipt)
    assert_type(await (await empty.enqueue(1)).result(), list[int])
    assert_type(await (await injected.enqueue("a")).result(), int)
    assert_type(empty.enqueue_sync(1).result(), list[int])
    assert_type(bare.using(delay=1).enqueue_sync("a"), tenure.SyncJobHandle[Receipt])
    later = await bare.using(delay=60, unique="a", on=queue).enqueue("a")
    assert_type(later, tenure.JobHandle[Receipt])
    assert_type(full.call(1), tenure.Call)
    assert_type(await queue.dispatch("name", {"any": "payload"}), tenure.JobHandle[Any])
    await queue.dispatch_many([bare.call("a"), tenure.Call("name")])


def blocking(queue: tenure.Queue) -> None:
    with queue.sync as twin:
        assert_type(twin, tenure.SyncQueue)
        assert_type(twin.dispatch("name"), tenure.SyncJobHandle[Any])
        assert_type(twin.cancel("one"), tenure.Answer)
        assert_type(twin.cancel(["one", "two"]), Sequence[tenure.Answer])
        assert_type(twin.move("one", priority=1), tenure.Answer)
        assert_type(twin.get("one").state, tenure.State)
        assert_type(twin.counts(), tenure.Counts)


async def testing(bench: Bench) -> None:
    assert_type((await bench.process(bare, "a", subject="b")).result, Receipt)
    assert_type((await bench.time_out(bare.using(delay=0), "a")).result, Receipt)
    assert_type(bench.sync.process(empty, 1), Processed[list[int]])
    assert_type(await bench.process("name", {"any": "payload"}), Processed[Any])
    assert_type(await bench.drain(with_scheduled=True), list[tenure.Job[Any]])


async def timing(job: tenure.RunningJob, call: Callable[[], Awaitable[Any]]) -> Any:
    return await call()


def workers(queue: tenure.Queue) -> None:
    around: list[tenure.Middleware] = [timing]
    worker = tenure.Worker(queue, tasks=[tasks], middleware=around, overrides={pool: Pool})

    @worker.on_start
    async def start() -> None: ...

    @worker.on_stop
    def stop() -> None: ...

    @worker.handler("name")
    async def handle(payload: Any, job: tenure.RunningJob) -> None: ...
