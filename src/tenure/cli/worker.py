"""`tenure worker APP`: a program of workers. Runs no job itself; its processes do."""

import logging
import multiprocessing
import os
import re
import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager, nullcontext, suppress
from types import FrameType

import click

from tenure._processes.supervisor import Supervisor
from tenure._processes.terms import ChildSettings, ExitStatus
from tenure.cli.asked import asked, shared
from tenure.cli.child import ChildApp
from tenure.cli.complaints import Complaint
from tenure.cli.exits import Exit
from tenure.cli.logs import LastError, log_to_stderr
from tenure.cli.loops import loop_factory
from tenure.cli.notify import notifier_from
from tenure.cli.values import duration
from tenure.cli.watch.program import Watching, Written, listening_on
from tenure.clock import SystemClock

__all__ = ["worker"]

_logger = logging.getLogger("tenure.cli")

_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}


@click.command("worker")
@click.argument("app")
@click.option("--processes", type=click.IntRange(1, 1000), default=1, show_default=True)
@click.option("--concurrency", type=click.IntRange(1, 100_000), help="Slots of each process.")
@click.option("--queues", metavar="A,B", help="The queues to serve, instead of the app's.")
@click.option(
    "--max-jobs",
    type=click.IntRange(1),
    help="Replace a process once it has run so many; those that it has claimed by then still run.",
)
@click.option("--max-memory", metavar="SIZE", help="Replace a process at this size, as in 512M.")
@click.option("--drain-timeout", type=duration, metavar="DURATION", help="For jobs that run.")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text")
@click.option(
    "--loop",
    type=click.Choice(["auto", "asyncio", "uvloop"]),
    default="auto",
    help="auto is uvloop where it is installed.",
)
@click.option(
    "--health-port",
    type=click.IntRange(0, 65535),
    help="Serve /livez, /readyz and /metrics there; 0 is a free one.",
)
@click.option("--health-host", metavar="ADDRESS", default="127.0.0.1", show_default=True)
@shared
def worker(
    app: str,
    processes: int,
    concurrency: int | None,
    queues: str | None,
    max_jobs: int | None,
    max_memory: str | None,
    drain_timeout: float | None,
    log_format: str,
    loop: str,
    health_port: int | None,
    health_host: str,
) -> int:
    """Run the workers of APP, which is module:attribute.

    The first SIGTERM or Ctrl-C lets running jobs finish, the second puts them back, the third
    kills. SIGUSR1 stops claiming, SIGUSR2 writes what runs to standard error.
    """
    told = asked()
    told.refuse_url()
    form = "json" if told.json else log_format
    written = None if health_port is None else _written()
    child = ChildApp(
        app,
        concurrency=concurrency,
        queues=None if queues is None else tuple(queues.split(",")),
        max_jobs=max_jobs,
        max_memory=None if max_memory is None else _bytes(max_memory),
        log_format=form,
        debug=told.debug,
        counts=written is not None,
    )
    settings = ChildSettings(
        drain=drain_timeout,
        replace_unhealthy=60.0,
        loop_factory=loop_factory(loop),
        started=child.started,
        watched=child.watched,
        over=child.over,
    )
    log_to_stderr(form, debug=told.debug)
    last = LastError()
    logging.getLogger("tenure.processes").addHandler(last)
    watching = _watching(processes, health_host, health_port, written)
    with _passed_on(), watching or nullcontext():
        status = Supervisor(child, processes, settings, watching).run()
    if status is ExitStatus.NOT_STARTED:
        remedy = f"`{told.command(f'check {app}')}` says more"
        raise Complaint(last.text, remedy, Exit.NO_APP)
    return int(status)


def _watching(
    processes: int, host: str, port: int | None, written: Written | None
) -> Watching | None:
    """Who answers probes and systemd; None where nobody asked for that."""
    notifier = notifier_from(os.environ)
    if port is None and notifier is None:
        return None
    listening = None if port is None else _listening(host, port)
    return Watching(
        processes, SystemClock(), listening=listening, written=written, notifier=notifier
    )


def _listening(host: str, port: int) -> socket.socket:
    try:
        listening = listening_on(host, port)
    except OSError as error:
        known = error.errno is not None and error.errno > 0  # else it is of the name
        why = os.strerror(error.errno or 0) if known else str(error.strerror)
        cause = f"the health port {host}:{port} cannot be opened: {why}"
        remedy = "give another --health-port or --health-host, or end what has it"
        raise Complaint(cause, remedy, Exit.FAILED) from error
    number = listening.getsockname()[1]
    _logger.info("the health port is %s:%d", host, number, extra={"port": number})
    return listening


def _written() -> Written | None:
    """What writes metrics down, where the extra for them is installed."""
    try:
        from tenure.cli.watch.counting import written
    except ModuleNotFoundError:
        return None
    return written


@contextmanager
def _passed_on() -> Generator[None]:
    """Pass SIGUSR1 and SIGUSR2 on to every process."""

    def pass_on(number: int, _: FrameType | None) -> None:
        for process in multiprocessing.active_children():
            if process.pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(process.pid, number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGUSR1, signal.SIGUSR2)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _bytes(given: str) -> int:
    match = re.fullmatch(r"(\d+)([kmg]?)(?:i?b)?", given.strip().lower())
    if match is None:
        raise click.BadParameter(
            f"{given!r} is no size: write 512M or 2G", param_hint="--max-memory"
        )
    return int(match[1]) * _UNITS[match[2]]
