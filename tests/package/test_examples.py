"""Every program in `examples/` runs, and the driver there is what `docs/drivers.md` says of it."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import pytest

import tenure
from examples.minimal_driver import JsonFileDriver
from tenure import Capability, Claim, ClaimRequest, Driver
from tenure.testing.conformance import CHECKS, conform

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PAGE = ROOT / "docs" / "drivers.md"
REQUIRED = {"open", "close", "enqueue", "claim", "record", "counts"}

# What each program prints.
PRINTED = {
    "minimal_driver.py": """\
first: completed with "Hello, Ada!"
second: completed with "Hello, Grace!"
third: failed: ValueError: nobody to greet
fourth: failed: no handler is registered for 'wave'
in the file: 2 completed, 2 failed
""",
}


def run(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "dev", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONIOENCODING": "utf-8", "PYTHONPATH": str(EXAMPLES)},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_prints_what_it_is_expected_to(path: Path, tmp_path: Path) -> None:
    ran = run(tmp_path, path)
    assert (ran.stdout, ran.returncode) == (PRINTED[path.name], 0), ran.stderr
    assert "Warning" not in ran.stderr


def test_the_tests_of_the_shop_pass_in_a_project_of_its_own(tmp_path: Path) -> None:
    """In milliseconds each, as they check themselves, and with every warning an error."""
    shutil.copytree(EXAMPLES / "shop", tmp_path / "shop", ignore=shutil.ignore_patterns("__*"))
    ran = run(tmp_path / "shop", "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "5 passed" in ran.stdout, ran.stdout
    assert ran.returncode == 0


# --- the page -----------------------------------------------------------------------------------


def page(folder: Path) -> list[tuple[str, str]]:
    """Write the test module of the page where it can run; the programs, and what each prints."""
    blocks = r"^```python\n(.*?)^```\n(?:\n^```text\n(.*?)^```\n)?"
    found = re.findall(blocks, PAGE.read_text(encoding="utf-8"), re.S | re.M)
    (module, nothing), *programs = found
    assert nothing == ""
    (folder / "test_json_file.py").write_text(module, encoding="utf-8")
    return programs


@pytest.mark.parametrize("number", range(3))
def test_a_program_of_the_page_prints_what_the_page_shows(number: int, tmp_path: Path) -> None:
    programs = page(tmp_path)
    assert len(programs) == 3
    source, shown = programs[number]
    (tmp_path / "program.py").write_text(source, encoding="utf-8")
    ran = run(tmp_path, "program.py")
    assert (ran.stdout, ran.returncode) == (shown, 0), ran.stderr


def test_the_test_module_of_the_page_passes(tmp_path: Path) -> None:
    page(tmp_path)
    ran = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_json_file.py")
    passed = sum(check.needs <= JsonFileDriver.capabilities for check in CHECKS)
    assert f"{passed} passed, {len(CHECKS) - passed} skipped" in ran.stdout, ran.stdout
    assert ran.returncode == 0


# --- the driver ---------------------------------------------------------------------------------


@asynccontextmanager
async def queue_on(driver: Driver) -> AsyncGenerator[tenure.Queue]:
    async with tenure.Queue(driver) as queue:
        yield queue


def test_it_has_the_six_required_operations_and_no_other() -> None:
    operations = {name for name in vars(Driver) if not name.startswith("_")} - {"capabilities"}
    assert operations & vars(JsonFileDriver).keys() == REQUIRED


def test_it_conforms_with_skips_for_what_it_does_not_name_only(tmp_path: Path) -> None:
    numbers = iter(range(len(CHECKS)))

    @asynccontextmanager
    async def open_store() -> AsyncGenerator[Driver]:
        driver = JsonFileDriver(tmp_path / f"{next(numbers)}.json")
        await driver.open()
        yield driver
        await driver.close()

    report = asyncio.run(conform(open_store))
    report.raise_for_failures()
    able = frozenset({Capability.RELEASE})
    assert JsonFileDriver.capabilities == able
    assert {r.check.name: r.missing for r in report.skipped} == {
        check.name: check.needs - able for check in CHECKS if check.needs - able
    }


async def test_a_full_disk_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    """I15: what raised left no trace."""
    driver = JsonFileDriver(tmp_path / "folder" / "jobs.json")
    await driver.open()
    with pytest.raises(tenure.StoreError, match="cannot be written"):
        await driver.enqueue([tenure.NewJob(id="a", name="greet")])
    assert (await driver.counts()).pending == 0


async def same(payload: object) -> object:
    return payload


class Watched(JsonFileDriver):
    """Counts what is called, and keeps the claims that were asked for."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.called: Counter[str] = Counter()
        self.requests: list[ClaimRequest] = []

    def __getattribute__(self, name: str) -> object:
        if not name.startswith("_") and callable(getattr(Driver, name, None)):
            self.called[name] += 1
        return super().__getattribute__(name)

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        self.requests.append(request)
        return await super().claim(request, now=now)


async def test_w02_a_lease_must_outlast_every_job(tmp_path: Path) -> None:
    """W2: nothing could extend it."""
    async with queue_on(JsonFileDriver(tmp_path / "jobs.json")) as queue:
        with pytest.raises(tenure.InvalidConfiguration, match=r"lease must be longer .* got 60"):
            tenure.Worker(queue, lease=60, job_timeout=60)
        tenure.Worker(queue, lease=61, job_timeout=60)


async def test_w02_w05_w09_a_worker_copes_with_six_operations(tmp_path: Path) -> None:
    """W2, W5, W9: a long lease, no reclaim loop, an unknown name fails; nothing else is tried."""
    driver = Watched(tmp_path / "jobs.json")
    ended: dict[str, tenure.Outcome] = {}
    all_ended = asyncio.Event()

    def watch(event: tenure.Event) -> None:
        if isinstance(event, tenure.JobSettled):
            ended[event.job.id] = event.outcome
            if len(ended) == 2:
                all_ended.set()

    async with queue_on(driver) as queue:
        worker = tenure.Worker(queue, observers=[watch])
        worker.register("known", same)
        await queue.dispatch("known", 1, id="a")
        await queue.dispatch("unknown", 2, id="b")
        async with worker.run() as handle:
            await all_ended.wait()
            error = handle.try_next_error()
            assert isinstance(error, tenure.HandlerNotFound)
            assert handle.try_next_error() is None
        assert ended["a"] == tenure.Completed(b"1")
        assert isinstance(ended["b"], tenure.Failed)
        assert (ended["b"].failure.kind, ended["b"].started) == ("no_handler", False)
        assert {request.lease for request in driver.requests} == {600.0}
        # An exchange of its own is the default of the contract: record, then claim.
        assert driver.called.keys() - {"exchange"} <= REQUIRED


async def test_a_shutdown_gives_a_job_back_and_another_worker_runs_it(tmp_path: Path) -> None:
    """W23: `Capability.RELEASE` needs nothing but `record`; the file is what they share."""
    path = tmp_path / "jobs.json"
    started, ended = asyncio.Event(), asyncio.Event()

    async def slow(payload: object) -> None:
        started.set()
        await asyncio.Event().wait()

    async with queue_on(JsonFileDriver(path)) as queue:
        worker = tenure.Worker(queue)
        worker.register("work", slow)
        await queue.dispatch("work")
        handle = worker.run()
        await started.wait()
        assert await handle.shutdown(drain=0) is None
        counts = await queue.counts()
        assert (counts.pending, counts.processing) == (1, 0)

    def note(event: tenure.Event) -> None:
        if isinstance(event, tenure.JobSettled):
            ended.set()

    async with queue_on(JsonFileDriver(path)) as queue:
        worker = tenure.Worker(queue, observers=[note])
        worker.register("work", same)
        async with worker.run():
            await ended.wait()
        assert (await queue.counts()).completed == 1
