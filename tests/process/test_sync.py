"""Programs that use `queue.sync` alone: they fork, are interrupted, and end without a close."""

import signal

from tests.process.stage import Stage


def test_forked_workers_of_a_threaded_server_dispatch_beside_their_parent(
    each_stage: Stage,
) -> None:
    """I5: nothing is lost, mixed up or hung; each ends as a program that closes nothing."""
    server = each_stage.start("blocking", what="serve")
    assert server.wait(seconds=60.0) == 0, server.stderr
    assert server.stderr == ""
    [done] = each_stage.ledger.read("done")
    assert done["codes"] == [0, 0]
    assert len(each_stage.ledger.read("served")) == 2
    ids = [f"{who}-{n}" for who in ("parent", "child-0", "child-1") for n in range(64)]
    assert each_stage.counts().pending == len(ids)
    assert {job.state for job in each_stage.jobs(ids)} == {"pending"}


def test_a_fork_finds_the_background_thread_with_no_lock_in_its_hands(each_stage: Stage) -> None:
    """Whoever it belongs to: in the child nobody would free it, and the next call would hang."""
    program = each_stage.start("blocking", what="hold")
    assert program.wait(seconds=60.0) == 0, program.stderr
    assert program.stderr == ""
    [done] = each_stage.ledger.read("done")
    assert done["codes"] == [0] * 20
    assert all(job.state == "pending" for job in each_stage.jobs([f"child-{n}" for n in range(20)]))


def test_an_interrupted_wait_ends_and_the_queue_can_still_be_used(stage: Stage) -> None:
    """Ctrl-C reaches the program; the job is not touched; the program then ends at once."""
    program = stage.start("blocking", what="wait")
    stage.wait_for("waits", 1)
    program.send(signal.SIGINT)
    assert program.wait(seconds=15.0) == 0, program.stderr
    assert [entry["state"] for entry in stage.ledger.read("interrupted")] == ["pending"]
    assert program.stderr == ""


def test_a_program_that_is_killed_while_it_waits_leaves_its_job(stage: Stage) -> None:
    """I5: the dispatch had returned."""
    program = stage.start("blocking", what="wait")
    stage.wait_for("waits", 1)
    program.send(signal.SIGKILL)
    assert program.wait(seconds=15.0) == -signal.SIGKILL
    assert stage.counts().pending == 1
