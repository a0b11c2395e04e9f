"""The table of the recipes says what there is."""

import subprocess
import sys

from tests.regressions.table import PAGE, STORES


def test_the_table_of_recipes_is_what_is_collected() -> None:
    """In a process of its own, since pytest collects once in each."""
    made = subprocess.run(
        [sys.executable, "-m", "tests.regressions.table"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    assert made.stdout == PAGE.read_text(encoding="utf-8")


def test_every_recipe_runs_on_a_store_but_those_of_no_store() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if "| A" in line]
    assert len(rows) >= 50
    assert [row for row in rows if "| x |" not in row] == []
    assert rows[0].count("|") == len(STORES) + 3
