"""What `tenure worker` logs: one line for each outcome, and which job a record comes from."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.edge.cli.programs import Program, Start, wait_for
from tests.edge.cli.running import call

APP = """
import asyncio
import logging
import os
import threading

import tenure

queue = tenure.connect(os.environ["TENURE_URL"])
logger = logging.getLogger("shop.orders")


async def on_the_loop(payload):
    logger.info("on the loop", extra={"color": "red"})
    await asyncio.create_task(deeper())


async def deeper():
    logger.warning("in a task that it starts")


def in_a_thread(payload):
    logger.info("in a thread")


def in_a_process(payload):
    logger.info("in a process")


async def twice(payload, job):
    logger.info("attempt")
    if job.attempt == 1:
        raise ValueError("no")


def app():
    worker = tenure.Worker(queue, process_pool=tenure.ProcessPool(size=1))
    worker.register("loop", on_the_loop)
    worker.register("thread", in_a_thread)
    worker.register("process", in_a_process, executor="process")
    worker.register("twice", twice, retry=tenure.RetryPolicy(max_attempts=2, base=0.01))
    logger.info("outside")
    return worker
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "logged.py").write_text(APP, encoding="utf-8")
    return tmp_path


def ran(start: Start, url: str, name: str, form: str) -> tuple[Program, str]:
    """A program that has run one job and ended; the job's id."""
    job = call("enqueue", name, '"secret"', "--queue", "default", url=url).out.strip()
    program = start("logged:app", "--log-format", form)
    wait_for(url, job, "completed")
    program.send(signal.SIGTERM)
    assert program.wait() == 0, program.stderr
    assert "secret" not in program.stderr, "a payload was logged"
    return program, job


def records(program: Program, **of: object) -> list[dict[str, Any]]:
    logged = [json.loads(line) for line in program.stderr.splitlines()]
    return [line for line in logged if of.items() <= line.items()]


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ("loop", ["on the loop", "in a task that it starts"]),
        ("thread", ["in a thread"]),
        ("process", ["in a process"]),
    ],
)
def test_each_record_of_a_handler_says_which_job(
    url: str, start: Start, name: str, messages: list[str]
) -> None:
    program, job = ran(start, url, name, "json")
    found = records(program, job_id=job, job_name=name, queue="default", attempt=1)
    own = [line["message"] for line in found if line["logger"] == "shop.orders"]
    assert own == messages
    [outside] = records(program, message="outside")
    assert "job_id" not in outside


def test_what_a_record_says_of_itself_stays(url: str, start: Start) -> None:
    program, _ = ran(start, url, "loop", "json")
    [line] = records(program, message="on the loop")
    assert (line["color"], line["level"], line["logger"]) == ("red", "info", "shop.orders")


def test_one_line_for_each_outcome_with_the_same_keys(url: str, start: Start) -> None:
    program, job = ran(start, url, "twice", "json")
    first, second = records(program, logger="tenure.job", job_id=job)
    usual = {"at", "level", "logger", "message", "pid"}
    keys = usual | {"job_id", "job_name", "queue", "attempt", "outcome", "seconds"}
    assert (first["outcome"], second["outcome"]) == ("retried", "completed")
    assert (set(first), set(second)) == (keys | {"delay"}, keys)
    attempts = [line["attempt"] for line in records(program, message="attempt")]
    assert attempts == [1, 2]


@pytest.mark.parametrize("name", ["loop", "thread", "process"])
def test_as_text_it_is_short(url: str, start: Start, name: str) -> None:
    program, job = ran(start, url, name, "text")
    [line] = [line for line in program.stderr.splitlines() if f"{name}:" not in line
              and f"job_id={job}" in line and "INFO    shop.orders" in line]  # fmt: skip
    color = "color=red " if name == "loop" else ""
    assert line.endswith(f"[{color}job_id={job} attempt=1]")
