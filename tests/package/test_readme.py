"""The programs in the pages run as they are printed, and print what stands below them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [
    README,
    *(
        ROOT / "docs" / page
        for page in (
            "control.md",
            "encryption.md",
            "limits.md",
            "logging.md",
            "metrics.md",
            "process-handlers.md",
            "processes.md",
            "schedules.md",
            "sync.md",
            "tasks.md",
            "tracing.md",
            "testing.md",
            "transactions.md",
        )
    ),
]

_PROGRAM = re.compile(r"^```python\n(.*?)^```\n(?:\n^```text\n(.*?)^```\n)?", re.S | re.M)
_LINK = re.compile(r"\]\(([^)#:]+)\)")


def programs(page: Path) -> list[tuple[str, str]]:
    """Each program with the output that is shown for it."""
    return _PROGRAM.findall(page.read_text(encoding="utf-8"))


def test_the_first_program_is_short() -> None:
    source, _ = programs(README)[0]
    assert len([line for line in source.splitlines() if line.strip()]) <= 15


@pytest.mark.parametrize(
    ("page", "number"),
    [(page, number) for page in PAGES for number in range(len(programs(page)))],
    ids=lambda value: value.name if isinstance(value, Path) else str(value),
)
def test_a_program_prints_what_its_page_shows(page: Path, number: int, tmp_path: Path) -> None:
    source, shown = programs(page)[number]
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


@pytest.mark.parametrize(
    "page", [README, *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.name
)
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    targets: list[str] = _LINK.findall(page.read_text(encoding="utf-8"))
    assert targets or page != README
    assert [target for target in targets if not (page.parent / target).exists()] == []
