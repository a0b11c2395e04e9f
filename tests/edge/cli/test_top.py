"""`tenure top`: on a terminal under load, elsewhere, and while the store is away."""

import json
import re
import signal
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shlex import join
from typing import Any

import pytest

import tenure
from tenure.cli.looks import FailedJob, Look, Looks, QueueLook
from tenure.cli.panes import pane
from tenure.cli.top import rest
from tenure.presence import WorkerInfo
from tests.edge.cli.programs import Program
from tests.edge.cli.running import PROGRAM, call, run
from tests.edge.cli.tmux import Terminal, terminal
from tests.process.waiting import wait_until
from tests.servers.redis import RedisServer, running

APP = """
import asyncio
import os

import tenure

tasks = tenure.Tasks(prefix="shop.")


@tasks.task
async def pack(number: int) -> int:
    await asyncio.sleep(0.01)
    if number % 50 == 0:
        raise LookupError(f"no parcel {number}")
    return number


queue = tenure.connect(os.environ["TENURE_URL"])
worker = tenure.Worker(queue, tasks=[tasks], concurrency=4, name="packer")
"""
NOW = datetime(2030, 1, 31, 9, 0, 0, tzinfo=UTC)


async def fill(url: str, jobs: int) -> None:
    async with tenure.connect(url) as queue:
        await queue.dispatch_many(
            [tenure.Call("shop.pack", {"number": number}) for number in range(jobs)]
        )


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[list[Program]]:
    (tmp_path / "shop.py").write_text(APP, encoding="utf-8")
    started: list[Program] = []
    yield started
    for program in started:
        program.close()


def start_worker(folder: Path, url: str, started: list[Program]) -> None:
    started.append(Program(folder, url, "worker", "shop:worker"))


def waiting(frame: str) -> int:
    """The number of waiting jobs in a frame, -1 where it shows none."""
    found = re.search(r"([\d,]+)\+? waiting", frame)
    return -1 if found is None else int(found[1].replace(",", ""))


def watch(screen: Terminal, url: str, *arguments: str, program: list[str] = PROGRAM) -> None:
    """Run it between two looks at how the terminal is set, and tell its exit code."""
    command = join([*program, "top", "--url", url, "--interval", "0.2s", *arguments])
    screen.type("clear; stty -g >before")
    screen.type(f"{command}; echo ended with $?")


def is_as_before(screen: Terminal, folder: Path) -> bool:
    screen.type("stty -g >after; echo 'looked' at")
    screen.shows("looked at\n")
    return (folder / "before").read_text() == (folder / "after").read_text()


WITHOUT_RICH = [
    *(sys.executable, "-c"),
    "import sys; sys.modules['rich'] = None; from tenure.cli import main; sys.exit(main())",
]


@pytest.mark.parametrize("program", [PROGRAM, WITHOUT_RICH], ids=["rich", "without rich"])
async def test_its_numbers_move_under_load_and_q_ends_it(
    tmp_path: Path, each_url: str, worker: list[Program], program: list[str]
) -> None:
    """With colours where rich is, without any where it is not; the terminal is as it was."""
    await fill(each_url, 2000)
    start_worker(tmp_path, each_url, worker)
    with terminal(tmp_path) as screen:
        watch(screen, each_url, program=program)
        first = screen.until(lambda frame: 0 < waiting(frame) < 2000, "some waiting jobs")
        then = screen.until(lambda frame: 0 <= waiting(frame) < waiting(first), "fewer of them")
        assert "LookupError: no parcel" in then
        assert "packer" in then
        assert re.search(r"^default .* [1-9]\d*\.\d ", then, re.M), then
        coloured = "\x1b[" in screen.frame(escapes=True)
        assert coloured == (program is PROGRAM)
        screen.press("q")
        screen.shows("ended with 0")
        assert "waiting" not in screen.frame()
        assert is_as_before(screen, tmp_path)


async def test_it_draws_for_the_size_that_the_terminal_has(tmp_path: Path, url: str) -> None:
    await fill(url, 20)
    with terminal(tmp_path, NO_COLOR="1", COLUMNS="70", LINES="9") as screen:
        watch(screen, url)
        wide = screen.shows("COMPLETED/S", "OLDEST", "SLOTS", "COMPLETED  FAILED")
        assert "\x1b[" not in screen.frame(escapes=True)
        assert wide.count("\n") <= 24
        screen.resize(40, 6)
        screen.until(
            lambda frame: "WAITING" in frame and "COMPLETED/S" not in frame, "fewer columns"
        )
        screen.resize(20, 1)
        screen.shows("20 waiting")
        screen.resize(100, 24)
        screen.shows("COMPLETED/S", "OLDEST")
        screen.press("C-c")
        screen.shows("ended with 130")
        assert "Traceback" not in screen.frame()
        assert is_as_before(screen, tmp_path)


async def test_ctrl_z_gives_the_terminal_to_the_shell_until_fg(tmp_path: Path, url: str) -> None:
    await fill(url, 20)
    with terminal(tmp_path) as screen:
        screen.type("set -m")
        watch(screen, url)
        screen.shows("20 waiting")
        screen.press("C-z")
        screen.until(lambda frame: "20 waiting" not in frame and "$" in frame, "the shell")
        screen.type("clear; fg")
        screen.shows("20 waiting", "q ends")
        screen.press("q")
        screen.until(lambda frame: "q ends" not in frame, "the shell")
        assert is_as_before(screen, tmp_path)


async def test_a_store_that_goes_away_is_told_and_comes_back(tmp_path: Path) -> None:
    with running(tmp_path / "server", "--appendonly", "yes") as server:
        await fill(server.url, 30)
        with terminal(tmp_path) as screen:
            watch(screen, server.url)
            screen.shows("30 waiting")
            server.kill()
            gone = screen.until(lambda frame: "the store" in frame, "the outage")
            assert "30 waiting" in gone, "what was seen last stays"
            server.start()
            screen.until(
                lambda frame: "the store" not in frame and "30 waiting" in frame, "the store again"
            )
            screen.press("q")
            screen.shows("ended with 0")
            assert "Traceback" not in screen.frame()


def test_3_a_store_that_was_never_there(tmp_path: Path) -> None:
    with terminal(tmp_path) as screen:
        watch(screen, "redis://127.0.0.1:1")
        frame = screen.shows("ended with 3")
        assert "error: " in frame
        assert "hint: " in frame
        assert is_as_before(screen, tmp_path)


# --- elsewhere than on a terminal ---------------------------------------------------------------


def test_once_prints_one_frame_with_rates(each_url: str) -> None:
    call("enqueue", "shop.pack", "1", url=each_url)
    ran = call("top", "--once", "--interval", "0.1s", url=each_url)
    assert (ran.code, ran.err) == (0, "")
    assert "1 waiting, 0 processing, 0 delayed, 0.0 completed/s, 0.0 failed/s" in ran.out
    look = call("top", "--once", "--interval", "100ms", "--json", url=each_url).json
    assert look["all"]["waiting"] == 1
    assert look["queues"][0]["oldest"] > 0
    assert look["queues"][0]["completed_rate"] == 0


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_it_goes_on_printing_until_nobody_reads(tmp_path: Path, url: str, form: list[str]) -> None:
    call("enqueue", "shop.pack", "1", url=url)
    with (tmp_path / "out").open("wb") as out:
        program = Program(tmp_path, url, "top", "--interval", "0.1s", *form, stdout=out)
    try:
        seen = tmp_path / "out"
        word = '"waiting":1' if form else "1 waiting"
        wait_until(lambda: seen.read_text().count(word) >= 3, seen.read_text)
        program.send(signal.SIGINT)
        assert program.wait() == 130
    finally:
        program.close()
    if form:
        assert all(json.loads(line)["at"] for line in seen.read_text().splitlines())
    assert "\x1b" not in seen.read_text()
    assert "Traceback" not in program.stderr


@pytest.mark.parametrize("interval", ["0", "soon", "50ms"])
def test_2_an_interval_that_cannot_be(url: str, interval: str) -> None:
    assert run("top", "--interval", interval, url=url).code == 2


# --- what it costs ------------------------------------------------------------------------------


async def test_a_look_asks_the_store_a_handful_of_things(redis_server: RedisServer) -> None:
    """Counts, workers, and one for each queue with due jobs; failures only when there are new."""
    url = f"{redis_server.url}?namespace=costs"
    async with tenure.connect(url) as queue:
        await queue.dispatch_many(
            [tenure.Call("pack", queue=f"q{number % 3}") for number in range(3000)]
        )
        looks = Looks(queue)
        await looks.take()
        with redis_server.client() as client:
            before = _scripts(client)
            await looks.take()
            assert _scripts(client) - before == 2 + 3


@pytest.mark.parametrize(("took", "pause"), [(0.0, 1.0), (0.1, 1.0), (0.5, 4.5)])
def test_a_look_that_takes_long_is_followed_by_a_longer_pause(took: float, pause: float) -> None:
    assert rest(1.0, took) == pause


def _scripts(client: Any) -> int:
    stats: dict[str, dict[str, int]] = client.info("commandstats")
    return sum(int(each["calls"]) for name, each in stats.items() if "evalsha" in name)


# --- its lines ----------------------------------------------------------------------------------


def look_at(*names: str, workers: int = 1, failures: int = 0, pruning: bool = False) -> Look:
    def queue(name: str) -> QueueLook:
        return QueueLook(
            name=name,
            paused=name == "slow",
            waiting=1234,
            oldest=7300.0,
            processing=5,
            delayed=6,
            blocked=0,
            completed=99_000,
            failed=7,
            cancelled=0,
            completed_rate=12.34,
            failed_rate=None,
        )

    return Look(
        at=NOW,
        all=queue("(all)"),
        queues=tuple(queue(name) for name in names),
        workers=[
            WorkerInfo(
                id=f"w{number}",
                name=None,
                host="shop-1",
                pid=4711,
                queues=names,
                concurrency=16,
                running=3,
                started_at=NOW,
                seen_at=NOW - timedelta(seconds=4),
            )
            for number in range(workers)
        ],
        failures=tuple(
            FailedJob(
                id=str(number),
                name="pack",
                queue="mail",
                at=NOW,
                attempt=1,
                message="LookupError: \x1b[31mno parcel\nmore",
            )
            for number in range(failures)
        ),
        pruning=pruning,
        capped=False,
    )


@pytest.mark.parametrize("width", [1, 20, 40, 80, 200])
@pytest.mark.parametrize("height", [1, 2, 5, 9, 24, 60])
@pytest.mark.parametrize("trouble", ["", "the store has not answered for 3 s"])
def test_a_frame_fits(width: int, height: int, trouble: str) -> None:
    look = look_at(*(f"queue-{n}" for n in range(30)), workers=9, failures=9, pruning=True)
    lines = pane(look, where="sqlite:///jobs.db", trouble=trouble, width=width, height=height)
    assert 1 <= len(lines) <= height
    assert max(len(line.text) for line in lines) <= max(width, 20)
    assert all(line.text.isprintable() for line in lines)
    if height >= 24:
        text = "\n".join(line.text for line in lines)
        assert all(head in text for head in ("QUEUE", "WORKER", "ERROR"))
        assert re.search(r"^\d+ queues more$", text, re.M) or height == 60


def test_a_frame_without_a_height_leaves_nothing_out() -> None:
    look = look_at(*(f"queue-{n}" for n in range(30)), "slow", failures=9)
    text = "\n".join(line.text for line in pane(look, where="", trouble="", width=200, height=None))
    assert text.count("queue-") >= 30
    assert text.count("LookupError") == 9
    assert "slow (paused)" in text
    assert "2h" in text


def pack(payload: object) -> object:
    return payload


async def test_rates_are_differences_and_unknown_where_jobs_were_deleted(url: str) -> None:
    async with tenure.connect(url) as queue:
        worker = tenure.Worker(queue)
        worker.register("pack", pack)
        looks = Looks(queue)
        jobs = await queue.dispatch_many([tenure.Call("pack") for _ in range(4)])
        first = await looks.take()
        assert (first.all.completed_rate, first.pruning) == (None, False)
        async with worker.run():
            for job in jobs:
                await job.result(timeout=30)
        then = await looks.take()
        assert then.all.completed_rate is not None
        assert then.all.completed_rate > 0
        assert not then.pruning
        await queue.delete(jobs[0].id)
        last = await looks.take()
        assert (last.all.completed_rate, last.pruning) == (None, True)


async def test_the_latest_failures_are_read_when_there_are_others(url: str) -> None:
    def fail(text: str) -> None:
        raise LookupError(text)

    async with tenure.connect(url) as queue:
        worker = tenure.Worker(queue)
        worker.register("pack", fail)
        looks = Looks(queue)
        assert (await looks.take()).failures == ()
        async with worker.run():
            for text in ("first", "second"):
                job = await queue.dispatch("pack", text)
                with pytest.raises(tenure.JobFailed):
                    await job.result(timeout=30)
        assert [job.message for job in (await looks.take()).failures] == [
            "LookupError: second",
            "LookupError: first",
        ]
        await queue.purge("default", state="failed")
        assert (await looks.take()).failures == ()
