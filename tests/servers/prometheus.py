"""Prometheus servers of our own: own configuration and folder, a free port, ended by their id.

The programs are the ones named by TENURE_PROMETHEUS and TENURE_PROMTOOL, else `prometheus` and
`promtool` on the PATH (Debian has both in the package prometheus). Where there are none the tests
are skipped and say so; with TENURE_TEST_REQUIRE=all they fail. A server that runs already is left
alone.
"""

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.servers.postgres import PATIENCE, missing
from tests.servers.redis import free_port

__all__ = ["Prometheus", "promtool", "scraping"]


class Prometheus:
    """One server."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.folder = folder

    def ask(self, path: str, **parameters: str) -> Any:
        """What its API answers. Raises `OSError` where it does not."""
        query = urllib.parse.urlencode(parameters)
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}"
        with urllib.request.urlopen(url, timeout=5) as answer:
            told = json.load(answer)
        assert told["status"] == "success"
        return told["data"]

    def value(self, expression: str) -> dict[tuple[tuple[str, str], ...], float]:
        """The series of an expression now: the value by the labels."""
        found = self.ask("query", query=expression)["result"]
        return {
            tuple(sorted(series["metric"].items())): float(series["value"][1]) for series in found
        }

    @property
    def log(self) -> str:
        return (self.folder / "server.log").read_text("utf-8", "replace")


@contextmanager
def scraping(
    folder: Path, targets: Sequence[str], *, rules: Sequence[Path] = ()
) -> Generator[Prometheus]:
    """A server that scrapes these addresses each second, as the job `tenure`; ended afterwards."""
    server = Prometheus(folder)
    program = _program("prometheus", "TENURE_PROMETHEUS")
    configuration = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rule) for rule in rules],
        "scrape_configs": [{"job_name": "tenure", "static_configs": [{"targets": list(targets)}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(configuration), "utf-8")
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{server.port}",
            ],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        _wait_until_it_answers(server, process)
        yield server
    finally:
        process.kill()  # it has nothing to keep
        process.wait()


def _wait_until_it_answers(server: Prometheus, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            server.ask("status/buildinfo")
            return
        except (OSError, urllib.error.URLError):
            if process.poll() is not None or time.monotonic() > end:
                pytest.fail(f"Prometheus does not start: {server.log[-2000:]}")
        time.sleep(0.02)


def promtool() -> str:
    """The tool that checks rules; skips or fails the test where there is none."""
    return _program("promtool", "TENURE_PROMTOOL")


def _program(name: str, variable: str) -> str:
    found = os.environ.get(variable) or shutil.which(name)
    if found is None or not os.access(found, os.X_OK):
        missing(f"no {name}: neither {variable}, nor on the PATH (Debian: the package prometheus)")
    return found
