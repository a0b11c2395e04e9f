"""Each exit code, provoked in a process of its own; an error is two lines, cause and remedy."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.edge.cli.running import Ran, call, lines, run
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)
        yield server


def port(server: socket.socket) -> int:
    return int(server.getsockname()[1])


def _run_within_5_s(*arguments: str, url: str) -> Ran:
    """The promise, beyond what a busy machine takes to start the process at all."""
    began = time.monotonic()
    assert run("--version").code == 0
    started = time.monotonic()
    ran = run(*arguments, url=url)
    assert time.monotonic() - started < 5 + (started - began)
    return ran


def test_0_a_command_that_did_its_work(each_url: str) -> None:
    ran = run("enqueue", "greet", '"world"', url=each_url)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.strip() in run("jobs", "list", url=each_url).out


def test_1_what_was_asked_was_refused(url: str) -> None:
    job_id = run("enqueue", "greet", url=url).out.strip()
    ran = run("jobs", "retry", job_id, url=url)
    assert ran.code == 1
    cause, _ = lines(ran)
    assert f"{job_id} (live)" in cause


@pytest.mark.parametrize(
    ("arguments", "cause", "remedy"),
    [
        (["jbos"], "did you mean 'jobs'?", "tenure --help"),
        (["jobs", "lits"], "did you mean 'list'?", "tenure jobs --help"),
        (["stats", "--jsn"], "--json", "tenure stats --help"),
        (["enqueue", "a", "{"], "no JSON", "tenure enqueue --help"),
        (["enqueue", "a", "hello"], "quotes", "tenure enqueue --help"),
        (["enqueue", "a", "NaN"], "NaN", "tenure enqueue --help"),
        (["enqueue", "a", '{"x": 1, "x": 2}'], "'x' stands twice", "tenure enqueue --help"),
        (["enqueue", "a", "@nowhere.json"], "cannot be read", "tenure enqueue --help"),
        (["enqueue", "a", "--at", "2030-01-01T00:00"], "offset", "tenure enqueue --help"),
        (["enqueue", "a", "--delay", "soon"], "no duration", "tenure enqueue --help"),
        (["enqueue", "a", "--delay", "1", "--at", "2030-01-01T00:00Z"], "not both", "enqueue"),
        (["enqueue", "a", "--header", "x"], "name=value", "tenure enqueue --help"),
        (["enqueue", ""], "name", "correct the value"),
        (["jobs", "list", "--cursor", "nonsense"], "cursor", "correct the value"),
        (["jobs", "cancel"], "by ID, or by --state", "tenure jobs cancel --help"),
        (["jobs", "delete", "--queue", "a"], "--state", "tenure jobs delete --help"),
        (["jobs", "delete", "x"], "not confirmed", "--yes"),
        (["--url", "sqlit:///x.db", "stats"], "did you mean sqlite://?", "correct the value"),
    ],
)
def test_2_a_wrong_call(url: str, arguments: list[str], cause: str, remedy: str) -> None:
    call("schema", "migrate", url=url)
    ran = call(*arguments, url=url)
    assert ran.code == 2
    told = ran.err.splitlines()[-2:]
    assert cause in told[0]
    assert remedy in told[1]
    assert ran.out == ""


def test_2_no_store_is_named() -> None:
    ran = run("stats")
    assert ran.code == 2
    assert "TENURE_URL" in lines(ran)[0]


@pytest.mark.parametrize("scheme", ["redis", "postgresql"])
def test_3_a_store_that_is_not_there(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        there = port(gone)
    ran = _run_within_5_s("stats", url=f"{scheme}://user:secret@127.0.0.1:{there}/0")
    assert ran.code == 3
    assert "secret" not in ran.err
    assert f"user:...@127.0.0.1:{there}" in lines(ran)[1]


@pytest.mark.parametrize("scheme", ["redis", "postgresql"])
def test_3_a_store_that_does_not_answer_is_asked_once(scheme: str, silent: socket.socket) -> None:
    """Within five seconds, and without a retry loop."""
    ran = _run_within_5_s("jobs", "list", url=f"{scheme}://127.0.0.1:{port(silent)}/0")
    assert ran.code == 3
    lines(ran)
    silent.setblocking(False)
    connections = 0
    try:
        while True:
            silent.accept()[0].close()
            connections += 1
    except BlockingIOError:
        pass
    assert connections == 1


def test_3_a_file_that_another_process_has_locked(url: str, tmp_path: Path) -> None:
    call("enqueue", "greet", url=url)
    other = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    ran = _run_within_5_s("enqueue", "greet", url=url)
    other.close()
    assert ran.code == 3
    assert "holds the lock" in lines(ran)[0]


def test_3_a_file_whose_folder_is_missing(tmp_path: Path) -> None:
    ran = run("stats", url=f"sqlite:///{tmp_path / 'nowhere' / 'jobs.db'}")
    assert ran.code == 3
    lines(ran)


@pytest.mark.parametrize(
    "arguments",
    [
        ["stats"],
        ["health"],
        ["jobs", "list"],
        ["jobs", "cancel", "somebody"],
        ["queues", "pause", "mail"],
        ["schedules", "list"],
        ["limits", "set", "api", "--concurrent", "1"],
        ["prune", "--yes"],
        ["workers", "list"],
    ],
)
def test_3_a_mistyped_address_makes_nothing(url: str, tmp_path: Path, arguments: list[str]) -> None:
    ran = call(*arguments, url=url)
    assert ran.code == 3
    cause, remedy = lines(ran)
    assert "there is no store of tenure" in cause
    assert "tenure schema migrate" in remedy
    assert list(tmp_path.iterdir()) == []


def test_3_a_file_of_somebody_else_is_left_as_it_is(url: str, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as file:
        file.execute("CREATE TABLE other (x)")
    before = (tmp_path / "jobs.db").read_bytes()
    assert call("stats", url=url).code == 3
    assert (tmp_path / "jobs.db").read_bytes() == before


def test_3_a_mistyped_schema_of_a_database_is_not_made(postgres_server: PostgresServer) -> None:
    ran = call("stats", url=f"{postgres_server.url}?schema=nowhere")
    assert ran.code == 3
    assert "schema=nowhere" in lines(ran)[1]
    asked = "SELECT count(*) FROM pg_namespace WHERE nspname = 'nowhere'"
    assert postgres_server.ask(asked) == [(0,)]


@pytest.mark.parametrize("arguments", [["stats"], ["schema", "status"]])
@pytest.mark.parametrize(
    ("version", "remedy"),
    [(0, "run `tenure schema migrate`"), (99, "pip install --upgrade tenure")],
)
def test_5_a_schema_that_is_older_or_newer(
    tmp_path: Path, arguments: list[str], version: int, remedy: str
) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}?migrate=false"
    call("enqueue", "greet", url=url)
    file = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
    file.execute("UPDATE tenure_schema SET version = ?", (version,))
    file.close()
    ran = run(*arguments, url=url)
    assert ran.code == 5
    cause, told = lines(ran)
    assert f"version {version}" in cause
    assert remedy in told


@pytest.mark.parametrize("arguments", [["stats"], ["schema", "status"]])
def test_5_an_older_namespace_of_redis_which_is_never_upgraded(
    redis_server: RedisServer, arguments: list[str]
) -> None:
    with redis_server.client() as client:
        client.set("{old}:schema", 0)
    ran = run(*arguments, url=f"{redis_server.url}?namespace=old")
    assert ran.code == 5
    assert "another namespace" in lines(ran)[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ["jobs", "show", "nobody"],
        ["jobs", "cancel", "nobody"],
        ["jobs", "retry", "nobody"],
        ["schedules", "next", "nobody"],
        ["schedules", "run", "nobody"],
        ["schedules", "pause", "nobody"],
        ["limits", "remove", "nobody"],
    ],
)
def test_6_what_is_not_there(url: str, arguments: list[str]) -> None:
    call("schema", "migrate", url=url)
    ran = (run if arguments[1] == "show" else call)(*arguments, url=url)
    assert ran.code == 6
    cause, remedy = lines(ran)
    assert "nobody" in cause
    assert f"tenure {arguments[0]} list" in remedy


def test_7_due_jobs_that_no_worker_serves(url: str) -> None:
    call("schema", "migrate", url=url)
    assert run("health", url=url).code == 0
    call("enqueue", "greet", "--queue", "mail", url=url)
    ran = run("health", url=url)
    assert ran.code == 7
    assert "1 job of the queue mail" in lines(ran)[0]
    assert run("health", "--json", url=url).json["healthy"] is False
    run("queues", "pause", "mail", url=url)
    assert run("health", url=url).code == 0
    assert run("health", "--workers", "1", url=url).code == 7


def test_130_a_command_that_was_interrupted(silent: socket.socket) -> None:
    """One cause, one remedy, and no traceback."""
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from tenure.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    address = f"redis://127.0.0.1:{port(silent)}/0"
    with subprocess.Popen(
        [sys.executable, "-c", program, "--url", address, "stats"],
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        connection, _ = silent.accept()
        with connection:
            os.kill(process.pid, signal.SIGINT)
            _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert told.splitlines()[0] == "error: interrupted"
    assert len(told.splitlines()) == 2


@pytest.mark.parametrize("debug", [True, False])
def test_what_asyncio_says_of_a_cancelled_call_is_shown_only_when_it_is_asked_for(
    url: str, debug: bool
) -> None:
    """Its callbacks may fail when a call was cancelled under them, as by Ctrl-C."""
    program = (
        "import asyncio, logging, sys; from tenure.cli import main;"
        "main(sys.argv[1:]); logging.getLogger('asyncio').error('Exception in callback')"
    )
    command = [sys.executable, "-c", program, "--url", url, "stats"]
    ran = subprocess.run(
        [*command, *(["--debug"] if debug else [])], capture_output=True, encoding="utf-8"
    )
    assert ("Exception in callback" in ran.stderr) is debug


def test_a_traceback_is_shown_only_when_it_is_asked_for(url: str) -> None:
    call("schema", "migrate", url=url)
    assert "Traceback" not in run("jobs", "show", "nobody", url=url).err
    ran = run("jobs", "show", "nobody", "--debug", url=url)
    assert ran.code == 6
    assert "Traceback" in ran.err


def test_a_reader_that_has_gone_is_no_error(url: str) -> None:
    """As `tenure jobs list | head -1`."""
    for _ in range(3):
        call("enqueue", "greet", url=url)
    command = (
        f'"{sys.executable}" -W error -m tenure jobs list | head -0; echo "${{PIPESTATUS[0]}}"'
    )
    ran = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "TENURE_URL": url},
        capture_output=True,
        encoding="utf-8",
        timeout=30,
        check=True,
    )
    assert ran.stderr == ""
    assert ran.stdout.strip() in ("0", "1")
