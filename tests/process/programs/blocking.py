"""A server as programs without an event loop are: threads, forked workers, nothing ever closed."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

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
    {"serve": serve, "wait": wait}[setting.options["what"]]()
