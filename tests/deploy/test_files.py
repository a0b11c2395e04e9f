"""The files of `deploy/`: they parse, their times fit together, and their commands run."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.cli.exits import Exit
from tenure.cli.program import program
from tenure.cli.values import duration
from tests.deploy.files import DEPLOY, commands, compose, documents, procfile, unit
from tests.edge.cli.running import PROGRAM, call, run
from tests.edge.cli.test_pages import commands as of_program
from tests.edge.cli.test_pages import options
from tests.process.waiting import wait_until
from tests.servers.postgres import PostgresServer, missing, postgres_server
from tests.servers.redis import free_port

__all__ = ["postgres_server"]

ROOT = DEPLOY.parent
APP = """
import os

import tenure

worker = tenure.Worker(tenure.connect(os.environ["TENURE_URL"]), poll_interval=0.1)


@worker.handler("greet")
async def greet(name: str) -> str:
    return f"Hello, {name}!"
"""
SLACK = 10.0  # seconds beside the drain timeout, as docs/processes.md asks for

WORKERS = [place for place, words in commands().items() if words[1] == "worker"]
OTHERS = [place for place in commands() if place not in WORKERS]


def drain_timeout(words: list[str]) -> float:
    """What the command gives to running jobs."""
    text = " ".join(words).replace("--drain-timeout=", "--drain-timeout ")
    found = re.search(r"--drain-timeout (\S+)", text)
    assert found is not None, text
    return duration(found[1])


def container(name: str) -> dict[str, Any]:
    (found,) = [d for d in documents(name) if d["kind"] in ("Deployment", "Job")]
    each: dict[str, Any] = found["spec"]["template"]["spec"]["containers"][0]
    return each


# --- what the files say ---------------------------------------------------------------------------


def test_the_commands_have_only_options_that_there_are() -> None:
    known = {path.split()[-1]: options(command) for path, command in of_program(program)}
    for place, words in commands().items():
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        name = words[1] if words[1] in known else words[2]
        assert given <= known[name], place


@pytest.mark.parametrize("place", WORKERS)
def test_what_ends_a_worker_gives_it_its_drain_timeout_and_some_seconds(place: str) -> None:
    spec = documents("worker.yaml")[-1]["spec"]["template"]["spec"]
    grace = {
        "systemd": float(unit()["Service"]["TimeoutStopSec"]),
        "procfile": 30.0,  # what Heroku and foreman give
        "compose worker": duration(compose()["services"]["worker"]["stop_grace_period"]),
        "kubernetes worker": float(spec["terminationGracePeriodSeconds"]),
    }
    assert grace[place] >= drain_timeout(commands()[place]) + SLACK


def test_the_unit_is_told_when_the_worker_is_ready_and_alive_and_signals_the_program_alone() -> (
    None
):
    service = unit()["Service"]
    assert service["Type"] == "notify"
    assert float(service["WatchdogSec"]) > 0
    assert service["KillMode"] == "mixed"
    assert service["Restart"] == "always"
    never = {int(code) for code in service["RestartPreventExitStatus"].split()}
    assert never == {Exit.USAGE, Exit.NO_APP}


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    """With the paths of this machine in it."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        missing("no systemd-analyze on the PATH (Debian: the package systemd)")
    text = (DEPLOY / "systemd" / "shop-worker.service").read_text(encoding="utf-8")
    tenure = Path(PROGRAM[0]).with_name("tenure")
    text = text.replace("/srv/shop/.venv/bin/tenure", str(tenure))
    text = text.replace("/srv/shop", str(tmp_path))
    copy = tmp_path / "shop-worker.service"
    copy.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [analyze, "verify", "--man=no", str(copy)],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    told = [line for line in (done.stdout + done.stderr).splitlines() if "shop-worker" in line]
    assert (done.returncode, told) == (0, [])


def test_the_shell_of_a_procfile_gives_way_to_the_program() -> None:
    """Else the signal would end the shell alone."""
    assert procfile()["worker"][0] == "exec"


def test_kubernetes_asks_the_health_port_and_a_store_that_is_down_restarts_nothing() -> None:
    each = container("worker.yaml")
    (port,) = each["ports"]
    assert f"--health-port={port['containerPort']}" in each["args"]
    assert "--health-host=0.0.0.0" in each["args"]
    probes = {
        name: each[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")
    }
    assert {probe["port"] for probe in probes.values()} == {port["name"]}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startup": "/livez",
        "liveness": "/livez",
        "readiness": "/readyz",
    }
    template = documents("worker.yaml")[-1]["spec"]["template"]
    assert template["metadata"]["annotations"]["prometheus.io/port"] == str(port["containerPort"])


def test_the_kinds_of_kubernetes_fit_together() -> None:
    secret, deployment = documents("worker.yaml")
    (job,) = documents("schema.yaml")
    assert (deployment["apiVersion"], job["apiVersion"]) == ("apps/v1", "batch/v1")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels
    assert list(secret["stringData"]) == ["TENURE_URL"]
    for name in ("worker.yaml", "schema.yaml"):
        (source,) = container(name)["envFrom"]
        assert source["secretRef"]["name"] == secret["metadata"]["name"]


def test_compose_starts_the_worker_when_the_database_answers() -> None:
    services = compose()["services"]
    assert services["worker"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert "healthcheck" in services["database"]
    assert services["schema"]["profiles"] == ["upgrade"]
    assert services["worker"]["environment"] == services["schema"]["environment"]


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs" / "how-to").glob("*.md")), ids=lambda page: page.stem
)
def test_each_page_leads_to_the_files_that_it_explains(page: Path) -> None:
    named = set(re.findall(r"\bdeploy/[\w./-]+\w", page.read_text(encoding="utf-8")))
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_file_is_explained() -> None:
    pages = [page.read_text("utf-8") for page in (ROOT / "docs" / "how-to").glob("*.md")]
    files = [str(path.relative_to(ROOT)) for path in DEPLOY.rglob("*") if path.is_file()]
    assert [path for path in files if not any(path in page for page in pages)] == []


# --- what their commands do -----------------------------------------------------------------------


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "shop" / "jobs.py").write_text(APP, encoding="utf-8")
    return tmp_path


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Two of the files have a server of their own; here it is one of the tests'."""
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return f"{server.url}?schema=deploy_{os.getpid()}_{free_port()}"


class Started:
    """A command of these files as a process, with a free port in the place of its own."""

    def __init__(self, words: list[str], shop: Path, url: str) -> None:
        self.port = free_port()
        self._told = shop / "stderr"
        with self._told.open("wb") as stderr:
            self.process = subprocess.Popen(
                [*PROGRAM, *(re.sub(r"^(--health-port=)?9100$", rf"\g<1>{self.port}", word)
                             for word in words[1:])],
                cwd=shop,
                env={**os.environ, "TENURE_URL": url},
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )  # fmt: skip

    @property
    def stderr(self) -> str:
        return self._told.read_text(encoding="utf-8")

    def end(self) -> int:
        """As whatever runs it does: SIGTERM to the program alone."""
        self.process.send_signal(signal.SIGTERM)
        wait_until(lambda: self.process.poll() is not None, lambda: self.stderr, seconds=60)
        return self.process.returncode


@pytest.fixture
def start(shop: Path, url: str) -> Iterator[Any]:
    started: list[Started] = []

    def start(words: list[str]) -> Started:
        started.append(Started(words, shop, url))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
        each.process.wait()


@pytest.mark.parametrize("place", WORKERS)
def test_a_worker_runs_jobs_on_a_new_store_and_ends_in_order(
    place: str, start: Any, url: str
) -> None:
    program = start(commands()[place])
    job_id = call("enqueue", "greet", '"world"', url=url).out.strip()

    def done() -> bool:
        shown = call("jobs", "show", job_id, "--json", url=url).json["job"]
        return bool(shown["state"] == "completed")

    wait_until(done, lambda: program.stderr)
    health = commands()["compose health"][1:]
    assert run(*health, url=url).code == 0
    assert program.end() == 0, program.stderr
    assert run(*health, url=url).code == 7


@pytest.mark.parametrize("place", OTHERS)
def test_what_runs_beside_it_does_its_work(place: str, url: str) -> None:
    if "health" in place:
        assert run("schema", "migrate", url=url).code == 0
        assert run(*commands()[place][1:], url=url).code == 7  # the store is there, and no worker
        return
    assert run(*commands()[place][1:], url=url).code == 0
    assert call("schema", "status", "--json", url=url).json["state"] == "current"
