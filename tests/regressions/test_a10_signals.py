"""A10: on SIGTERM running jobs were cancelled at once, although there was a time to drain.

The kind of fault: a shutdown that ignores its drain budget. Here the first signal drains, the
second cancels and puts the jobs back, and the time of the drain is its end. (The programs are run
by `run_processes`: the library itself takes no signals.)

https://github.com/TkTech/chancy/issues/93
"""

import signal
from functools import partial

import pytest

from tests.process.stage import Program, Stage
from tests.process.waiting import wait_until
from tests.regressions.sites import LEASE
from tests.regressions.standing import standing_checks_of_stage

DRAIN = 2.0
SIGNALS = {
    "TERM": [signal.SIGTERM],
    "INT": [signal.SIGINT],
    "TERM TERM": [signal.SIGTERM, signal.SIGTERM],
    "INT INT": [signal.SIGINT, signal.SIGINT],
}


@pytest.fixture
def stage(each_stage: Stage) -> Stage:
    """On each store."""
    return each_stage


def start(stage: Stage) -> Program:
    """One process with a worker that takes two jobs at a time."""
    supervisor = {"processes": 1, "drain_timeout": DRAIN}
    return stage.start("many", supervisor=supervisor, concurrency=2, lease=LEASE)


def send(stage: Stage, program: Program, numbers: list[signal.Signals]) -> None:
    """One after the other, each when the one before has been noticed."""
    for count, number in enumerate(numbers, 1):
        program.send(number)
        wait_until(partial(noticed, stage, count), lambda: f"only {asked(stage)} were noticed")


def noticed(stage: Stage, count: int) -> bool:
    return asked(stage) >= count


def asked(stage: Stage) -> int:
    return sum("asked to stop" in entry["text"] for entry in stage.ledger.read("log"))


@pytest.mark.parametrize("name", ["TERM", "INT"])
def test_one_signal_lets_running_jobs_end_and_claims_no_more(stage: Stage, name: str) -> None:
    """W23, W25, (a): two run on to their end; the two behind them are not started."""
    program = start(stage)
    ids = stage.dispatch("nap", [1.0] * 4)
    stage.wait_for("start", 2)
    send(stage, program, SIGNALS[name])
    assert program.wait(seconds=DRAIN + 5.0) == 0
    assert len(stage.ledger.read("start")) == len(stage.ledger.read("end")) == 2
    assert sorted(job.state for job in stage.jobs(ids)) == ["completed"] * 2 + ["pending"] * 2
    finish(stage, ids)


def test_at_the_end_of_the_drain_jobs_are_cancelled_and_put_back(stage: Stage) -> None:
    """W23, (b): it ends within a second of the drain, with no attempt spent."""
    program = start(stage)
    ids = stage.dispatch("gate", range(2))
    stage.wait_for("start", 2)
    send(stage, program, SIGNALS["TERM"])
    assert program.wait(seconds=DRAIN + 5.0) == 8
    assert {(job.state, job.attempt) for job in stage.jobs(ids)} == {("pending", 0)}
    finish(stage, ids)


@pytest.mark.parametrize("name", ["TERM TERM", "INT INT"])
def test_the_second_signal_does_not_wait_for_the_drain(stage: Stage, name: str) -> None:
    """W25, (c): the jobs are back at once."""
    program = start(stage)
    ids = stage.dispatch("gate", range(2))
    stage.wait_for("start", 2)
    send(stage, program, SIGNALS[name])
    assert program.wait() == 8
    assert {(job.state, job.attempt) for job in stage.jobs(ids)} == {("pending", 0)}
    finish(stage, ids)


def test_a_signal_before_the_first_claim_ends_the_program(stage: Stage) -> None:
    """W23: whatever had been done of its start."""
    ids = stage.dispatch("gate", range(2))
    program = start(stage)
    program.send(signal.SIGTERM)
    stage.go.touch()
    assert program.wait() in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
    finish(stage, ids)


def finish(stage: Stage, ids: list[str]) -> None:
    """Another worker does what is left."""
    stage.go.touch()
    last = stage.start(lease=LEASE)
    stage.wait_completed(len(ids))
    last.stop()
    standing_checks_of_stage(stage, ids)
