"""A server as programs without an event loop are: threads, forked workers, nothing ever closed."""

import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tenure
from tests.process.programs.setting import Setting

setting = Setting()
queue = tenure.connect(setting.url).sync  # at import, as an application would


def requests(who: str) -> None:
    """Serve sixty-four requests in sixteen threads."""

    def serve(number: int) -> None:
        queue.dispatch("quick", number, id=f"{who}-{number}")

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(serve, range(64)))


def serve() -> None:
    """The parent goes on serving while its children are forked, and each of them serves too."""
    with ThreadPoolExecutor(1) as beside:
        busy = beside.submit(requests, "parent")
        pids: list[int] = []
        for number in range(2):
            pid = os.fork()
            if pid == 0:
                requests(f"child-{number}")
                setting.ledger.write("served")
                sys.stdout.flush()
                sys.exit(0)  # with all that an interpreter does at its end
            pids.append(pid)
        busy.result()
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    setting.ledger.write("done", codes=codes)


Stored = Sequence[tenure.JobHandle[Any]]
Store = Callable[[Sequence[tenure.Call]], Awaitable[Stored]]
LOCK = threading.Lock()


async def locking(calls: Sequence[tenure.Call], store: Store) -> Stored:
    """A middleware with a lock of its own, as TLS and imports have: it nearly always holds it."""
    with LOCK:
        time.sleep(0.005)  # noqa: ASYNC251 -- it is what must not be found in the middle
    return await store(calls)


def hold() -> None:
    """Fork again and again while other threads dispatch; each child dispatches once."""
    own = tenure.connect(setting.url, middleware=[locking]).sync
    over = threading.Event()

    def dispatch() -> None:
        while not over.is_set():
            own.dispatch("quick")

    codes: list[int] = []
    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(dispatch)
        for number in range(20):
            pid = os.fork()
            if pid == 0:
                own.dispatch("quick", id=f"child-{number}")
                os._exit(0)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        over.set()
    setting.ledger.write("done", codes=codes)


def wait() -> None:
    """Until Ctrl-C."""
    job = queue.dispatch("nobody")
    setting.ledger.write("waits")
    try:
        job.result()
    except KeyboardInterrupt:
        setting.ledger.write("interrupted", state=queue.get(job.id).state)


if __name__ == "__main__":
    setting.ready()
    {"serve": serve, "hold": hold, "wait": wait}[setting.options["what"]]()
