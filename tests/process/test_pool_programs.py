"""Programs whose workers have processes: none outlives its program, and how handlers are found."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.test_pool import STUCK
from tests.process.waiting import kill_left, wait_gone

ROOT = Path(__file__).parents[2]


@pytest.fixture
def started() -> Iterator[list[int]]:
    """Process ids of a test, of which none is left afterwards."""
    pids: list[int] = []
    yield pids
    kill_left(pids)


def start(*arguments: str, **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-W", "error", *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(*arguments: str, **environment: str) -> tuple[str, str]:
    """What a program writes that ends by itself."""
    process = start(*arguments, **environment)
    out, err = process.communicate(timeout=60)
    return out, err


def begun(process: "subprocess.Popen[str]", pids: list[int]) -> None:
    """Wait until a program tells of its processes."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    pids += map(int, line.split())


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.parametrize("stuck", [handler.__name__ for handler in STUCK])
def test_no_process_outlives_a_worker_that_is_killed(
    stuck: str, method: str, tmp_path: Path, started: list[int]
) -> None:
    """Neither an idle one, nor one that is stuck in C with the interpreter's lock."""
    program = ["-m", "tests.process.programs.pooled", method, stuck, str(tmp_path / "pid"), "wait"]
    with start(*program) as process:
        begun(process, started)
        assert len(set(started)) == 3
        process.kill()
    wait_gone(started)


def test_no_process_outlives_a_program_that_leaves(tmp_path: Path, started: list[int]) -> None:
    """And it does not wait for them."""
    path = str(tmp_path / "pid")
    program = ["-m", "tests.process.programs.pooled", "spawn", "spin_in_regex", path, "leave"]
    with start(*program) as process:
        begun(process, started)
        began = time.monotonic()
        assert process.wait(30) == 3
        assert time.monotonic() - began < 10.0
    wait_gone(started)


def test_handlers_in_the_program_itself_are_found() -> None:
    """By `multiprocessing`'s rules: the program is imported, under another name."""
    out, err = output("tests/process/programs/own_handlers.py", PYTHONPATH=str(ROOT))
    assert out.splitlines() == ["42", "2 Wrong: here"], err


def test_a_program_without_a_guard_is_told_what_is_wrong() -> None:
    """Its processes import it, and would each start a worker that takes jobs."""
    out, err = output(
        "tests/process/programs/own_handlers.py", PYTHONPATH=str(ROOT), UNGUARDED="yes"
    )
    assert out == ""
    assert "put what runs it under `if __name__ == '__main__':`" in err


def test_a_handler_of_no_file_is_refused() -> None:
    program = (
        "import tenure\n"
        "def work(payload): pass\n"
        "tenure.Worker(tenure.connect('memory://')).register('work', work, executor='process')\n"
    )
    _, err = output("-c", program)
    assert "handler must not be defined in an interactive session" in err


def test_nothing_depends_on_what_only_posix_has() -> None:
    """No modules, functions and signals of POSIX: results, time limits and deaths are as ever."""
    out, err = output("-m", "tests.process.programs.bare_system")
    assert out.splitlines() == ["42", "timeout", "panic", "2"], err


def test_a_worker_without_such_handlers_does_not_load_what_they_need() -> None:
    program = (
        "import asyncio, sys, tenure\n"
        "async def main():\n"
        "    async with tenure.connect('memory://') as queue:\n"
        "        async with tenure.Worker(queue).run():\n"
        "            await asyncio.sleep(0.05)\n"
        "asyncio.run(main())\n"
        "print('multiprocessing' in sys.modules, 'tenure._runtime.pool' in sys.modules)\n"
    )
    out, err = output("-c", program)
    assert out == "False False\n", err
