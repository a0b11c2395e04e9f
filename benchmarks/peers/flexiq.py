# /// script
# requires-python = ">=3.11"
# dependencies = ["flexiq==2.1.0"]
# [tool.bench]
# package = "flexiq"
# stores = ["sqlite-normal"]
# slots = 8
# handlers = "threads"
# settings = "8 threads, scheduler_poll_interval_ms 1 (default 50)"
# ///
"""flexiq: a queue with a core in Rust, in a SQLite file.

Its scheduler takes jobs at each poll, so it polls as often as it can. Its connections set
`synchronous` to NORMAL, which cannot be changed, so it is measured beside that alone. Python's
`sqlite3` does not run its statements, so they are not counted. The store counts both kinds of jobs.
"""

from collections.abc import Callable, Sequence
from typing import Any

from flexiq import Queue

from benchmarks.protocol.client import BlockingClient, Count, Setting
from benchmarks.protocol.serving import Handlers, serve

NAMES = ("nothing", "nap", "delay")


def unknown(argument: Any) -> None:
    raise AssertionError("a client runs nothing")


def connect(setting: Setting, handlers: Handlers) -> Queue:
    queue = Queue(db_path=setting.url, workers=setting.concurrency, scheduler_poll_interval_ms=1)
    for name, handler in handlers.items():
        queue.task(name=name)(handler)
    return queue


class FlexiqClient(BlockingClient):
    def __init__(self, setting: Setting) -> None:
        self._queue = connect(setting, dict.fromkeys(NAMES, unknown))

    def open(self) -> None:
        self._queue.stats()

    def dispatch(self, handler: str, argument: object) -> None:
        self._queue.enqueue(handler, (argument,))

    def dispatch_many(self, handler: str, arguments: Sequence[object]) -> None:
        self._queue.enqueue_many(handler, [(argument,) for argument in arguments])

    def count(self) -> Count:
        stats = self._queue.stats()
        return Count(unfinished=stats["pending"] + stats["running"], finished=stats["completed"])


def work(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    queue = connect(setting, handlers)
    start()
    queue.run_worker()


if __name__ == "__main__":
    serve(client=FlexiqClient, work=work)
