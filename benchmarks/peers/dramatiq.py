# /// script
# requires-python = ">=3.11"
# dependencies = ["dramatiq[redis]==2.2.1", "redis[hiredis]"]
# [tool.bench]
# package = "dramatiq"
# stores = ["redis"]
# slots = 8
# handlers = "threads"
# settings = "the defaults: 8 threads; hiredis"
# ///
"""dramatiq: a blocking queue with threads, here on Redis.

Eight threads, as its program starts in each process; no results. A message stays in a hash until
it is acknowledged, so the store counts what is left.
"""

import signal
from collections.abc import Callable
from typing import Any

from dramatiq import Worker, actor
from dramatiq.brokers.redis import RedisBroker

from benchmarks.protocol.client import BlockingClient, Count, Setting
from benchmarks.protocol.serving import Handlers, serve

NAMES = ("nothing", "nap", "delay")
QUEUE = "bench"


def unknown(argument: Any) -> None:
    raise AssertionError("a client runs nothing")


class DramatiqClient(BlockingClient):
    bulk = False

    def __init__(self, setting: Setting) -> None:
        self._broker = RedisBroker(url=setting.url)
        self._actors = {
            name: actor(unknown, actor_name=name, queue_name=QUEUE, broker=self._broker)
            for name in NAMES
        }

    def open(self) -> None:
        self._broker.client.ping()

    def dispatch(self, handler: str, argument: object) -> None:
        self._actors[handler].send(argument)

    def count(self) -> Count:
        return Count(unfinished=self._broker.client.hlen(f"dramatiq:{QUEUE}.msgs"), finished=None)


def work(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    broker = RedisBroker(url=setting.url)
    for name, handler in handlers.items():
        actor(handler, actor_name=name, queue_name=QUEUE, broker=broker)
    worker = Worker(broker, worker_threads=setting.concurrency)
    start()
    worker.start()
    signal.pause()


if __name__ == "__main__":
    serve(client=DramatiqClient, work=work)
