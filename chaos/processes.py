"""The processes of a run: each with a ledger, each ended when the run is over."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from chaos.ledger import Entry, Ledger

__all__ = ["Process", "wait_until"]

ROOT = Path(__file__).parents[1]


class Process:
    """A running module of `chaos`; it ends in order when its stdin is closed."""

    def __init__(
        self,
        module: str,
        name: str,
        folder: Path,
        *arguments: object,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.ledger = Ledger(folder / f"ledger-{name}", name)
        self._errors = folder / f"stderr-{name}"
        with self._errors.open("wb") as stderr:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-W", "error", "-m", f"chaos.{module}"),
                    *(name, str(self.ledger.path), *map(str, arguments)),
                ],
                cwd=ROOT,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def code(self) -> int | None:
        """How it ended: below zero, by which signal; None while it runs."""
        return self._process.poll()

    @property
    def stderr(self) -> str:
        return self._errors.read_text("utf-8", "replace")

    def entries(self, what: str) -> Sequence[Entry]:
        return [entry for entry in self.ledger.read() if entry.what == what]

    def send(self, number: signal.Signals) -> None:
        os.kill(self._process.pid, number)

    async def ready(self) -> None:
        await wait_until(
            lambda: bool(self.entries("ready")), f"{self.name} is ready: {self.stderr}"
        )

    async def ended(self, *, seconds: float = 60.0) -> str | None:
        """Let it end in order; what was wrong with that."""
        self._close_stdin()
        await wait_until(lambda: not self.running, f"{self.name} ends", seconds=seconds)
        if self._process.returncode or self.stderr:
            return f"{self.name} ended with {self._process.returncode}: {self.stderr[-2000:]}"
        return None

    def kill(self) -> None:
        """Whatever state it is in."""
        if self.running:
            self._process.kill()
        self._process.wait()
        self._close_stdin()

    def _close_stdin(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()


async def wait_until(
    predicate: Callable[[], bool], describe: str, *, seconds: float = 60.0
) -> None:
    """Wait until the predicate holds. Raises `TimeoutError` when it does not in time."""
    deadline = time.monotonic() + seconds
    while not predicate():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:g} s: {describe}")
        await asyncio.sleep(0.05)
