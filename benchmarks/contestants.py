"""Who is measured: the adapters in `peers/`, and an environment for each of them.

What an adapter needs stands in its header, as of a script with inline metadata (PEP 723): its
pinned packages, and in the table `bench`

- `package`: the distribution whose version is printed; `module`: what to import, if not that;
- `stores`: the kinds of store that it works on, or, where it has one setting only, a store's name;
- `settings`: what was set to something else than its default, in a few words;
- `slots`: where the concurrency is not free: the one it is run with;
- `handlers`: "async", or "threads" or "processes" where handlers block.
"""

import platform
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Contestant", "Unavailable", "contestants", "header", "prepare", "version"]

PEERS = Path(__file__).parent / "peers"
ROOT = Path(__file__).parents[1]

_HEADER = re.compile(r"(?m)^# /// script$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
_PATIENCE = 900.0  # seconds in which an environment has to be made


class Unavailable(Exception):
    """A peer that cannot be measured here; says why."""


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """One adapter, as its header describes it."""

    name: str
    package: str
    module: str
    dependencies: tuple[str, ...]
    requires_python: str
    stores: tuple[str, ...]
    settings: str
    slots: int | None
    handlers: str

    @property
    def label(self) -> str:
        if self.slots is None:
            return self.name
        return f"{self.name}, {self.slots} slot{'s' if self.slots > 1 else ''}"


def header(text: str) -> dict[str, Any]:
    """The inline metadata of a script."""
    found = list(_HEADER.finditer(text))
    if len(found) != 1:
        raise ValueError(f"expected one header, found {len(found)}")
    lines = found[0].group("content").splitlines()
    return tomllib.loads("\n".join(line[2:] for line in lines))


def contestants() -> dict[str, Contestant]:
    """All adapters by name, tenure first."""
    found = [_contestant(path) for path in sorted(PEERS.glob("*.py"))]
    return {each.name: each for each in sorted(found, key=lambda each: each.name != "tenure")}


def _contestant(path: Path) -> Contestant:
    data = header(path.read_text(encoding="utf-8"))
    table = data["tool"]["bench"]
    return Contestant(
        name=path.stem,
        package=table["package"],
        module=table.get("module", table["package"]),
        dependencies=tuple(data["dependencies"]),
        requires_python=data["requires-python"],
        stores=tuple(table["stores"]),
        settings=table["settings"],
        slots=table.get("slots"),
        handlers=table.get("handlers", "async"),
    )


def prepare(contestant: Contestant, folder: Path) -> Path:
    """The Python of an environment with what the contestant needs, made where it is missing.

    tenure runs in the environment of the suite. Raises `Unavailable`.
    """
    if not contestant.dependencies:
        return Path(sys.executable)
    place = folder / contestant.name
    python, made = place / "bin" / "python", place / "made-for"
    wanted = "\n".join([sys.version, *contestant.dependencies])
    if made.exists() and made.read_text(encoding="utf-8") == wanted:
        return python
    print(f"making an environment for {contestant.name}", file=sys.stderr, flush=True)
    _run(_base(contestant), "-m", "venv", "--clear", place)
    install = ("-m", "pip", "--disable-pip-version-check", "--quiet", "install")
    _run(python, *install, *contestant.dependencies)
    made.write_text(wanted, encoding="utf-8")
    return python


def version(contestant: Contestant, python: Path) -> str:
    """The version that is installed, and that of its Python where it is not the suite's."""
    program = (
        "import importlib.metadata, platform; "
        f"print(importlib.metadata.version({contestant.package!r}), platform.python_version())"
    )
    done = subprocess.run([python, "-c", program], check=True, capture_output=True, text=True)
    package, interpreter = done.stdout.split()
    if interpreter == platform.python_version():
        return package
    return f"{package} (Python {interpreter})"


def _base(contestant: Contestant) -> str:
    """The suite's own Python, or, where that is too old for a peer, a newer one on the PATH."""
    least = int(contestant.requires_python.removeprefix(">=3."))
    if sys.version_info >= (3, least):
        return sys.executable
    for minor in range(least, least + 4):
        found = shutil.which(f"python3.{minor}")
        if found and subprocess.run([found, "-c", "import ensurepip, venv"]).returncode == 0:
            return found
    raise Unavailable(f"there is no Python {contestant.requires_python}, which it needs")


def _run(*command: str | Path) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        raise Unavailable("its environment was not made in time") from None
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()]
        reason = (errors or lines or ["no reason given"])[0]
        raise Unavailable(f"its environment cannot be made: {reason}")
