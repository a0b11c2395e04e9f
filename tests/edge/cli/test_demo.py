"""`tenure demo`: the tour, with every job accounted for, and nothing left behind."""

import io
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tenure
from tenure.cli.tour.screen import Screen
from tenure.cli.tour.tour import account
from tests.edge.cli.running import lines, run


def test_every_job_is_accounted_for_and_the_file_is_gone(tmp_path: Path) -> None:
    ran = run("demo", "--json", env={"TMPDIR": str(tmp_path)}, cwd=tmp_path)
    assert ran.code == 0, ran.err
    told = ran.json
    assert told["problems"] == []
    assert told["dispatched"] > 100
    assert (told["failed"], told["cancelled"], told["waiting"]) == (2, 1, 1)
    assert told["completed"] == told["dispatched"] - 4
    assert "every job is accounted for" in ran.err
    assert "SIGKILL" in ran.err
    assert "\x1b" not in ran.err
    assert list(tmp_path.iterdir()) == []


def test_2_it_has_a_store_of_its_own() -> None:
    ran = run("demo", "--url", "sqlite:///jobs.db")
    assert ran.code == 2
    assert "--url has no place here" in lines(ran)[0]


@pytest.mark.parametrize(
    ("name", "counts", "problem"),
    [
        ("comes-later", tenure.Counts(completed=1), "comes-later is failed, not completed"),
        ("takes-too-long", tenure.Counts(), "the sum is 0"),
        ("takes-too-long", tenure.Counts(failed=2), "the sum is 2"),
    ],
)
def test_what_does_not_come_out_is_told(name: str, counts: tenure.Counts, problem: str) -> None:
    handle: Any = SimpleNamespace(id="1")
    job: Any = SimpleNamespace(id="1", name=name, state=tenure.State.FAILED, error=None)
    shown = io.StringIO()
    result = account(Screen(shown), [handle], [job], counts)
    assert any(problem in each for each in result.problems)
    assert problem in shown.getvalue()
    assert "accounted for" not in shown.getvalue()


def test_a_job_that_is_not_in_the_store_is_told() -> None:
    handle: Any = SimpleNamespace(id="1")
    result = account(Screen(io.StringIO()), [handle], [], tenure.Counts(completed=1))
    assert result.problems == ("the jobs in the store are not those that were dispatched",)


def test_the_command_line_does_not_load_the_tour() -> None:
    program = "import sys, tenure.cli.program; print([m for m in sys.modules if 'tour' in m])"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"
