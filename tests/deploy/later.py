"""A later tenure: a copy of the package with a migration more on each store, run as a program.

No part of it is replaced while it runs: it is what a release with a new schema would be.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import tenure
from tests.edge.cli.running import Ran

__all__ = ["Release", "later", "this"]

_SQLITE = """
ALTER TABLE tenure_jobs ADD COLUMN note TEXT;
CREATE INDEX tenure_jobs_note ON tenure_jobs (note);
"""
_POSTGRES = "ALTER TABLE {schema}.jobs ADD COLUMN note text"
_HERE = Path(tenure.__file__).parent


class Release:
    """A tenure that is called by the command line: the package in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _environment(self, url: str) -> dict[str, str]:
        return {**os.environ, "TENURE_URL": url, "PYTHONPATH": str(self._folder)}

    def run(self, *arguments: str, url: str) -> Ran:
        """Run a command."""
        done = subprocess.run(
            [sys.executable, "-m", "tenure", *arguments],
            env=self._environment(url),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        return Ran(code=done.returncode, out=done.stdout, err=done.stderr)

    def start(self, *arguments: str, url: str, cwd: Path, told: Path) -> "subprocess.Popen[bytes]":
        """Start a command that goes on; what it says goes to the file `told`."""
        with told.open("wb") as stderr:
            return subprocess.Popen(
                [sys.executable, "-m", "tenure", *arguments],
                cwd=cwd,
                env=self._environment(url),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )


def this() -> Release:
    """The one that is tested."""
    return Release(_HERE.parent)


def later(folder: Path, *, oldest: int) -> Release:
    """The next one, with a schema of its own, which works with schemas since `oldest`."""
    copy = folder / "tenure"
    shutil.copytree(_HERE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    drivers = copy / "drivers"
    for store, step in (("sqlite", _SQLITE), ("postgres", _POSTGRES)):
        steps = drivers / store / "migrations"
        number = len(list(steps.glob("*.sql"))) + 1
        (steps / f"{number:04d}_later.sql").write_text(step, encoding="utf-8")
        _change(drivers / store / "statements.py", "OLDEST = 1", f"OLDEST = {oldest}")
    _change(drivers / "redis" / "scripts.py", "OLDEST = 1", f"OLDEST = {oldest}")
    _change(drivers / "redis" / "scripts.py", "SCHEMA_VERSION = 1", "SCHEMA_VERSION = 2")
    _change(copy / "version.py", f'"{tenure.__version__}"', '"99.0.0"')
    return Release(folder)


def _change(file: Path, before: str, after: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(before) == 1, f"{file.name} has not {before!r} once"
    file.write_text(text.replace(before, after), encoding="utf-8")
