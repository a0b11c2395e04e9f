"""One worker program in several processes, for more than one core.

For programs of their own: unlike the rest of the package it handles signals while it runs. What it
does is in `_processes`, which is loaded when it is called.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta

from tenure._processes.app import check_app
from tenure._processes.terms import ChildSettings, ExitStatus
from tenure.errors import RuntimeUnavailable
from tenure.intake import not_negative, whole
from tenure.worker import Worker

__all__ = ["ExitStatus", "run_processes"]

_MOST = 1000


def run_processes(
    app: str | Callable[[], Worker | Awaitable[Worker]],
    processes: int | None = None,
    *,
    drain_timeout: float | timedelta | None = None,
    replace_unhealthy: float | timedelta | None = 60.0,
) -> ExitStatus:
    """Run a worker in each of so many processes until a signal ends them; then say how they ended.

        def app():
            worker = tenure.Worker(tenure.connect("sqlite:///jobs.db"))
            worker.register("resize", resize)
            return worker

        if __name__ == "__main__":
            sys.exit(tenure.run_processes(app, 4))

    - `app`: a function without arguments, sync or async, that makes a `Worker`, or
      "module:attribute" naming such a function or a worker. It is called in each process, and is
      found there by its name, so it stands at the top of a module; in the program itself the call
      stands under `if __name__ == "__main__":`.
    - `processes`: how many, None for as many as this process may use CPUs. Each takes the
      worker's whole `concurrency`, and more memory: an interpreter of its own.
    - `drain_timeout`: what handlers get to finish when it ends, None for the worker's own.
    - `replace_unhealthy`: how long a worker may be unhealthy (`WorkerHandle.healthy`) until its
      process is drained and replaced; None never does.

    Durations are seconds or `timedelta`. The processes are fresh interpreters that share nothing;
    each opens the store by itself, and this one does not. Their standard output and error are this
    program's. One that crashes or is killed is replaced, at once and then after longer and longer
    pauses up to 30 s; its jobs come back when their leases have run out. One that gets a SIGTERM of
    its own drains, and is replaced too. The first process alone is started first, so that what is
    wrong with the app is said once and ends the call with `NOT_STARTED`.

    While it runs, SIGTERM and SIGINT (Ctrl-C) are its own: the first drains all processes, the
    second cancels what runs and puts those jobs back, the third kills. One that is ignored stays
    ignored, and afterwards the program's handlers are back. The end is bounded: a process that is
    not gone some seconds after its drain time is killed. When this program is killed, its processes
    drain and end. What happens is logged to `tenure.processes`.

    Raises `InvalidConfiguration`, and `RuntimeUnavailable` outside of the main thread and within an
    event loop.
    """
    check_app(app)
    count = _cpus() if processes is None else whole("processes", processes, 1, _MOST)
    settings = ChildSettings(
        drain=_optional("drain_timeout", drain_timeout),
        replace_unhealthy=_optional("replace_unhealthy", replace_unhealthy),
    )
    _check_place()
    from tenure._processes.supervisor import Supervisor

    return Supervisor(app, count, settings).run()


def _check_place() -> None:
    from multiprocessing import current_process

    # A process of ours that imports the program, on its way to the app.
    if getattr(current_process(), "_inheriting", False):
        raise RuntimeUnavailable(
            "run_processes() was called by a worker process that imports this program: put the "
            "call under `if __name__ == '__main__':`"
        )
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeUnavailable(
            "run_processes() handles signals, so it must be called in the main thread"
        )
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeUnavailable(
        "run_processes() blocks until the program ends: call it outside of any event loop, or use "
        "Worker.run() inside one"
    )


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _optional(option: str, value: float | timedelta | None) -> float | None:
    return None if value is None else not_negative(option, value)
