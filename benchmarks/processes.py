"""The processes of a contestant, as the suite sees them: asked and answered in lines of JSON.

The other end is `protocol/serving.py`. Every process has a session of its own and is ended with
all its children, by the number of that session.
"""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from benchmarks.contestants import ROOT
from benchmarks.protocol.client import Setting

__all__ = ["Broken", "ClientProcess", "WorkerProcess", "client", "output", "worker"]

_TAIL = 1500  # characters of what a process printed that are told


class Broken(Exception):
    """A process ended, or did not answer in time; `printed` is the end of what it said."""

    def __init__(self, what: str, printed: str) -> None:
        super().__init__(what)
        self.printed = printed


class _Process:
    """One process. `patience`: seconds for each of its answers."""

    def __init__(
        self, role: str, name: str, python: Path, setting: Setting, log: Path, patience: float
    ) -> None:
        self._what = f"the {role} of {name}"
        self._patience = patience
        self._log = log
        with log.open("ab") as printed:
            self._process = subprocess.Popen(
                [
                    *(python, "-u", "-m", f"benchmarks.peers.{name}", role),
                    json.dumps(asdict(setting)),
                ],
                cwd=ROOT,
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=printed,
                text=True,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def _input(self) -> IO[str]:
        assert self._process.stdin is not None
        return self._process.stdin

    def tell(self, line: str) -> None:
        try:
            print(line, file=self._input, flush=True)
        except OSError:
            raise self.broken("ended") from None

    def hear(self) -> dict[str, Any]:
        """The next answer."""
        assert self._process.stdout is not None
        silent = threading.Event()

        def give_up() -> None:
            silent.set()
            self._kill()

        overdue = threading.Timer(self._patience, give_up)
        overdue.start()
        try:
            line = self._process.stdout.readline()
        finally:
            overdue.cancel()
        if not line:
            raise self.broken("did not answer in time" if silent.is_set() else "ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def broken(self, how: str) -> Broken:
        text = self._log.read_text("utf-8", "replace")
        return Broken(f"{self._what} {how}: {_last_line(text)}", text[-_TAIL:])

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def end(self, wait: float) -> int:
        """Let it end, within so many seconds; its exit code."""
        try:
            if wait > 0:
                self._process.terminate()
                self._process.wait(wait)
        except subprocess.TimeoutExpired:
            pass  # it is killed next
        finally:
            self._kill()
        code = self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        return code

    def _kill(self) -> None:
        try:
            os.killpg(self.pid, signal.SIGKILL)  # its children too, when it has ended itself
        except ProcessLookupError:
            return


class ClientProcess(_Process):
    """The process that dispatches."""

    def ask(self, do: str, **arguments: object) -> dict[str, Any]:
        self.tell(json.dumps({"do": do, **arguments}))
        return self.hear()


class WorkerProcess(_Process):
    """A process that works, once it is told to start."""

    def start(self) -> None:
        self.tell("start")


@contextmanager
def client(
    name: str, python: Path, setting: Setting, log: Path, patience: float
) -> Generator[ClientProcess]:
    """A client that has its store open, or is about to: its first answer says so."""
    process = ClientProcess("client", name, python, setting, log, patience)
    try:
        yield process
    finally:
        process.end(0)


@contextmanager
def worker(
    name: str, python: Path, setting: Setting, log: Path, patience: float
) -> Generator[WorkerProcess]:
    """A worker that is ready to start."""
    process = WorkerProcess("worker", name, python, setting, log, patience)
    try:
        process.hear()
        yield process
    finally:
        process.end(0)


def output(what: str, command: Sequence[str | Path], patience: float) -> str:
    """What a program prints that ends by itself."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=patience)
    except subprocess.TimeoutExpired:
        raise Broken(f"{what} did not end in time", "") from None
    if done.returncode:
        raise Broken(f"{what} failed: {_last_line(done.stderr)}", done.stderr[-_TAIL:])
    return done.stdout


def _last_line(printed: str) -> str:
    lines = printed.strip().splitlines()
    return lines[-1].strip() if lines else "it printed nothing"


def _environment() -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}
