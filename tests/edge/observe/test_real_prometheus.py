"""A Prometheus of our own scrapes a worker program; what it has is asked for by its API."""

import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.files import DEPLOY
from tests.edge.cli.running import PROGRAM, call
from tests.process.waiting import wait_until
from tests.servers.prometheus import Prometheus, scraping
from tests.servers.redis import free_port

APP = """
import os

import tenure

worker = tenure.Worker(tenure.connect(os.environ["TENURE_URL"]), concurrency=4, poll_interval=0.1)


@worker.handler("greet")
async def greet(name: str) -> str:
    return f"Hello, {name}!"


@worker.handler("fall")
async def fall(payload: object) -> None:
    raise ValueError("as it was asked to")
"""


COMMAND = ("worker", "jobs:worker", "--processes", "2", "--health-port")


class Program:
    """A worker program with a health port, and what it says."""

    def __init__(self, folder: Path, url: str) -> None:
        self.port = free_port()
        self.told = folder / "stderr"
        with self.told.open("wb") as stderr:
            self.process = subprocess.Popen(
                [*PROGRAM, *COMMAND, str(self.port)],
                cwd=folder,
                env={**os.environ, "TENURE_URL": url},
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )

    def said(self) -> str:
        return self.told.read_text(encoding="utf-8")

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5) as told:
                return bool(told.status == 200)
        except OSError:
            return False


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=NORMAL"


@pytest.fixture
def program(tmp_path: Path, url: str) -> Iterator[Program]:
    (tmp_path / "jobs.py").write_text(APP, encoding="utf-8")
    found = Program(tmp_path, url)
    try:
        yield found
    finally:
        if found.process.poll() is None:
            found.process.send_signal(signal.SIGTERM)
        try:
            found.process.wait(40)
        finally:
            found.process.kill()
            found.process.wait()


@pytest.fixture
def prometheus(tmp_path: Path, program: Program) -> Iterator[Prometheus]:
    folder = tmp_path / "prometheus"
    folder.mkdir()
    rules = [DEPLOY / "prometheus" / "alerts.yml"]
    with scraping(folder, [f"127.0.0.1:{program.port}"], rules=rules) as server:
        yield server


def total(prometheus: Prometheus, expression: str) -> float:
    return sum(prometheus.value(expression).values())


def test_prometheus_has_what_the_processes_of_a_program_count(
    program: Program, prometheus: Prometheus, url: str
) -> None:
    wait_until(program.ready, program.said)
    for _ in range(6):
        call("enqueue", "greet", '"world"', url=url)
    for _ in range(3):
        call("enqueue", "fall", url=url)

    settled = "tenure_jobs_settled_total"
    wait_until(lambda: total(prometheus, settled) == 9, lambda: str(prometheus.value(settled)))
    found = prometheus.value(f"sum by (queue, name, outcome) ({settled})")
    assert found == {
        (("name", "greet"), ("outcome", "completed"), ("queue", "default")): 6,
        (("name", "fall"), ("outcome", "failed"), ("queue", "default")): 3,
    }
    assert total(prometheus, "tenure_jobs_started_total") == 9
    assert total(prometheus, "tenure_job_wait_seconds_count") == 9
    assert total(prometheus, 'tenure_job_duration_seconds_bucket{le="+Inf"}') == 9
    assert total(prometheus, 'tenure_errors_total{kind="JobFailed"}') == 3
    assert total(prometheus, "tenure_worker_slots") == 8
    assert total(prometheus, "tenure_processes_running") == 2
    assert "default" in {
        dict(labels)["queue"] for labels in prometheus.value("tenure_queue_oldest_waiting_seconds")
    }


def test_prometheus_knows_each_metric_by_its_type_and_evaluates_the_alerts(
    program: Program, prometheus: Prometheus
) -> None:
    wait_until(program.ready, program.said)
    wait_until(lambda: "tenure_worker_slots" in prometheus.ask("metadata"), lambda: prometheus.log)
    types = {name: told[0]["type"] for name, told in prometheus.ask("metadata").items()}
    assert types["tenure_job_duration_seconds"] == "histogram"
    assert types["tenure_worker_slots"] == "gauge"
    assert types["tenure_jobs_reclaimed_total"] == "counter"
    (target,) = prometheus.ask("targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")

    def evaluated() -> dict[str, str]:
        groups = prometheus.ask("rules")["groups"]
        return {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}

    wait_until(lambda: set(evaluated().values()) == {"ok"}, lambda: str(evaluated()))
    assert "TenureWorkerDown" in evaluated()

    def alarmed() -> set[str]:
        return {alert["labels"]["alertname"] for alert in prometheus.ask("alerts")["alerts"]}

    wait_until(lambda: alarmed() == set(), lambda: str(alarmed()))
    program.process.send_signal(signal.SIGTERM)
    wait_until(lambda: "TenureWorkerDown" in alarmed(), lambda: prometheus.log)
