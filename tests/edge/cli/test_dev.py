"""`tenure dev APP`: code that changes under load, code that does not load, and its end."""

import json
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import tenure
from tenure.cli.changes import Changes, is_source
from tenure.clock import SystemClock
from tests.edge.cli.programs import Program
from tests.edge.cli.running import PROGRAM, lines, run
from tests.process.ledger import Ledger
from tests.process.waiting import wait_until

APP = """
import asyncio
import json
import os

import tenure

VERSION = 0
tasks = tenure.Tasks(prefix="shop.")


@tasks.task
async def pack(number: int, seconds: float) -> None:
    write("started", number)
    await asyncio.sleep(seconds)
    write("done", number)


def write(what: str, number: int) -> None:
    job = tenure.current_job()
    entry = {"what": what, "number": number, "version": VERSION, "attempt": job.attempt}
    file = os.open("ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, json.dumps(entry).encode() + b"\\n")
    os.close(file)


queue = tenure.connect(os.environ["TENURE_URL"])
worker = tenure.Worker(queue, tasks=[tasks], concurrency=4)
"""
WITHOUT_WATCHFILES = [
    *(sys.executable, "-W", "error", "-c"),
    "import sys; sys.modules['watchfiles'] = None; from tenure.cli import main; sys.exit(main())",
]


class Shop:
    """A program in a folder, and the ledger of what its jobs have done."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.ledger = Ledger(folder / "ledger")
        self.programs: list[Program] = []
        self.write(0)

    def write(self, version: int) -> None:
        self.write_text(APP.replace("VERSION = 0", f"VERSION = {version}"))

    def write_text(self, text: str) -> None:
        (self.folder / "shop.py").write_text(text, encoding="utf-8")

    def start(self, *arguments: str, command: list[str] = PROGRAM) -> Program:
        program = Program(self.folder, self.url, "dev", "shop:worker", *arguments, command=command)
        self.programs.append(program)
        program.says("runs")
        return program

    def call(self, number: int, seconds: float) -> tenure.Call:
        return tenure.Call("shop.pack", {"number": number, "seconds": seconds})

    def versions(self, what: str = "done") -> set[int]:
        return {entry["version"] for entry in self.ledger.read(what)}

    def waits_for(self, what: str, number: int, **matching: object) -> None:
        wait_until(
            lambda: bool(self.ledger.read(what, number=number, **matching)),
            lambda: f"{number}: {self.programs[-1].stderr}",
        )


@pytest.fixture
def shop(tmp_path: Path, url: str) -> Iterator[Shop]:
    shop = Shop(tmp_path, url)
    yield shop
    for program in shop.programs:
        program.close()


@pytest.mark.parametrize("command", [PROGRAM, WITHOUT_WATCHFILES], ids=["watchfiles", "by looking"])
async def test_code_changes_under_load_and_every_job_is_done_once(
    shop: Shop, command: list[str]
) -> None:
    """Jobs that run when the code changes finish in the old one; nothing is lost or run twice."""
    program = shop.start(command=command)
    looked = "by looking" in program.stderr
    assert looked == (command is WITHOUT_WATCHFILES)
    number, jobs = 0, list[tenure.JobHandle]()
    async with tenure.connect(shop.url) as queue:
        for version in range(1, 5):
            shop.write(version)

            def is_new(version: int = version) -> bool:
                return version in shop.versions("started")

            while not is_new():
                calls = [shop.call(number + each, 0.05) for each in range(20)]
                jobs += await queue.dispatch_many(calls)
                number += len(calls)
                for job in jobs[-20:]:
                    await job.result(timeout=30)
                assert number < 20_000, program.stderr
        counts = await queue.counts()
    assert program.stderr.count("shop.py changed: running jobs may finish") >= 4
    program.send(signal.SIGINT)
    assert program.wait() == 0, program.stderr
    done = Counter(entry["number"] for entry in shop.ledger.read("done"))
    assert done == Counter(range(number))
    assert len(shop.ledger.read("started")) == number
    assert {entry["attempt"] for entry in shop.ledger.read("done")} == {1}
    assert {1, 2, 3, 4} <= shop.versions()
    assert (counts.completed, counts.pending, counts.processing) == (number, 0, 0)
    assert "Traceback" not in program.stderr


async def test_a_job_that_outlasts_the_drain_time_is_started_again_by_the_new_code(
    shop: Shop,
) -> None:
    """W23: it is handed back with no attempt spent."""
    program = shop.start("--drain-timeout", "0.2s")
    async with tenure.connect(shop.url) as queue:
        (job,) = await queue.dispatch_many([shop.call(1, 600)])
        shop.waits_for("started", 1)
        shop.write_text(
            APP.replace("VERSION = 0", "VERSION = 1").replace("sleep(seconds)", "sleep(0)")
        )
        await job.result(timeout=30)
        record = await queue.get(job.id)
    assert record.attempt == 1
    started = [(entry["version"], entry["attempt"]) for entry in shop.ledger.read("started")]
    assert started == [(0, 1), (1, 1)]
    program.send(signal.SIGINT)
    assert program.wait() == 0, program.stderr


BROKEN = [
    ("x = = 3", "SyntaxError", "x = = 3"),
    ("no_such_name", "NameError: name 'no_such_name' is not defined", "no_such_name"),
    ("import nowhere_at_all", "imports 'nowhere_at_all', which is not installed", "import nowhere"),
    ("del worker", "shop has no 'worker'", ""),
    ("worker = 3", "must be a Worker", ""),
    ("raise SystemExit(3)", "raised SystemExit: 3", "raise SystemExit(3)"),
]


async def test_code_that_does_not_load_is_shown_and_the_next_change_waited_for(shop: Shop) -> None:
    program = shop.start()
    async with tenure.connect(shop.url) as queue:
        for number, (wrong, cause, line) in enumerate(BROKEN, 1):
            shop.write_text(f"{APP}\n{wrong}\n")
            program.says("waits for the next change", number)
            told = program.stderr[program.stderr.rindex("waits for the next change") :]
            assert cause in told
            if line:
                assert f"shop.py, line {len(APP.splitlines()) + 2}: {line}" in told
            shop.write(number)
            (job,) = await queue.dispatch_many([shop.call(number, 0)])
            await job.result(timeout=30)
            shop.waits_for("done", number, version=number)
    assert "Traceback" not in program.stderr
    program.send(signal.SIGTERM)
    assert program.wait() == 0, program.stderr


def test_code_that_never_loaded_may_be_mended(shop: Shop) -> None:
    shop.write_text("x = = 3")
    program = Program(shop.folder, shop.url, "dev", "shop:worker")
    shop.programs.append(program)
    program.says("waits for the next change")
    shop.write(1)
    program.says("runs")
    program.send(signal.SIGINT)
    assert program.wait() == 0, program.stderr


def test_it_ends_while_it_waits_for_a_change(shop: Shop) -> None:
    shop.write_text("x = = 3")
    program = Program(shop.folder, shop.url, "dev", "shop:worker")
    shop.programs.append(program)
    program.says("waits for the next change")
    program.send(signal.SIGINT)
    assert program.wait() == 0, program.stderr


def test_what_it_logs_is_for_people_or_for_programs(shop: Shop) -> None:
    program = shop.start("--json")
    program.send(signal.SIGINT)
    assert program.wait() == 0
    logged = [json.loads(line)["message"] for line in program.stderr.splitlines()]
    assert logged[0] == f"watching the Python files below {shop.folder}"


@pytest.mark.parametrize(
    ("arguments", "code", "cause"),
    [
        (("shop",), 4, "must be module:attribute"),
        (("shop:worker", "--url", "memory://"), 2, "the app names its store"),
        (("shop:worker", "--drain-timeout", "soon"), 2, "is no duration"),
    ],
)
def test_a_wrong_call_is_refused(
    shop: Shop, arguments: tuple[str, ...], code: int, cause: str
) -> None:
    ran = run("dev", *arguments, url=shop.url, cwd=shop.folder)
    assert ran.code == code
    assert cause in lines(ran)[0]


# --- changes ------------------------------------------------------------------------------------


@pytest.fixture(params=["watchfiles", "by looking"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "by looking":
        monkeypatch.setitem(sys.modules, "watchfiles", None)
    (tmp_path / "mail").mkdir()
    (tmp_path / "mail" / "send.py").write_text("1")
    (tmp_path / "shop.py").write_text("1")
    return tmp_path


def told(changes: Changes) -> str:
    seen = ""

    def look() -> bool:
        nonlocal seen
        seen = changes.take()
        return bool(seen)

    wait_until(look, lambda: "no change was told")
    return seen


def test_a_file_that_is_written_made_moved_or_removed_is_a_change(folder: Path) -> None:
    with Changes(folder, SystemClock()) as changes:
        (folder / "shop.py").write_text("2")
        assert told(changes) == "shop.py changed"
        (folder / "mail" / "new.py").write_text("2")
        assert told(changes) == "mail/new.py changed"
        (folder / "mail" / "new.py").unlink()
        assert told(changes) == "mail/new.py changed"
        (folder / ".shop.swp").write_text("3")
        (folder / ".shop.swp").rename(folder / "shop.py")
        assert told(changes) == "shop.py changed"
        assert changes.take() == ""


def test_what_is_no_source_of_the_program_is_no_change(folder: Path) -> None:
    for name in (".venv", "__pycache__", "node_modules"):
        (folder / name).mkdir()
    with Changes(folder, SystemClock()) as changes:
        for name in ("jobs.db", ".venv/a.py", "__pycache__/a.py", "node_modules/a.py", ".a.py"):
            (folder / name).write_text("2")
        (folder / "shop.py").write_text("2")
        assert told(changes) == "shop.py changed"


def test_it_may_be_closed_twice_and_leaves_no_thread(folder: Path) -> None:
    changes = Changes(folder, SystemClock())
    changes.close()
    changes.close()
    assert "tenure-changes" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("shop.py", True),
        ("mail/send.py", True),
        ("shop.pyc", False),
        ("venv/lib/site-packages/x.py", False),
        (".tox/a.py", False),
    ],
)
def test_which_files_are_sources(path: str, source: bool) -> None:
    assert is_source(path) is source
