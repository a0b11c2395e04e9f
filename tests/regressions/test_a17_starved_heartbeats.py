"""A17: a handler that was busy with the CPU blocked the loop, and its job was run again elsewhere.

The kind of fault: heartbeats that depend on the event loop of the handlers. Here a thread of its
own extends the leases, and the blocking is told of.

https://github.com/OptimalBits/bull/issues/412
"""

from tests.process.stage import Stage
from tests.regressions.standing import standing_checks_of_stage

LEASE = 1.0
LONG = 3 * LEASE  # 5 in the recipe


def test_a_handler_that_spins_loses_no_lease_of_its_worker(each_stage: Stage) -> None:
    """W18, I6: neither its own nor those of the jobs beside it are started elsewhere."""
    stage = each_stage
    blocked = stage.start(lease=LEASE)
    beside = stage.dispatch("gate", range(2))
    stage.wait_for("start", 2)
    [spinning] = stage.dispatch("spin", [LONG])
    stage.wait_for("start", 3)
    idle = stage.start(lease=LEASE)
    stage.go.touch()
    stage.wait_completed(3)
    assert {entry["pid"] for entry in stage.ledger.read("start")} == {blocked.pid}
    jobs = stage.jobs([spinning, *beside])
    assert {(job.attempt, job.stalls, job.serial) for job in jobs} == {(1, 0, 1)}
    blocked.stop()
    idle.stop()
    errors = stage.ledger.read("error", job_id=spinning)
    assert {entry["kind"] for entry in errors} == {"LoopBlocked"}
    assert max(entry["seconds"] for entry in errors) > LEASE
    standing_checks_of_stage(stage, [spinning, *beside])
