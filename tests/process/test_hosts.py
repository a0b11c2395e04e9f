"""Programs that embed a worker, and end it in every way that a program can end."""

import signal
import time

import pytest

from tests.process.stage import Stage


def put_back(stage: Stage, ids: list[str]) -> bool:
    """Whether the jobs are waiting again, with no attempt spent."""
    return {(job.state, job.attempt) for job in stage.jobs(ids)} == {("pending", 0)}


@pytest.mark.parametrize("handler", ["gate", "block", "spin"])
def test_w13_a_real_interrupt_under_asyncio_run_puts_jobs_back_and_reaches_the_host(
    stage: Stage, handler: str
) -> None:
    """W13, W25: SIGINT while a handler runs; `asyncio.run` does what it always does."""
    host = stage.start("interrupted", drain_timeout=0.2)
    ids = stage.dispatch(handler, [3.0])
    stage.wait_for("start", 1)
    host.send(signal.SIGINT)
    assert host.wait(seconds=15.0) == 0, host.stderr
    assert len(stage.ledger.read("interrupted")) == 1
    assert host.stderr == ""
    if handler == "gate":
        assert put_back(stage, ids)
    else:  # it did not await, so that it came to its end first
        assert [job.state for job in stage.jobs(ids)] == ["completed"]


def test_w13_a_second_interrupt_under_asyncio_run_hits_a_handler_that_does_not_await(
    stage: Stage,
) -> None:
    """W13: the first one could not get through; now the jobs are put back at once."""
    host = stage.start("interrupted", drain_timeout=0.2)
    others = stage.dispatch("gate", range(3))
    stage.wait_for("start", 3)
    [hit] = stage.dispatch("spin", [20.0])
    stage.wait_for("start", 4)
    host.send(signal.SIGINT)
    time.sleep(0.3)  # two signals at once would be one
    assert host.running
    host.send(signal.SIGINT)
    assert host.wait(seconds=15.0) == 0, host.stderr
    assert len(stage.ledger.read("interrupted")) == 1
    assert put_back(stage, [hit, *others])
    assert host.stderr == ""


def test_w13_an_interrupt_that_hits_a_handler_puts_all_jobs_back_and_is_raised_again(
    stage: Stage,
) -> None:
    """W13: the loop is the host's own, so that Python raises from the line that is running."""
    host = stage.start("bare_loop")
    others = stage.dispatch("gate", range(3))
    stage.wait_for("start", 3)
    [hit] = stage.dispatch("spin", [20.0])
    stage.wait_for("start", 4)
    host.send(signal.SIGINT)
    assert host.wait(seconds=15.0) == 0, host.stderr
    assert len(stage.ledger.read("interrupted")) == 1
    assert put_back(stage, [hit, *others])
    assert host.stderr == ""
    outcomes = [entry["outcome"] for entry in stage.ledger.read("settled")]
    assert outcomes == ["Released"] * 4
    assert stage.ledger.read("error") == []


def test_w13_the_end_of_asyncio_run_puts_running_jobs_back(stage: Stage) -> None:
    """W13: the host returns from its main coroutine and forgets the worker."""
    host = stage.start("ending")
    ids = stage.dispatch("gate", range(3))
    stage.wait_for("start", 3)
    host.close_stdin()
    assert host.wait(seconds=15.0) == 0, host.stderr
    assert host.stderr == ""
    [ended] = stage.ledger.read("ended")
    assert ended["running"] is False
    assert put_back(stage, ids)
    assert stage.ledger.read("error") == []


def test_w25_a_host_keeps_its_own_signal_handler(stage: Stage) -> None:
    """W25: SIGTERM is the host's, before, while and after the worker runs."""
    host = stage.start("own_signals", drain_timeout=0.2)
    ids = stage.dispatch("gate", [None])
    stage.wait_for("start", 1)
    host.send(signal.SIGTERM)
    assert host.wait(seconds=15.0) == 0, host.stderr
    assert [entry["number"] for entry in stage.ledger.read("terminated")] == [signal.SIGTERM]
    assert [entry["kept"] for entry in stage.ledger.read("kept")] == [True]
    assert put_back(stage, ids)
    assert host.stderr == ""


def test_w12_a_stuck_thread_does_not_keep_the_interpreter_alive(stage: Stage) -> None:
    """W12, W23: the handler never returns; the program ends, its job is left to the lease."""
    host = stage.start("stuck")
    [job_id] = stage.dispatch("stuck", [None])
    stage.wait_for("start", 1)
    host.close_stdin()
    assert host.wait(seconds=15.0) == 0, host.stderr
    assert [entry["running"] for entry in stage.ledger.read("shut down")] == [False]
    closed, abandoned = stage.ledger.read("error")
    assert closed["kind"] == "RuntimeUnavailable"
    assert (abandoned["kind"], abandoned["job_id"]) == ("StateTransitionError", job_id)
    assert abandoned["operation"] == "release_after_shutdown"
    assert [job.state for job in stage.jobs([job_id])] == ["processing"]
    assert host.stderr == ""


def test_a_forked_child_dispatches_on_its_own_and_so_does_its_parent(stage: Stage) -> None:
    """Section 3: a child abandons what it inherited; nothing is lost or mixed up."""
    host = stage.start("forking")
    assert host.wait(seconds=30.0) == 0, host.stderr
    assert host.stderr == ""
    [done] = stage.ledger.read("done")
    assert done["codes"] == [0, 0, 0]
    ids = ["before", *(f"parent-{turn}" for turn in range(5))]
    ids += [f"child-{number}-{turn}" for number in range(3) for turn in range(5)]
    worker = stage.start()
    stage.wait_completed(len(ids))
    assert sorted(entry["id"] for entry in stage.ledger.read("start")) == sorted(ids)
    worker.stop()
