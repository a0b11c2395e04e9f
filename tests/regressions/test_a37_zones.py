"""A37: jobs that were deferred to a naive local time ran at once.

The kind of fault: times without a zone, which mean something else in each process. A naive time is
refused; an aware one is due at that very instant, whatever zone it is written in, whatever zone the
machines are set to; and it is stored in UTC.

https://github.com/python-arq/arq/pull/184
"""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.process.stage import Stage
from tests.regressions.standing import standing_checks_of_stage

HERE, THERE = "America/New_York", "Asia/Tokyo"
WAYS = {"utc", "+02:00", "local", "fold"}
AHEAD = 3.0  # seconds until the jobs are due; the machine may be slow to dispatch them


def check_dispatched(stage: Stage, ahead: float) -> dict[str, datetime]:
    """The naive one was refused; when the others are due, as they were given and as stored."""
    [refused] = stage.ledger.read("refused")
    assert (refused["way"], refused["path"]) == ("naive", "at")
    assert "naive" in refused["text"]
    due: dict[str, datetime] = {}
    for entry in stage.ledger.read("dispatched"):
        stored = datetime.fromisoformat(entry["due"])
        assert stored.utcoffset() == timedelta(0)
        # fromisoformat knows no fold, but the offset is written out.
        assert abs(stored - datetime.fromisoformat(entry["at"])) < timedelta(milliseconds=1)
        assert 0 < stored.timestamp() - entry["now"] <= ahead
        due[entry["id"]] = stored
    assert {entry["way"] for entry in stage.ledger.read("dispatched")} == WAYS
    return due


def check_ran_in_time(stage: Stage, due: dict[str, datetime]) -> None:
    """Each once, at its instant and not before."""
    stage.wait_for("settled", len(WAYS), outcome="Completed")
    # The ledger has monotonic time, which is the same for all processes.
    apart = datetime.now(UTC).timestamp() - time.monotonic()
    starts = {entry["id"]: entry["at"] + apart for entry in stage.ledger.read("start")}
    assert len(stage.ledger.read("start")) == len(WAYS)
    assert set(starts) == set(due)
    for job_id, at in starts.items():
        assert -0.02 <= at - due[job_id].timestamp() < 10.0


def test_an_instant_is_the_same_in_every_zone(each_stage: Stage) -> None:
    """Dispatched in New York, run in Tokyo, in seconds; nothing is off by hours."""
    stage = each_stage
    worker = stage.start(zone=THERE, poll_interval=0.5)
    program = stage.start("zoned", zone=HERE, ahead=AHEAD)
    assert stage.ledger.read("zone")[0]["names"] == ["EST", "EDT"]
    due = check_dispatched(stage, AHEAD)
    assert len(stage.ledger.read("start")) == 0, "too early"
    check_ran_in_time(stage, due)
    jobs = stage.jobs(list(due))
    assert {job.id: job.run_at for job in jobs} == due
    assert {job.attempt for job in jobs} == {1}
    program.stop()
    worker.stop()
    assert stage.ledger.read("error") == []
    standing_checks_of_stage(stage, due)


@pytest.mark.parametrize("zone", [HERE, THERE])
def test_nor_does_it_matter_in_which_zone_a_process_with_a_store_of_its_own_is(
    tmp_path: Path, zone: str
) -> None:
    """The memory store, in one zone and in the other."""
    stage = Stage(tmp_path, "memory://")
    try:
        program = stage.start("zoned", zone=zone, works=True, ahead=AHEAD)
        due = check_dispatched(stage, AHEAD)
        check_ran_in_time(stage, due)
        program.stop()
        assert stage.ledger.read("error") == []
    finally:
        stage.close()


@pytest.mark.parametrize("ahead", [60.0, 86_400.0 * 300])
def test_a_minute_ahead_or_a_year_they_wait_for_their_instant(
    each_stage: Stage, ahead: float
) -> None:
    """Across the changes of clocks of both zones."""
    stage = each_stage
    worker = stage.start(zone=THERE, poll_interval=0.2)
    program = stage.start("zoned", zone=HERE, ahead=ahead)
    due = check_dispatched(stage, ahead)
    [last] = stage.dispatch("quick", [None])
    stage.wait_for("settled", 1, id=last)
    assert stage.counts().scheduled == len(due) == len(WAYS)
    assert [entry["id"] for entry in stage.ledger.read("start")] == [last]
    program.stop()
    worker.stop()
    assert stage.ledger.read("error") == []
    standing_checks_of_stage(stage, [*due, last])
