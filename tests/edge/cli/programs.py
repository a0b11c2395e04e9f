"""Commands that go on, as processes: what they say, signals to them, their end.

Also the app that most workers of these tests run.
"""

import os
import signal
import subprocess
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tests.edge.cli.running import PROGRAM, call
from tests.process.waiting import wait_until

__all__ = ["APP", "Program", "Start", "entered", "starting", "state", "wait_for"]

APP = """
import os
import time

import tenure

tasks = tenure.Tasks(prefix="shop.")


@tasks.task(queue="mail", max_attempts=3)
async def send(to: str) -> str:
    return to


@tasks.task
def gate(path: str) -> int:
    open(path + ".entered", "w").close()
    while not os.path.exists(path):
        time.sleep(0.01)
    return os.getpid()


@tasks.task
async def hold_up(path: str) -> None:
    open(path + ".entered", "w").close()
    while not os.path.exists(path):
        time.sleep(0.01)  # nothing else turns on the event loop meanwhile


queue = tenure.connect(os.environ["TENURE_URL"])
bare = tenure.Worker(queue)
number = 3


def app() -> tenure.Worker:
    replacements = int(os.environ.get("REPLACEMENTS", "0"))
    drain = 1.0 if replacements else 25.0
    return tenure.Worker(
        queue,
        tasks=[tasks],
        concurrency=2,
        replacement_slots=replacements,
        drain_timeout=drain,
    )


async def later() -> tenure.Queue:
    return queue


def broken() -> tenure.Worker:
    raise LookupError("no such thing")


def leaving() -> tenure.Worker:
    raise SystemExit(3)


def wrong_kind() -> str:
    return "worker"
"""


class Program:
    """A command that runs until it is told to end; what it says goes to a file."""

    def __init__(
        self,
        folder: Path,
        url: str,
        *arguments: str,
        stdout: BinaryIO | int = subprocess.DEVNULL,
        command: Sequence[str] = PROGRAM,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._told = folder / f"stderr-{len(list(folder.glob('stderr-*')))}"
        with self._told.open("wb") as stderr:
            # As at a terminal: who runs the tests in the background may have SIGINT ignored.
            self.process = subprocess.Popen(
                [*command, *arguments],
                cwd=folder,
                env={**os.environ, "TENURE_URL": url, **(env or {})},
                stdout=stdout,
                stderr=stderr,
                preexec_fn=_hear_interrupts,
            )

    @property
    def stderr(self) -> str:
        return self._told.read_text(encoding="utf-8")

    def says(self, text: str, times: int = 1) -> None:
        wait_until(lambda: self.stderr.count(text) >= times, lambda: self.stderr)

    def send(self, number: int, then: str = "", times: int = 1) -> None:
        self.process.send_signal(number)
        if then:
            self.says(then, times)

    def wait(self) -> int:
        wait_until(lambda: self.process.poll() is not None, lambda: self.stderr)
        return self.process.returncode

    def close(self) -> None:
        """Leave nothing behind, whatever came of it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def _hear_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


Start = Callable[..., Program]


@contextmanager
def starting(folder: Path, url: str) -> Generator[Start]:
    """What starts workers; none of them is left afterwards."""
    started: list[Program] = []

    def start(*arguments: str, on: str = url, env: Mapping[str, str] | None = None) -> Program:
        program = Program(folder, on, "worker", *arguments, env=env)
        started.append(program)
        return program

    try:
        yield start
    finally:
        for program in started:
            program.close()


def state(url: str, job_id: str) -> str:
    return str(call("jobs", "show", job_id, "--json", url=url).json["job"]["state"])


def wait_for(url: str, job_id: str, wanted: str) -> None:
    wait_until(lambda: state(url, job_id) == wanted, lambda: f"{job_id}: {state(url, job_id)}")


def entered(path: Path) -> None:
    """Wait until a handler waits for the path: a claimed job's handler may not run yet."""
    mark = path.with_name(f"{path.name}.entered")
    wait_until(mark.exists, lambda: f"no handler waits for {path}")
