"""Wall clocks that can be set, for processes of our own: libfaketime, loaded before all else.

Only the wall clock of such a process is another; its monotonic clock is the machine's. The library
is the one named by the environment variable TENURE_FAKETIME, else Debian's (the package faketime).
Where there is none the tests are skipped and say so; with TENURE_TEST_REQUIRE=all they fail.
"""

import os
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.servers.places import account, own_folder
from tests.servers.postgres import missing

__all__ = ["WallClock", "library", "required", "runs_under", "wall_clocks"]

_PATIENCE = 4.0  # seconds that a program may take to say its version


class WallClock:
    """How far the wall clock of some processes is ahead of the machine's, below zero: behind."""

    def __init__(self, path: Path, preloaded: Path) -> None:
        self._path = path
        self.offset = 0.0
        self.environment: Mapping[str, str] = {
            "LD_PRELOAD": str(preloaded),
            "FAKETIME_TIMESTAMP_FILE": str(path),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        self.set(0.0)

    def set(self, offset: float) -> None:
        """Step at once, in all of its processes."""
        new = self._path.with_suffix(".new")
        new.write_text(f"{offset:+.3f}\n", "utf-8")
        new.chmod(0o644)  # also for a server that runs as somebody else
        new.replace(self._path)
        self.offset = offset


def library() -> Path | None:
    """The library, where there is one."""
    named = os.environ.get("TENURE_FAKETIME")
    if named:
        return Path(named)
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    return found[0] if found else None


def required() -> Path:
    """The library; skips or fails the test where there is none."""
    found = library()
    if found is None:
        missing(
            "no libfaketime: neither TENURE_FAKETIME, nor libfaketimeMT.so.1 in "
            "/usr/lib/*/faketime (Debian: the package faketime)"
        )
    return found


@contextmanager
def wall_clocks(preloaded: Path, number: int) -> Generator[list[WallClock]]:
    """That many clocks, each set apart from the others."""
    with own_folder("clock", account()) as folder:
        yield [WallClock(folder / f"clock-{place}", preloaded) for place in range(number)]


def runs_under(environment: Mapping[str, str], program: str) -> bool:
    """Whether the program starts with that: one whose allocator asks for the time does not."""
    try:
        done = subprocess.run(
            [program, "--version"],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0 and b"faketime" not in done.stderr
