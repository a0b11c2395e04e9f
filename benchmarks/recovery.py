"""How soon a job of a killed worker is started again, with the defaults, by another that is idle.

Both workers are ready; the first has taken one long job when it gets SIGKILL. Measured from that
until the first line of the handler in the other process. Where a store cannot see the end of a
process, that is a matter of the lease and of the moment in the reclaim interval: up to a minute.
"""

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import tenure
from benchmarks.contestants import ROOT
from benchmarks.figures import OURS
from benchmarks.measures import Value
from benchmarks.peers.tenure import connect
from benchmarks.processes import Broken
from benchmarks.protocol.client import Setting
from benchmarks.stage import Contest

__all__ = ["recovery"]


def recovery(contest: Contest) -> Iterator[Value]:
    """From SIGKILL to the next start of the job."""
    if contest.who.name != OURS:
        return  # what brings a job back, and when, is set in other ways by each
    with contest.stage() as stage:
        setting = stage.setting(1)
        doomed = _started(setting)
        try:
            asyncio.run(_dispatch(setting))
            _heard(doomed, contest.options.patience)
            heir = _started(setting)
            try:
                doomed.send_signal(signal.SIGKILL)
                killed = time.monotonic()
                _heard(heir, contest.options.patience)
                seconds = time.monotonic() - killed
            finally:
                _ended(heir)
        finally:
            _ended(doomed)
    yield Value(measure="SIGKILL to the next start of the job", value=1000 * seconds, unit="ms")


async def _dispatch(setting: Setting) -> None:
    async with connect(setting) as queue:
        await queue.dispatch("long")


def _started(setting: Setting) -> "subprocess.Popen[str]":
    """A worker that is ready."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "benchmarks.recovery", json.dumps(asdict(setting))],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def _heard(process: "subprocess.Popen[str]", patience: float) -> None:
    """Wait for the first line of the handler."""
    assert process.stdout is not None
    overdue = threading.Timer(patience, process.kill)
    overdue.start()
    try:
        line = process.stdout.readline()
    finally:
        overdue.cancel()
    if not line:
        raise Broken("the worker ended, or did not start the job in time", "")


def _ended(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


async def _work(setting: Setting) -> None:
    async with connect(setting) as queue:
        worker = tenure.Worker(queue)

        @worker.handler("long")
        async def long(_: None) -> None:
            print("started")
            await asyncio.sleep(3600)

        async with worker.run():
            await asyncio.sleep(1.0)
            print("ready")
            await asyncio.sleep(3600)


def main(arguments: Sequence[str]) -> None:
    asyncio.run(_work(Setting(**json.loads(arguments[0]))))


if __name__ == "__main__":
    main(sys.argv[1:])
