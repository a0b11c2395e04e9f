"""`run_processes`: several worker processes, and every way in which one or all of them end."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.process.stage import Program, Stage
from tests.process.waiting import alive, kill_left, wait_gone, wait_until


@pytest.fixture(autouse=True)
def nothing_left(stage: Stage) -> Iterator[None]:
    """Whatever a test has found, none of its processes is left."""
    yield
    for program in stage.programs:
        program.kill()
    kill_left(born(stage))


def start(stage: Stage, processes: int = 2, **options: Any) -> Program:
    """A supervisor, once all its processes run; `supervisor` are options of `run_processes`."""
    supervisor = {"processes": processes, **options.pop("supervisor", {})}
    program = stage.start("many", supervisor=supervisor, **options)
    wait_running(stage, processes)
    return program


def wait_running(stage: Stage, count: int) -> None:
    """Wait until so many processes have been started since the beginning."""
    wait_until(
        lambda: len(said(stage, " runs")) >= count,
        lambda: f"logged {stage.ledger.read('log')}; {[p.stderr for p in stage.programs]}",
    )


def said(stage: Stage, text: str) -> list[str]:
    """The lines with this text that the supervisor has logged."""
    return [entry["text"] for entry in stage.ledger.read("log") if text in entry["text"]]


def born(stage: Stage) -> list[int]:
    return [entry["pid"] for entry in stage.ledger.read("born")]


def ended(stage: Stage, program: Program) -> str:
    """The status that the program was given, which is its exit code as well."""
    code = program.wait()
    [entry] = stage.ledger.read("ended")
    assert entry["kept"], "the handlers of before are back"
    assert (
        code == {"DONE": 0, "NOT_STARTED": 4, "HANDED_BACK": 8, "INTERRUPTED": 130}[entry["status"]]
    )
    wait_gone(born(stage))
    return str(entry["status"])


def ask_to_stop(stage: Stage, program: Program, number: int = signal.SIGTERM) -> None:
    """Send one more signal, and wait until it has been noticed: two at once would be one."""
    before = len(said(stage, "asked to stop"))
    program.send(signal.Signals(number))
    wait_until(
        lambda: len(said(stage, "asked to stop")) > before, lambda: "the signal was not noticed"
    )


@pytest.mark.parametrize("app", ["app", "tests.process.programs.many:awaited"])
def test_all_jobs_of_two_queues_are_done_once_by_both_processes(stage: Stage, app: str) -> None:
    """I2, I5: the processes share the work, whatever names the app."""
    program = start(stage, queues=["default", "other"], concurrency=2, supervisor={"app": app})
    ids = stage.dispatch("nap", [0.01] * 100)
    ids += stage.dispatch("nap", [0.01] * 100, queue="other")
    stage.wait_completed(200)
    starts = stage.ledger.read("start")
    assert sorted(entry["id"] for entry in starts) == sorted(ids)
    assert {entry["pid"] for entry in starts} == set(born(stage))
    assert len(born(stage)) == 2
    assert program.pid not in born(stage)
    ask_to_stop(stage, program)
    assert ended(stage, program) == "DONE"
    assert program.stderr == ""


def test_a_killed_process_is_replaced_and_its_jobs_run_again(stage: Stage) -> None:
    """I7, W20: SIGKILL, and again; its place is filled at once, and then after a pause."""
    program = start(stage, processes=1, lease=1.5)
    ids = stage.dispatch("gate", range(4))
    stage.wait_for("start", 4)
    os.kill(born(stage)[0], signal.SIGKILL)
    wait_running(stage, 2)
    os.kill(born(stage)[1], signal.SIGKILL)
    wait_running(stage, 3)
    stage.go.touch()
    stage.wait_completed(4)
    assert {job.state for job in stage.jobs(ids)} == {"completed"}
    assert {job.attempt for job in stage.jobs(ids)} <= {2, 3}
    first, second = said(stage, "was killed by SIGKILL")
    assert first.endswith("takes its place now")
    assert "takes its place in 0." in second
    ask_to_stop(stage, program)
    assert ended(stage, program) == "DONE"


def test_a_process_with_a_sigterm_of_its_own_drains_and_is_replaced(stage: Stage) -> None:
    """An operator ends one process: its jobs come to their end, the other one goes on."""
    program = start(stage, concurrency=4)
    ids = stage.dispatch("gate", range(8))
    stage.wait_for("start", 8)
    os.kill(born(stage)[0], signal.SIGTERM)
    stage.go.touch()
    wait_running(stage, 3)
    stage.wait_completed(8)
    assert {(job.state, job.attempt) for job in stage.jobs(ids)} == {("completed", 1)}
    assert len(said(stage, "ended with exit code 0; another one takes its place")) == 1
    assert alive(born(stage)[1])
    ask_to_stop(stage, program)
    assert ended(stage, program) == "DONE"
    assert program.stderr == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_lets_running_jobs_finish(stage: Stage, number: int) -> None:
    """W25: of a Ctrl-C the processes, to which a terminal sends it as well, hear nothing."""
    program = start(stage, concurrency=4)
    ids = stage.dispatch("gate", range(8))
    stage.wait_for("start", 8)
    if number == signal.SIGINT:
        for pid in born(stage):
            os.kill(pid, number)
    ask_to_stop(stage, program, number)
    stage.go.touch()
    assert ended(stage, program) == "DONE"
    assert {(job.state, job.attempt) for job in stage.jobs(ids)} == {("completed", 1)}
    assert program.stderr == ""


def test_the_second_signal_puts_running_jobs_back(stage: Stage) -> None:
    """W23, W25: at once, with no attempt spent, though there was time to drain."""
    program = start(stage, concurrency=4)
    ids = stage.dispatch("gate", range(8))
    stage.wait_for("start", 8)
    ask_to_stop(stage, program)
    ask_to_stop(stage, program)
    assert ended(stage, program) == "HANDED_BACK"
    assert {(job.state, job.attempt) for job in stage.jobs(ids)} == {("pending", 0)}
    assert program.stderr == ""


def test_the_third_signal_kills(stage: Stage) -> None:
    """W25: not even a handler that blocks its event loop delays it."""
    program = start(stage, concurrency=1)
    stage.dispatch("spin", [60.0] * 2)
    stage.wait_for("start", 2)
    for _ in range(3):
        ask_to_stop(stage, program)
    assert ended(stage, program) == "INTERRUPTED"


def test_the_end_of_the_drain_time_puts_jobs_back_also_those_of_stuck_threads(
    stage: Stage,
) -> None:
    """W12, W23: their threads end with the processes, so that nothing waits for the lease."""
    program = start(stage, concurrency=2, supervisor={"drain_timeout": 0.2})
    ids = stage.dispatch("gate", range(2)) + stage.dispatch("stuck", range(2))
    stage.wait_for("start", 4)
    ask_to_stop(stage, program)
    assert ended(stage, program) == "HANDED_BACK"
    assert {(job.state, job.attempt) for job in stage.jobs(ids)} == {("pending", 0)}
    assert program.stderr == ""


@pytest.mark.parametrize("handler", ["gate", "stuck", "spin"])
def test_a_killed_supervisor_leaves_no_process_behind(stage: Stage, handler: str) -> None:
    """They notice at once, drain, and end, whatever their handlers do."""
    program = start(stage, concurrency=1, supervisor={"drain_timeout": 0.2})
    ids = stage.dispatch(handler, [60.0] * 2)
    stage.wait_for("start", 2)
    program.kill()
    wait_gone(born(stage))
    if handler != "spin":  # which leaves them to their lease
        assert {(job.state, job.attempt) for job in stage.jobs(ids)} == {("pending", 0)}


@pytest.mark.parametrize(
    ("app", "why", "printed"),
    [
        ("no.such.module:app", "exit code 1", "ModuleNotFoundError: No module named 'no'"),
        ("broken", "exit code 1", "LookupError: no such thing here"),
        ("nothing", "app must return a tenure.Worker; it returned None", ""),
        ("tests.process.programs.many:ap", "has no 'ap' (did you mean 'app'?)", ""),
    ],
)
def test_an_app_that_is_no_worker_is_tried_and_told_once(
    stage: Stage, app: str, why: str, printed: str
) -> None:
    """Four processes were asked for: one is enough to find out."""
    program = stage.start("many", supervisor={"processes": 4, "app": app})
    assert ended(stage, program) == "NOT_STARTED"
    assert len(born(stage)) <= 1
    [line] = said(stage, "could not start")
    assert why in line
    assert program.stderr.count("Traceback") == (1 if printed else 0)
    assert printed in program.stderr


def test_a_program_that_forgot_to_say_what_is_its_main_part_is_told(tmp_path: Path) -> None:
    """Its processes import it, and would start processes of their own."""
    program = tmp_path / "program.py"
    program.write_text("import tenure\ndef app(): ...\ntenure.run_processes(app, 2)\n")
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60)
    assert ran.stderr.count("Traceback") == 1
    assert "put the call under `if __name__ == '__main__':`" in ran.stderr
    assert "could not start: ended with exit code 1; nothing else is tried" in ran.stderr


def test_a_process_whose_worker_stays_unhealthy_is_replaced(stage: Stage) -> None:
    """W12, W26: its only slot is held by a thread that nothing can interrupt."""
    program = start(
        stage,
        processes=1,
        concurrency=1,
        drain_timeout=0.1,
        supervisor={"replace_unhealthy": 0.1},
    )
    stage.dispatch("stuck", [None], timeout=0.1)
    wait_running(stage, 2)
    assert len(said(stage, "exit code 7, unhealthy; another one takes its place")) >= 1
    program.kill()
    wait_gone(born(stage))
