"""`run_processes` is started and ended several times in one program, which keeps nothing of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.stage import Stage

PAUSES = (0.0, 0.0, 0.05, 0.3, 0.6, 1.2)  # before, while and after the processes start


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()


def test_worker_processes_are_started_and_ended_at_any_instant(stage: Stage) -> None:
    """Its threads, files and sockets are the same after each; nothing is said on stderr."""
    program = stage.start("again", pauses=PAUSES)
    assert program.wait(seconds=120.0) == 0, program.stderr
    statuses = [entry["status"] for entry in stage.ledger.read("ended")]
    assert len(statuses) == len(PAUSES)
    assert set(statuses) <= {"DONE", "HANDED_BACK"}
    assert "Traceback" not in program.stderr
