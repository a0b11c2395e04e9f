"""The health port of `tenure worker`: who is asked, what it says, and whom it does not trust."""

import http.client
import json
import os
import re
import signal
import socket
import sqlite3
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.edge.cli.programs import Program, Start, entered, wait_for
from tests.edge.cli.running import call, lines, run
from tests.process.waiting import wait_until
from tests.servers import postgres, redis

APP = """
import asyncio
import os
import time

import tenure

queue = tenure.connect(os.environ["TENURE_URL"])


async def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


async def gate(path):
    open(path + ".entered", "w").close()
    while not os.path.exists(path):
        await asyncio.sleep(0.01)


async def note(number):
    return number


def app():
    worker = tenure.Worker(queue, concurrency=4, name="probed")
    worker.register("spin", spin)
    worker.register("gate", gate)
    worker.register("note", note)

    @worker.handler("more")
    async def more(number):
        await queue.dispatch_many([tenure.Call("note", n) for n in range(number)])

    return worker
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    status: int
    text: str
    headers: dict[str, str]


class Probe:
    """Asks the health port of a program."""

    def __init__(self, program: Program) -> None:
        program.says("the health port is")
        found = re.search(r"\[port=(\d+)\]", program.stderr)
        assert found is not None, program.stderr
        self.program = program
        self.port = int(found[1])

    def ask(self, path: str, method: str = "GET") -> Said:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            text = answer.read().decode()
            return Said(status=answer.status, text=text, headers=dict(answer.getheaders()))
        finally:
            connection.close()

    def becomes(self, path: str, status: int, text: str = "", *, live: bool = False) -> Said:
        """Wait until a page says so; with `live` the program never looks dead meanwhile."""
        said: list[Said] = []

        def so() -> bool:
            if live:
                alive = self.ask("/livez")
                assert alive.status == 200, alive.text
            said.append(self.ask(path))
            return said[-1].status == status and text in said[-1].text

        wait_until(so, lambda: f"{said[-1]}; {self.program.stderr[-2000:]}")
        return said[-1]

    def ready(self) -> None:
        self.becomes("/readyz", 200)

    def metric(self, name: str) -> float:
        """The sum of all series of this name and these labels, in the order they have."""
        lines = self.ask("/metrics").text.splitlines()
        found = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
        return sum(float(value) for series, value in found if series == name)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "probed.py").write_text(APP, encoding="utf-8")
    return tmp_path


@pytest.fixture
def begin(start: Start, url: str) -> "Begin":
    return Begin(start, url)


class Begin:
    """Starts a program with a health port, on a free one."""

    def __init__(self, start: Start, url: str) -> None:
        self._start = start
        self._url = url

    def __call__(self, *arguments: str, on: str = "", env: dict[str, str] | None = None) -> Probe:
        given = ("probed:app", "--health-port", "0", *arguments)
        return Probe(self._start(*given, on=on or self._url, env=env))


def dispatch(url: str, name: str, payload: object, *options: str) -> str:
    ran = call("enqueue", name, json.dumps(payload), *options, url=url)
    assert ran.code == 0, ran.err
    return ran.out.strip()


def processes(program: Program) -> list[int]:
    """The ids of those that have been started so far, in order."""
    return [int(pid) for pid in re.findall(r"\(pid (\d+)\) runs", program.stderr)]


# --- live and ready -------------------------------------------------------------------------------


def test_it_is_off_unless_it_is_asked_for(start: Start) -> None:
    program = start("probed:app")
    program.says("runs")
    assert "health port" not in program.stderr
    program.send(signal.SIGTERM)
    assert program.wait() == 0


def test_it_answers_on_each_store_for_all_processes(each_url: str, begin: Begin) -> None:
    probe = begin("--processes", "2", on=each_url)
    probe.ready()
    assert probe.ask("/livez").text == "live: 2 processes\n"
    assert probe.ask("/readyz").text == "ready: 2 processes\n"
    probe.program.send(signal.SIGTERM)
    assert probe.program.wait() == 0, probe.program.stderr
    assert "Traceback" not in probe.program.stderr


Server = redis.RedisServer | postgres.PostgresServer
Outage = Callable[[Path], AbstractContextManager[tuple[str, Server]]]


@contextmanager
def redis_outage(folder: Path) -> Generator[tuple[str, Server]]:
    with redis.running(folder / "redis") as server:
        yield server.url, server


@contextmanager
def postgres_outage(_: Path) -> Generator[tuple[str, Server]]:
    with postgres.running() as server:
        yield server.url, server


@pytest.mark.parametrize("store", [redis_outage, postgres_outage])
def test_an_outage_makes_it_unready_and_never_dead(
    store: Outage, folder: Path, begin: Begin
) -> None:
    with store(folder) as (url, server):
        probe = begin("--processes", "2", on=url)
        probe.ready()
        server.kill()
        probe.becomes("/readyz", 503, "process 1", live=True)
        server.start()
        probe.becomes("/readyz", 200, live=True)
        job = dispatch(url, "note", 1)
        wait_for(url, job, "completed")
        probe.program.send(signal.SIGTERM)
        assert probe.program.wait() == 0


def test_a_store_that_hangs_makes_it_unready_and_never_dead(folder: Path, begin: Begin) -> None:
    with redis.running(folder / "redis") as server:
        probe = begin(on=server.url)
        probe.ready()
        with redis.frozen(server):
            probe.becomes("/readyz", 503, "store", live=True)
        probe.becomes("/readyz", 200, live=True)


def test_a_store_that_is_away_at_the_start_keeps_it_unready_and_live(
    folder: Path, begin: Begin
) -> None:
    with redis.running(folder / "redis") as server:
        server.kill()
        probe = begin(on=server.url)
        probe.becomes("/livez", 200, "1 process", live=True)
        probe.becomes("/readyz", 503, "store", live=True)
        server.start()
        probe.becomes("/readyz", 200, live=True)


def test_a_blocked_event_loop_is_not_live_and_the_process_is_named(url: str, begin: Begin) -> None:
    probe = begin("--processes", "2")
    probe.ready()
    job = dispatch(url, "spin", 60)
    said = probe.becomes("/livez", 503, "its event loop has not turned for")
    [line] = said.text.splitlines()
    assert re.match(r"process [12] \(pid \d+\): its event loop", line)
    assert probe.ask("/metrics").status == 200, "the other process is still counted"
    call("jobs", "cancel", job, url=url)


def test_a_blocked_loop_that_goes_on_is_live_again(url: str, begin: Begin) -> None:
    probe = begin()
    probe.ready()
    dispatch(url, "spin", 8)
    probe.becomes("/livez", 503, "its event loop has not turned for")
    probe.becomes("/livez", 200)


def test_a_process_that_is_stopped_does_not_answer(begin: Begin) -> None:
    probe = begin("--processes", "2")
    probe.ready()
    stopped = processes(probe.program)[1]
    os.kill(stopped, signal.SIGSTOP)
    try:
        probe.becomes("/livez", 503, f"process 2 (pid {stopped}): it has not answered for")
    finally:
        os.kill(stopped, signal.SIGCONT)
    probe.becomes("/livez", 200)


def test_draining_it_is_live_and_not_ready(url: str, folder: Path, begin: Begin) -> None:
    probe = begin()
    probe.ready()
    job = dispatch(url, "gate", str(folder / "go"))
    entered(folder / "go")
    probe.program.send(signal.SIGTERM, "asked to stop")
    probe.becomes("/readyz", 503, "the program is stopping", live=True)
    (folder / "go").touch()
    assert probe.program.wait() == 0
    wait_for(url, job, "completed")


def test_a_worker_that_takes_no_jobs_is_live_and_not_ready(begin: Begin) -> None:
    probe = begin()
    probe.ready()
    probe.program.send(signal.SIGUSR1, "no job is started any more")
    probe.becomes("/readyz", 503, "takes no jobs", live=True)


def test_a_process_that_is_replaced_is_not_dead_and_leaves_the_others_ready(
    begin: Begin,
) -> None:
    probe = begin("--processes", "2")
    probe.ready()
    os.kill(processes(probe.program)[0], signal.SIGKILL)

    def replaced() -> bool:
        assert probe.ask("/livez").status == 200
        assert probe.ask("/readyz").status == 200
        return len(processes(probe.program)) == 3

    wait_until(replaced, lambda: probe.program.stderr)
    probe.becomes("/readyz", 200, "2 processes")


def test_a_schema_that_has_become_another_makes_it_unready_on_a_file(
    url: str, folder: Path, begin: Begin
) -> None:
    probe = begin()
    probe.ready()
    with sqlite3.connect(folder / "jobs.db") as file:
        file.execute("UPDATE tenure_schema SET version = version + 1")
    probe.becomes("/readyz", 503, "schema", live=True)
    with sqlite3.connect(folder / "jobs.db") as file:
        file.execute("UPDATE tenure_schema SET version = version - 1")
    probe.becomes("/readyz", 200, live=True)


def test_a_schema_that_is_behind_makes_it_unready_on_postgres(
    postgres_server: postgres.PostgresServer, begin: Begin
) -> None:
    url = f"{postgres_server.url}?schema=behind"
    probe = begin(on=url)
    probe.ready()
    with psycopg.connect(postgres_server.url, autocommit=True) as client:
        client.execute("UPDATE behind.version SET version = version - 1")
    probe.becomes("/readyz", 503, "schema", live=True)


# --- metrics --------------------------------------------------------------------------------------


def test_metrics_are_those_of_all_processes_also_of_ended_ones(url: str, begin: Begin) -> None:
    """Counters never fall, or Prometheus would take that for a new beginning."""
    probe = begin("--processes", "2", "--max-jobs", "20")
    probe.ready()
    dispatch(url, "more", 50)
    series = 'tenure_jobs_settled_total{name="note",outcome="completed",queue="default"}'
    seen = [0.0]

    def all_counted() -> bool:
        seen.append(probe.metric(series))
        assert seen[-1] >= seen[-2], "a counter fell"
        return seen[-1] == 50

    wait_until(all_counted, lambda: f"{seen[-1]} of 50")
    wait_until(lambda: len(processes(probe.program)) > 2, lambda: probe.program.stderr)
    assert probe.metric(series) == 50, "what an ended process had counted is gone"
    assert probe.metric('tenure_jobs_dispatched_total{name="note",queue="default"}') == 50
    assert probe.metric("tenure_processes") == 2
    probe.becomes("/readyz", 200, "2 processes")
    slots = "tenure_worker_slots"  # as of the last second
    wait_until(lambda: probe.metric(slots) == 8, lambda: f"{probe.metric(slots)} of 8")


def test_the_age_of_the_oldest_waiting_job_and_used_slots_are_shown(
    url: str, folder: Path, begin: Begin
) -> None:
    probe = begin()
    probe.ready()
    for _ in range(5):
        dispatch(url, "gate", str(folder / "go"))
    wait_until(lambda: probe.metric("tenure_worker_slots_used") == 4, lambda: "not 4 in use")
    oldest = 'tenure_queue_oldest_waiting_seconds{queue="default"}'
    wait_until(lambda: probe.metric(oldest) > 1, lambda: f"{probe.metric(oldest)}")
    (folder / "go").touch()
    wait_until(lambda: probe.metric(oldest) == 0, lambda: f"{probe.metric(oldest)}")


def test_without_the_extra_there_are_no_metrics_and_it_says_so(folder: Path, begin: Begin) -> None:
    missing = folder / "missing" / "prometheus_client"
    missing.mkdir(parents=True)
    text = "raise ModuleNotFoundError('prometheus_client is not here', name='prometheus_client')\n"
    (missing / "__init__.py").write_text(text, encoding="utf-8")
    probe = begin(env={"PYTHONPATH": str(missing.parent)})
    probe.ready()
    said = probe.ask("/metrics")
    assert (said.status, said.text) == (
        404,
        "there are no metrics: pip install 'tenure[metrics]'\n",
    )


# --- clients --------------------------------------------------------------------------------------


def test_1_a_port_that_is_taken(folder: Path, url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = run("worker", "probed:app", "--health-port", port, url=url, cwd=folder)
    assert ran.code == 1
    cause, remedy = lines(ran)
    assert cause == f"the health port 127.0.0.1:{port} cannot be opened: Address already in use"
    assert remedy.startswith("give another --health-port")


def test_head_has_no_body_and_other_methods_and_paths_are_refused(begin: Begin) -> None:
    probe = begin()
    probe.ready()
    head = probe.ask("/livez", "HEAD")
    assert (head.status, head.text) == (200, "")
    assert head.headers["Content-Length"] == str(len(probe.ask("/livez").text))
    refused = probe.ask("/livez", "POST")
    assert (refused.status, refused.headers["Allow"]) == (405, "GET, HEAD")
    assert probe.ask("/").status == 404
    assert probe.ask("/livez?verbose").status == 200


def answer_to(probe: Probe, sent: bytes) -> bytes:
    """All that comes back until the connection is closed."""
    with probe.connect() as connection:
        connection.sendall(sent)
        parts: list[bytes] = []
        try:
            while part := connection.recv(65536):
                parts.append(part)
        except ConnectionResetError:
            pass
        return b"".join(parts)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET  /livez HTTP/1.1\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", b"400"),
        (b"GET /livez HTTP/2.0\r\n\r\n", b"400"),
        (b"GET /\xff\xfe HTTP/1.1\r\n\r\n", b"404"),
        (b"GET /livez HTTP/1.1\r\nA: " + b"a" * 20_000 + b"\r\n\r\n", b"431"),
        (b"GET /livez HTTP/1.1\r\n\r\nGET /livez HTTP/1.1\r\n\r\n", b"200"),
    ],
)
def test_what_is_no_request_gets_an_answer_and_the_end(
    begin: Begin, sent: bytes, status: bytes
) -> None:
    probe = begin()
    probe.ready()
    answer = answer_to(probe, sent)
    assert answer.startswith(b"HTTP/1.1 " + status), answer
    assert answer.count(b"HTTP/1.1") == 1
    assert "Traceback" not in probe.program.stderr


def test_slow_clients_are_cut_and_keep_nobody_out(begin: Begin) -> None:
    """More of them than connections are allowed: a probe is answered all the same."""
    probe = begin()
    probe.ready()
    slow = [probe.connect() for _ in range(150)]
    try:
        for connection in slow:
            connection.sendall(b"GET /livez HT")
        assert probe.ask("/livez").status == 200
        for connection in slow:  # each comes to its end, in a moment or after some seconds
            try:
                assert connection.recv(100) == b""
            except ConnectionResetError:
                continue
    finally:
        for connection in slow:
            connection.close()
    assert probe.ask("/readyz").status == 200
    assert "Traceback" not in probe.program.stderr
