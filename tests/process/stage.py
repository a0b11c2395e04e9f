"""One store, one ledger, and the programs that a test starts on them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import tenure
from tests.process.ledger import Ledger
from tests.process.waiting import wait_until

__all__ = ["Program", "Stage"]

T = TypeVar("T")

ROOT = Path(__file__).parents[2]


class Program:
    """A running program of `tests/process/programs`; it ends in order when its stdin is closed."""

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, object],
        folder: Path,
        environment: Mapping[str, str],
    ) -> None:
        self._errors = folder / f"stderr-{name}-{len(list(folder.glob('stderr-*')))}"
        with self._errors.open("wb") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "error", "-m", f"tests.process.programs.{name}"],
                cwd=ROOT,
                env={**os.environ, **environment, "TENURE_TEST": json.dumps(arguments)},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def stderr(self) -> str:
        return self._errors.read_text()

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def close_stdin(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def wait(self, *, seconds: float = 30.0) -> int:
        """The exit code; fails when it is still running after `seconds`."""
        wait_until(lambda: not self.running, lambda: f"{self.pid} still runs", seconds=seconds)
        return self._process.wait()

    def stop(self, *, seconds: float = 30.0) -> None:
        """End it in order; it must have nothing to complain of on stderr."""
        self.close_stdin()
        assert self.wait(seconds=seconds) == 0, self.stderr
        assert self.stderr == ""

    def kill(self) -> None:
        """Whatever state it is in."""
        if self.running:
            self._process.kill()
        self._process.wait()
        self.close_stdin()


class Stage:
    """What a test sees: it dispatches and looks for itself, and starts programs.

    `url` is an empty store's; None is a SQLite file in the folder.
    """

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self.folder = folder
        self.url = url or f"sqlite:///{folder / 'jobs.db'}?synchronous=NORMAL"
        self.ledger = Ledger(folder / "ledger")
        self.go = folder / "go"
        self.programs: list[Program] = []

    def start(
        self, name: str = "worker", /, *, zone: str | None = None, **options: object
    ) -> Program:
        """Start a program, in a time zone of its own if given; `options` are the worker's."""
        arguments = {
            "url": self.url,
            "ledger": str(self.ledger.path),
            "go": str(self.go),
            "options": options,
        }
        environment = {} if zone is None else {"TZ": zone}
        program = Program(name, arguments, self.folder, environment)
        self.programs.append(program)
        self.wait_for("ready", 1, pid=program.pid)
        return program

    def run(self, use: Callable[[tenure.Queue], Awaitable[T]]) -> T:
        """Use the queue from here, on an event loop of its own."""

        async def main() -> T:
            async with tenure.connect(self.url) as queue:
                return await use(queue)

        return asyncio.run(main())

    def dispatch(self, name: str, payloads: Sequence[Any], **options: Any) -> list[str]:
        """Dispatch one job for each payload; their ids."""

        async def use(queue: tenure.Queue) -> list[str]:
            calls = [tenure.Call(name, payload, **options) for payload in payloads]
            return [job.id for job in await queue.dispatch_many(calls)]

        return self.run(use)

    def jobs(self, ids: Sequence[str]) -> list[tenure.Job[Any]]:
        async def use(queue: tenure.Queue) -> list[tenure.Job[Any]]:
            return [await queue.get(job_id) for job_id in ids]

        return self.run(use)

    def without_lifelines(self) -> None:
        """Let leases alone bring jobs back, before any program is started."""
        if self.url.startswith("sqlite"):
            (self.folder / "jobs.db-workers").touch()  # where the folder would be

    def freeze(self, program: Program) -> None:
        """Stop a program with SIGSTOP, in no transaction: on a file it would stop every writer."""
        for _ in range(100):
            program.send(signal.SIGSTOP)
            if self._writable():
                return
            program.send(signal.SIGCONT)
            time.sleep(0.05)
        raise AssertionError("it was in a transaction each time")

    def _writable(self) -> bool:
        options: dict[str, Any] = {"busy_timeout": 1.0} if self.url.startswith("sqlite") else {}

        async def write() -> bool:
            try:
                async with tenure.connect(self.url, **options) as queue:
                    await queue.resume("nobody")
            except tenure.StoreUnavailable:
                return False
            return True

        return asyncio.run(write())

    def counts(self) -> tenure.Counts:
        return self.run(lambda queue: queue.counts())

    def wait_for(self, what: str, count: int, *, seconds: float = 30.0, **matching: object) -> None:
        """Wait until the ledger has that many entries."""

        def found() -> int:
            return len(self.ledger.read(what, **matching))

        wait_until(
            lambda: found() >= count,
            lambda: f"{found()} of {count} entries {what!r} {matching}; stderr: {self._stderr()}",
            seconds=seconds,
        )

    def wait_completed(self, count: int, *, seconds: float = 60.0) -> None:
        wait_until(
            lambda: self.counts().completed >= count,
            lambda: f"{self.counts()} instead of {count} completed; stderr: {self._stderr()}",
            seconds=seconds,
        )

    def _stderr(self) -> list[str]:
        return [program.stderr[-2000:] for program in self.programs]

    def close(self) -> None:
        for program in self.programs:
            program.kill()
