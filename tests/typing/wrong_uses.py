"""Checked, not run: what type checkers must reject. A line that is accepted is an error here.

mypy reports an ignore that is not needed, and so does pyright where it is told to.
"""
# pyright: reportUnnecessaryTypeIgnoreComment=true

import tenure
from tenure.testing import Bench

tasks = tenure.Tasks()


@tasks.task
async def send(to: str, subject: str = "hi") -> int:
    return 1


@tasks.task
def resize(width: int) -> None: ...


async def wrong_arguments() -> None:
    await send.enqueue(1)  # type: ignore[arg-type]
    await send.enqueue()  # type: ignore[call-arg]
    await send.enqueue("a", body="b")  # type: ignore[call-arg]
    await send.using(delay=1).enqueue(2)  # type: ignore[arg-type]
    send.call("a", "b", "c")  # type: ignore[call-arg]
    resize("wide")  # type: ignore[arg-type]


async def options_among_the_arguments() -> None:
    await send.enqueue("a", delay=60)  # type: ignore[call-arg]
    send.using(to="a")  # type: ignore[call-arg]


async def another_result() -> None:
    handle = await send.enqueue("a")
    text: str = await handle.result()  # type: ignore[assignment]
    number: int = send("a")  # type: ignore[assignment]
    assert text, number


def no_such_option() -> None:
    tasks.task(attempts=3)  # type: ignore[call-overload]
    tasks.task(executor="thread")  # type: ignore[call-overload]
    tasks.bind("sqlite:///jobs.db")  # type: ignore[arg-type]
    tenure.Worker(tenure.connect("memory://"), tasks=tasks)  # type: ignore[arg-type]


async def another_job_of_a_bench(bench: Bench) -> None:
    await bench.process(send, 1)  # type: ignore[call-overload]
    bench.sync.process(send, "a", body="b")  # type: ignore[call-arg]
