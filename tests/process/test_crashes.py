"""Workers that die, freeze or stand still, as real processes on a real file or server."""

import signal
import time

import pytest

from tests.process.stage import Stage
from tests.process.waiting import wait_until

JOBS = 16


def completions(stage: Stage) -> dict[str, int]:
    """How often each job was recorded as completed."""
    found: dict[str, int] = {}
    for entry in stage.ledger.read("settled", outcome="Completed"):
        found[entry["id"]] = found.get(entry["id"], 0) + 1
    return found


def test_w20_jobs_of_a_killed_worker_are_restarted_within_a_lease_and_an_interval(
    each_stage: Stage,
) -> None:
    """I5, I7, W5, W20: SIGKILL while 16 jobs run; another worker finishes all, each once."""
    stage = each_stage
    stage.without_lifelines()
    lease = 2.0
    doomed = stage.start(lease=lease)
    ids = stage.dispatch("gate", range(JOBS))
    stage.wait_for("start", JOBS)
    heir = stage.start(lease=lease)
    time.sleep(lease)  # a lease and more: what lives is kept, and nothing moves
    assert stage.ledger.read("start", pid=heir.pid) == []
    killed = time.monotonic()
    doomed.kill()
    stage.go.touch()
    stage.wait_completed(JOBS)
    restarts = stage.ledger.read("start", pid=heir.pid)
    assert sorted(entry["id"] for entry in restarts) == sorted(ids)
    assert {entry["attempt"] for entry in restarts} == {2}
    # Extended last just before it died; looked for every two seconds; and a little to start it.
    assert max(entry["at"] for entry in restarts) - killed <= lease + lease + 1.5
    assert min(entry["at"] for entry in restarts) - killed >= lease / 2
    assert completions(stage) == dict.fromkeys(ids, 1)
    assert {(job.state, job.attempt) for job in stage.jobs(ids)} == {("completed", 2)}
    heir.stop()
    assert stage.ledger.read("error") == []


@pytest.mark.parametrize("handler", ["block", "spin"])
def test_w18_a_handler_that_blocks_the_loop_for_ten_leases_is_started_once(
    stage: Stage, handler: str
) -> None:
    """W18, I6: the keeper's thread goes on; the blocking is reported, with the job and its name."""
    lease = 1.2  # a third of it is longer than a loaded machine makes a loop wait
    blocked = stage.start(lease=lease)
    [job_id] = stage.dispatch(handler, [10 * lease])
    stage.wait_for("start", 1)
    bystander = stage.start(lease=lease)
    stage.wait_completed(1)
    assert [entry["pid"] for entry in stage.ledger.read("start")] == [blocked.pid]
    [job] = stage.jobs([job_id])
    assert (job.attempt, job.stalls, job.serial) == (1, 0, 1)
    blocked.stop()
    bystander.stop()
    errors = stage.ledger.read("error")
    assert len(errors) == 1, errors
    error = errors[0]
    assert error["kind"] == "LoopBlocked"
    assert (error["job_id"], error["name"], error["pid"]) == (job_id, handler, blocked.pid)
    assert error["seconds"] > 8 * lease
    assert f"_{handler}" in error["where"]


def test_w18_handlers_that_wait_behind_a_blocked_loop_are_started_once(stage: Stage) -> None:
    """W7, W18: they begin leases later, and their leases have been kept all the while."""
    lease = 1.2  # a third of it is longer than a loaded machine makes a loop wait
    ids = stage.dispatch("block", [2 * lease] * 3)
    blocked = stage.start(lease=lease)  # takes them all in one claim
    stage.wait_completed(3)
    assert {(job.attempt, job.stalls, job.serial) for job in stage.jobs(ids)} == {(1, 0, 1)}
    blocked.stop()


@pytest.mark.parametrize("handler", ["thread", "gate"])
def test_w15_a_worker_that_was_stopped_for_longer_than_its_lease_changes_nothing(
    each_stage: Stage, handler: str
) -> None:
    """W15, W19, I3: SIGSTOP, another worker takes over and finishes, SIGCONT: one completion."""
    stage = each_stage
    frozen = stage.start(lease=1.0)
    ids = stage.dispatch(handler, range(4))
    stage.wait_for("start", 4)
    heir = stage.start(lease=1.0)
    stage.freeze(frozen)
    stage.wait_for("start", 4, pid=heir.pid)
    stage.go.touch()
    stage.wait_completed(4)
    frozen.send(signal.SIGCONT)

    def told() -> set[str]:
        kinds = ["StateTransitionError"] if handler == "thread" else ["LeaseLost"]
        kinds += ["StateTransitionError"]
        return {
            entry["job_id"]
            for entry in stage.ledger.read("error", pid=frozen.pid)
            if entry["kind"] in kinds
        }

    wait_until(lambda: told() == set(ids), lambda: f"told of {told()}, not of all {ids}")
    refused = stage.ledger.read("error", pid=frozen.pid, kind="StateTransitionError")
    assert {entry["operation"] for entry in refused} <= {"complete"}
    if handler == "thread":  # it cannot be interrupted, so that each of them comes to its write
        assert {entry["job_id"] for entry in refused} == set(ids)
    assert completions(stage) == dict.fromkeys(ids, 1)
    assert {entry["pid"] for entry in stage.ledger.read("settled")} == {heir.pid}
    assert {(job.state, job.attempt) for job in stage.jobs(ids)} == {("completed", 2)}
    # It is as good a worker as before.
    heir.stop()
    [last] = stage.dispatch("quick", [None])
    stage.wait_for("settled", 1, id=last, pid=frozen.pid)
    frozen.stop()


def test_i5_five_thousand_jobs_through_one_worker_are_all_done_once(stage: Stage) -> None:
    """I5, W16: nothing lost, nothing doubled, dispatched while the worker runs."""
    worker = stage.start()
    ids = stage.dispatch("quick", range(5000))
    stage.wait_completed(5000, seconds=120.0)
    starts = [entry["id"] for entry in stage.ledger.read("start")]
    assert len(starts) == 5000
    assert set(starts) == set(ids)
    assert completions(stage) == dict.fromkeys(ids, 1)
    counts = stage.counts()
    assert (counts.pending, counts.processing, counts.failed) == (0, 0, 0)
    worker.stop()
    assert stage.ledger.read("error") == []
