"""A rolling deployment: the next tenure works with the schema of this one, beside it.

Then the schema is upgraded under both. What cannot work together is refused with exit code 5 and
the command that helps. On Redis the schema is a version that the namespace is marked with.
"""

import asyncio
import json
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import tenure
from tenure.drivers.postgres import script as of_postgres
from tenure.drivers.redis import scripts as of_redis
from tenure.drivers.sqlite import script as of_sqlite
from tests.deploy.later import Release, later, this
from tests.edge.cli.running import Ran, lines
from tests.process.waiting import wait_until
from tests.servers.postgres import PostgresServer, postgres_server
from tests.servers.redis import RedisServer, redis_server

__all__ = ["postgres_server", "redis_server"]

APP = """
import asyncio
import os

import tenure

worker = tenure.Worker(
    tenure.connect(os.environ["TENURE_URL"]), concurrency=2, poll_interval=0.05
)


@worker.handler("work", retry=tenure.RetryPolicy(max_attempts=3, base=0.05))
async def work(number: int, job: tenure.RunningJob) -> str:
    await asyncio.sleep(0.02)
    if number % 5 == 0 and job.attempt == 1:
        raise ValueError("once")
    return tenure.__version__
"""
JOBS = 60


@pytest.fixture(params=["sqlite", "redis", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store that no program upgrades by opening it."""
    own = f"rolling_{uuid4().hex}"
    if request.param == "redis":
        redis: RedisServer = request.getfixturevalue("redis_server")
        return f"{redis.url}?namespace={own}"
    if request.param == "postgres":
        postgres: PostgresServer = request.getfixturevalue("postgres_server")
        return f"{postgres.url}?schema={own}"
    return f"sqlite:///{tmp_path / 'jobs.db'}?migrate=false"


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "jobs.py").write_text(APP, encoding="utf-8")
    return tmp_path / "app"


class Workers:
    """Worker programs of several releases; each is ended by its id."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._url = url
        self._started: dict[Path, subprocess.Popen[bytes]] = {}

    def start(self, release: Release) -> "subprocess.Popen[bytes]":
        told = self._folder / f"stderr{len(self._started)}"
        process = release.start("worker", "jobs:worker", url=self._url, cwd=self._folder, told=told)
        self._started[told] = process
        return process

    def said(self) -> str:
        return "\n".join(told.read_text(encoding="utf-8") for told in self._started)

    def end(self) -> list[int]:
        """End them in order; their exit codes."""
        for process in self._started.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self._started.values():
            try:
                process.wait(40)
            finally:
                process.kill()
        return [process.wait() for process in self._started.values()]


@pytest.fixture
def workers(app: Path, url: str) -> Iterator[Workers]:
    found = Workers(app, url)
    yield found
    found.end()


def versions(url: str) -> set[str]:
    """Those of the workers that are there."""
    there: list[dict[str, Any]] = this().run("workers", "list", "--json", url=url).json
    return {worker["version"] for worker in there}


def dispatched(url: str, first: int) -> list[str]:
    """Jobs of this release; their ids."""

    async def dispatch() -> list[str]:
        async with tenure.connect(url) as queue:
            calls = [tenure.Call("work", number) for number in range(first, first + JOBS)]
            return [handle.id for handle in await queue.dispatch_many(calls)]

    return asyncio.run(dispatch())


def results(release: Release, url: str) -> dict[str, Any]:
    """What completed, as a release sees it."""
    ran = release.run("jobs", "list", "--limit", "1000", "--json", url=url)
    assert ran.code == 0, ran.err
    jobs = [job for job in ran.json["jobs"] if job["state"] == "completed"]
    return {job["id"]: job["result"] for job in jobs}


def status(release: Release, url: str) -> Ran:
    return release.run("schema", "status", "--json", url=url)


def test_old_and_new_workers_side_by_side_lose_no_job_and_the_schema_is_upgraded_last(
    url: str, workers: Workers, tmp_path: Path
) -> None:
    old, new = this(), later(tmp_path / "new", oldest=1)
    assert old.run("schema", "migrate", url=url).code == 0
    workers.start(old)
    workers.start(new)
    wait_until(lambda: versions(url) == {tenure.__version__, "99.0.0"}, workers.said)
    doctor = new.run("doctor", "--json", url=url).json["findings"]
    about = {finding["about"]: finding for finding in doctor}
    assert about["workers"]["message"] == (
        f"workers of different versions: {tenure.__version__}, 99.0.0"
    )
    assert about["schema"]["level"] == "warning"
    assert "older than that of this tenure (2)" in about["schema"]["message"]

    # The new one on the old schema, and beside the old one.
    ids = dispatched(url, 1)
    ids += [new.run("enqueue", "work", str(n), url=url).out.strip() for n in (5, 6)]
    wait_until(lambda: set(ids) <= set(results(old, url)), workers.said)
    assert set(results(new, url).values()) == {tenure.__version__, "99.0.0"}
    ran = status(new, url)
    assert (ran.code, ran.json["found"], ran.json["works"]) == (5, 1, True)

    # The upgrade, while both work.
    ids += dispatched(url, 101)
    migrated = new.run("schema", "migrate", "--json", url=url)
    assert migrated.json == {"before": 1, "now": 2}, migrated.err
    ids += [new.run("enqueue", "work", str(n), url=url).out.strip() for n in (205, 206)]
    wait_until(lambda: set(ids) <= set(results(new, url)), workers.said)
    assert status(new, url).code == 0
    assert workers.end() == [0, 0], workers.said()
    assert "Traceback" not in workers.said().replace("ValueError: once", "")
    assert len(ids) == len(results(new, url)) == 2 * JOBS + 4

    # Whoever comes with the old one now is told what to do.
    ran = old.run("stats", url=url)
    assert ran.code == 5
    assert "pip install --upgrade tenure" in lines(ran)[1]


def test_what_is_too_old_is_refused_with_the_command_that_upgrades_it(
    url: str, tmp_path: Path
) -> None:
    old, new = this(), later(tmp_path / "new", oldest=2)
    assert old.run("enqueue", "work", "1", url=url).code == 0
    for arguments in (["stats"], ["schema", "status"], ["enqueue", "work", "1"], ["doctor"]):
        ran = new.run(*arguments, "--url", url, url=url)
        assert ran.code == 5
        cause, remedy = lines(ran)
        assert "schema version 1" in cause
    assert old.run("stats", url=url).code == 0  # it was left as it was
    if url.startswith("redis"):  # in which nothing can be rewritten
        assert "drain this one with the tenure that made it" in remedy
        return
    command = remedy.partition("`")[2].partition("`")[0]
    program, *words = shlex.split(command)
    assert (program, words[:2]) == ("tenure", ["schema", "migrate"])
    assert new.run(*words, url="").code == 0
    assert new.run("stats", url=url).code == 0
    jobs = json.loads(new.run("jobs", "list", "--json", url=url).out)["jobs"]
    assert [job["name"] for job in jobs] == ["work"]


def test_a_file_is_upgraded_by_who_opens_it_while_an_older_worker_goes_on(
    app: Path, tmp_path: Path
) -> None:
    """The default for a file, which is of one machine."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    workers = Workers(app, url)
    try:
        workers.start(this())
        wait_until(lambda: (tmp_path / "jobs.db").exists(), workers.said)
        wait_until(lambda: versions(url) == {tenure.__version__}, workers.said)
        ids = dispatched(url, 1)
        workers.start(later(tmp_path / "new", oldest=1))
        new = Release(tmp_path / "new")
        wait_until(lambda: set(ids) <= set(results(new, url)), workers.said)
        wait_until(lambda: status(new, url).json["found"] == 2, workers.said)
        ids = [new.run("enqueue", "work", str(n), url=url).out.strip() for n in range(3)]
        wait_until(lambda: set(ids) <= set(results(new, url)), workers.said)
    finally:
        codes = workers.end()
    assert codes == [0, 0], workers.said()


def test_each_release_works_with_the_schema_of_the_one_before() -> None:
    """The promise itself: it fails for a release that breaks it."""
    for oldest, expected in (
        (of_sqlite.OLDEST, of_sqlite.expected()),
        (of_postgres.OLDEST, of_postgres.expected()),
        (of_redis.OLDEST, of_redis.SCHEMA_VERSION),
    ):
        assert 1 <= oldest <= max(1, expected - 1)
