# /// script
# requires-python = ">=3.11"
# dependencies = ["rq==2.12.0", "redis[hiredis]"]
# [tool.bench]
# package = "rq"
# stores = ["redis"]
# slots = 1
# handlers = "processes"
# settings = "result_ttl 0 (finished jobs are not kept), hiredis; a process is forked for each job"
# ///
"""rq: a blocking queue on Redis that forks a process for each job.

The default worker, one job at a time; `result_ttl` 0 keeps neither results nor finished jobs. The
module of the handlers is loaded before the fork. A job stays in a registry until it is done, so the
store counts what is left.
"""

from collections.abc import Callable, Sequence
from typing import Any

from redis import Redis
from rq import Queue, Worker

from benchmarks.protocol.client import BlockingClient, Count, Setting
from benchmarks.protocol.serving import Handlers, serve

MODULE = "benchmarks.peers.rq"
given: dict[str, Callable[[Any], None]] = {}


def nothing(argument: Any) -> None:
    given["nothing"](argument)


def nap(argument: Any) -> None:
    given["nap"](argument)


def delay(argument: Any) -> None:
    given["delay"](argument)


class RqClient(BlockingClient):
    def __init__(self, setting: Setting) -> None:
        self._queue = Queue("bench", connection=Redis.from_url(setting.url))

    def open(self) -> None:
        self._queue.connection.ping()

    def dispatch(self, handler: str, argument: object) -> None:
        self._queue.enqueue(f"{MODULE}.{handler}", argument, result_ttl=0)

    def dispatch_many(self, handler: str, arguments: Sequence[object]) -> None:
        name = f"{MODULE}.{handler}"
        self._queue.enqueue_many(
            [Queue.prepare_data(name, (argument,), result_ttl=0) for argument in arguments]
        )

    def count(self) -> Count:
        running = self._queue.started_job_registry.get_job_count(cleanup=False)
        return Count(unfinished=self._queue.count + running, finished=None)


def work(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    from benchmarks.peers import rq as loaded  # as jobs name it; this program is __main__

    loaded.given.update(handlers)
    worker = Worker(["bench"], connection=Redis.from_url(setting.url))
    start()
    worker.work(logging_level="WARNING")


if __name__ == "__main__":
    serve(client=RqClient, work=work)
