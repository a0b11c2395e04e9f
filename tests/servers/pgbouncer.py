"""PgBouncer in transaction mode in front of a server of ours: own folder, free port.

The binary is the one named by the environment variable TENURE_PGBOUNCER, else `pgbouncer` on the
PATH or in /usr/sbin. Where there is none the tests are skipped and say so; with
TENURE_TEST_REQUIRE=all they fail. It refuses to run as root, as PostgreSQL does: see places.py.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.servers.places import account, own_folder
from tests.servers.postgres import PATIENCE, PostgresServer, missing
from tests.servers.redis import free_port

__all__ = ["PgBouncer", "pgbouncer", "pooling"]

# Two server connections for all clients: a client gets another one all the time.
_SETTINGS = """
[databases]
* = host=127.0.0.1 port={server} user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
max_client_conn = 500
server_login_retry = 0
logfile = {folder}/pgbouncer.log
"""


class PgBouncer:
    """One pooler."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.port = free_port()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"


@contextmanager
def pooling(server: PostgresServer) -> Generator[PgBouncer]:
    """A pooler that is ended afterwards."""
    owner = account()
    pooler = PgBouncer(server)
    program = _binary()
    with own_folder("pgb", owner) as folder:
        settings = folder / "pgbouncer.ini"
        settings.write_text(
            _SETTINGS.format(server=server.port, port=pooler.port, folder=folder), "utf-8"
        )
        process: subprocess.Popen[bytes] = subprocess.Popen(
            [program, "--quiet", str(settings)],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=owner.user,
            group=owner.group,
            extra_groups=owner.groups,
        )
        try:
            _wait_until_it_answers(pooler, process, folder)
            yield pooler
        finally:
            process.kill()  # it has nothing of its own to keep
            process.wait()


def _wait_until_it_answers(
    pooler: PgBouncer, process: "subprocess.Popen[bytes]", folder: Path
) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            psycopg.connect(pooler.url, connect_timeout=5).close()
            return
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > end:
                log = folder / "pgbouncer.log"
                text = log.read_text("utf-8", "replace") if log.exists() else "no log"
                pytest.fail(f"PgBouncer does not start: {error}; {text[-2000:]}")
        time.sleep(0.01)


def _binary() -> str:
    """The pooler to run; skips or fails the test where there is none."""
    named = os.environ.get("TENURE_PGBOUNCER")
    for found in (named,) if named else (shutil.which("pgbouncer"), "/usr/sbin/pgbouncer"):
        if found and os.access(found, os.X_OK):
            return found
    missing(
        "no PgBouncer: neither TENURE_PGBOUNCER, nor pgbouncer on the PATH (Debian: the package "
        "pgbouncer)"
    )


@pytest.fixture(scope="session")
def pgbouncer(postgres_server: PostgresServer) -> Iterator[PgBouncer]:
    """A pooler in front of the server for all tests of a process."""
    with pooling(postgres_server) as pooler:
        yield pooler
