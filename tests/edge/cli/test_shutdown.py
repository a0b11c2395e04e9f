"""The promise of a shutdown, kept by a whole program: two processes, 32 running jobs, each store.

The bound is what is promised (drain time + 1 s), and what a program takes to leave that runs
nothing: that is measured beside it, on the same machine at the same time.
"""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

import tenure
from tests.edge.cli.programs import Program, Start
from tests.process.waiting import wait_until

DRAIN = 3.0
PROMISED = DRAIN + 1.0
JOBS = 32

APP = """
import asyncio
import os
import threading
import time

import tenure

queue = tenure.connect(os.environ["TENURE_URL"])


async def waits(path):
    while not os.path.exists(path):
        await asyncio.sleep(0.01)


def works(path):
    while not os.path.exists(path):
        time.sleep(0.01)


def app():
    worker = tenure.Worker(queue, concurrency=16, drain_timeout=3)
    worker.register("waits", waits)
    worker.register("works", works)
    return worker
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "long.py").write_text(APP, encoding="utf-8")
    return tmp_path


def dispatch(url: str, names: Sequence[str], path: Path) -> list[str]:
    async def use() -> list[str]:
        async with tenure.connect(url) as queue:
            jobs = await queue.dispatch_many([tenure.Call(name, str(path)) for name in names])
            return [job.id for job in jobs]

    return asyncio.run(use())


def ends(url: str, ids: Sequence[str]) -> Counter[tuple[str, int, int]]:
    """How many of the jobs have which state, attempt and stalls."""

    async def use() -> Counter[tuple[str, int, int]]:
        async with tenure.connect(url) as queue:
            jobs = [await queue.get(job_id) for job_id in ids]
            return Counter((str(job.state), job.attempt, job.stalls) for job in jobs)

    return asyncio.run(use())


def running(url: str) -> int:
    async def use() -> int:
        async with tenure.connect(url) as queue:
            return (await queue.counts()).processing

    return asyncio.run(use())


def started(start: Start, url: str) -> Program:
    program = start("long:app", "--processes", "2", on=url)
    program.says(" runs", 2)
    return program


def seconds_to_end(program: Program) -> float:
    began = time.monotonic()
    program.send(signal.SIGTERM)
    wait_until(lambda: program.process.poll() is not None, lambda: program.stderr)
    return time.monotonic() - began


def to_leave(start: Start, url: str) -> float:
    """What two idle processes and their program take."""
    program = started(start, url)
    seconds = seconds_to_end(program)
    assert program.process.returncode == 0, program.stderr
    return seconds


def loaded(start: Start, url: str, names: Sequence[str], path: Path) -> tuple[Program, list[str]]:
    """A program with so many running jobs."""
    program = started(start, url)
    ids = dispatch(url, names, path)
    wait_until(lambda: running(url) == len(ids), lambda: f"{running(url)} run; {program.stderr}")
    return program, ids


@pytest.mark.parametrize("kinds", [["waits"], ["works"], ["waits", "works"]], ids="+".join)
def test_jobs_that_outlast_the_drain_time_are_put_back_in_time_with_no_attempt_spent(
    each_url: str, folder: Path, start: Start, kinds: list[str]
) -> None:
    """W23: 8, whatever runs them; also threads that nothing can interrupt."""
    idle = to_leave(start, each_url)
    program, ids = loaded(start, each_url, kinds * (JOBS // len(kinds)), folder / "never")
    seconds = seconds_to_end(program)
    print(f"{each_url.partition(':')[0]} {'+'.join(kinds)}: {seconds:.2f} s, idle {idle:.2f} s")  # noqa: T201  # what was measured is a result
    assert program.process.returncode == 8, program.stderr
    assert ends(each_url, ids) == {("pending", 0, 0): JOBS}
    assert DRAIN <= seconds < PROMISED + max(1.0, 2 * idle)
    assert "Traceback" not in program.stderr


def test_jobs_that_end_within_the_drain_time_are_completed(
    each_url: str, folder: Path, start: Start
) -> None:
    """W23: 0, as soon as the last of them has ended."""
    idle = to_leave(start, each_url)
    program, ids = loaded(start, each_url, ["waits", "works"] * (JOBS // 2), folder / "go")
    program.send(signal.SIGTERM, "asked to stop")
    (folder / "go").touch()
    began = time.monotonic()
    wait_until(lambda: program.process.poll() is not None, lambda: program.stderr)
    print(f"{each_url.partition(':')[0]}: {time.monotonic() - began:.2f} s, idle {idle:.2f} s")  # noqa: T201  # what was measured is a result
    assert program.process.returncode == 0, program.stderr
    assert ends(each_url, ids) == {("completed", 1, 0): JOBS}
