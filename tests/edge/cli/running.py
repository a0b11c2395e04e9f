"""The command line as its users run it: a process with arguments, and what came of it."""

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tenure.cli import main

__all__ = ["PROGRAM", "Ran", "call", "lines", "run"]

PROGRAM = [sys.executable, "-W", "error", "-m", "tenure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on standard output."""
        return json.loads(self.out)


def run(
    *arguments: str,
    url: str | None = None,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
) -> Ran:
    """Run a command with TENURE_URL set to `url`, in the folder `cwd`."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TENURE_")}
    if url is not None:
        environment["TENURE_URL"] = url
    done = subprocess.run(
        [*PROGRAM, *arguments],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        env=environment | {"PYTHONIOENCODING": "utf-8"} | dict(env or {}),
        cwd=cwd,
        timeout=60,
        check=False,
    )
    return Ran(code=done.returncode, out=done.stdout, err=done.stderr)


def call(*arguments: str, url: str, stdin: str = "") -> Ran:
    """The same in this process, which takes a tenth of the time."""
    logger = logging.getLogger("tenure")
    level = logger.level
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENURE_URL", url)
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8"))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        try:
            code = main(arguments)
        finally:
            logger.setLevel(level)
        told: list[str] = []
        for stream in (out, err):
            stream.seek(0)
            told.append(stream.read())
    return Ran(code=code, out=told[0], err=told[1])


def lines(ran: Ran) -> tuple[str, str]:
    """Cause and remedy of an error: two lines, and nothing else on standard error."""
    told = ran.err.splitlines()
    assert len(told) == 2, ran.err
    assert told[0].startswith("error: "), ran.err
    assert told[1].startswith("hint:  "), ran.err
    return told[0].removeprefix("error: "), told[1].removeprefix("hint:  ")
