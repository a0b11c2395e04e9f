"""Runs spin on a model of `formal/`: a search through all that its bounds allow.

Needs `spin` and `gcc` on the PATH (Debian: the packages of these names). Where one is missing the
tests are skipped and say so; with TENURE_TEST_REQUIRE=all they fail. What spin writes lies in a
temporary folder.
"""

import re
import shutil
import subprocess
from pathlib import Path

from msgspec import Struct

from tests.servers.postgres import missing

__all__ = ["FORMAL", "Bounds", "Searched", "search"]

FORMAL = Path(__file__).parents[2] / "formal"

_LONGEST = 240  # seconds, for a search that takes two or three on an idle machine
_DEEPEST = 20_000  # steps; a search that would go deeper says so, and fails
_MEMORY = 2048  # MiB; the same
_NOT_ALL = ("Search not completed", "max search depth", "out of memory", "max memory")


class Bounds(Struct, frozen=True, kw_only=True):
    """What a model is searched with; `least` is how many states a search must see at least.

    `lives`: the search is for runs on which something that must happen never does, with weak
    fairness, instead of for states in which something is wrong.
    """

    flags: tuple[str, ...]
    least: int
    lives: bool = False


class Searched(Struct, frozen=True, kw_only=True):
    """What came of it. `broken` is the guarantee for which a counterexample was found.

    `exhausted` says that every state was seen.
    """

    broken: str | None
    states: int
    exhausted: bool
    output: str
    replay: tuple[str, ...]
    folder: Path

    def explain(self) -> str:
        """What the search printed, and the steps of the counterexample where it found one."""
        trails = [trail.name for trail in self.folder.glob("*.trail")]
        steps = [_run(self.folder, "spin", "-k", trail, *self.replay) for trail in trails]
        return "\n".join([self.output, *(text.partition("#processes")[0] for text in steps)])


def search(model: str, bounds: Bounds, folder: Path, *switches: str) -> Searched:
    """Search `formal/<model>.pml`; `switches` are defined beside the bounds."""
    for program in ("spin", "gcc"):
        if shutil.which(program) is None:
            missing(f"no {program} on the PATH (Debian: the package {program})")
    source = str(FORMAL / f"{model}.pml")
    defined = [f"-D{flag}" for flag in (*bounds.flags, *switches, *(["LIVE"] * bounds.lives))]
    written = _run(folder, "spin", "-a", *defined, source)
    safety = [] if bounds.lives else ["-DSAFETY"]
    level = "-O0" if switches else "-O1"  # what is wrong is found at once
    settings = [*safety, f"-DMEMLIM={_MEMORY}", "-DNFAIR=4"]
    _run(folder, "gcc", level, "-w", *settings, "-o", "pan", "pan.c")
    fair = ["-a", "-f"] if bounds.lives else []
    output = _run(folder, "./pan", f"-m{_DEEPEST}", "-w20", *fair)
    return Searched(
        broken=_broken(output, formula=re.search(r"ltl (\w+):", written)),
        states=_number(r"(\d+) states, stored", output),
        exhausted="errors: 0" in output and not any(words in output for words in _NOT_ALL),
        output=output,
        replay=("-T", *defined, source),
        folder=folder,
    )


def _broken(output: str, formula: re.Match[str] | None) -> str | None:
    """The guarantee that the assertion or the formula names; both are written that way."""
    if found := re.search(r"assertion violated +!\((\w+)\)", output):
        return found[1]
    if formula is not None and "pan:1: acceptance cycle" in output:
        return formula[1]
    found = re.search(r"pan:1: (.*)", output)  # a deadlock, or a fault of the model itself
    return found[1] if found else None


def _number(pattern: str, output: str) -> int:
    found = re.search(pattern, output)
    return int(found[1]) if found else 0


def _run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_LONGEST,
        check=False,
    )
    assert done.returncode == 0, f"{command[0]} failed:\n{done.stdout[-4000:]}"
    return done.stdout
