"""The programs in the README run as they are printed, and print what stands below them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"

_PROGRAM = re.compile(r"^```python\n(.*?)^```\n(?:\n^```text\n(.*?)^```\n)?", re.S | re.M)
_LINK = re.compile(r"\]\(([^)#:]+)\)")


def programs() -> list[tuple[str, str]]:
    """Each program with the output that is shown for it."""
    return _PROGRAM.findall(README.read_text(encoding="utf-8"))


def test_the_first_program_is_short() -> None:
    source, _ = programs()[0]
    assert len([line for line in source.splitlines() if line.strip()]) <= 15


@pytest.mark.parametrize("number", range(len(programs())))
def test_a_program_prints_what_the_readme_shows(number: int, tmp_path: Path) -> None:
    source, shown = programs()[number]
    assert shown, "a program stands without its output"
    (tmp_path / "program.py").write_text(source, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-X", "dev", "program.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert (ran.stdout, ran.returncode) == (shown, 0), ran.stderr
    assert "ResourceWarning" not in ran.stderr


def test_every_link_to_a_file_leads_somewhere() -> None:
    targets: list[str] = _LINK.findall(README.read_text(encoding="utf-8"))
    assert targets
    assert [target for target in targets if not (README.parent / target).exists()] == []
