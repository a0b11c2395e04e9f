# /// script
# requires-python = ">=3.11"
# dependencies = ["celery[redis]==5.7.0", "redis[hiredis]"]
# [tool.bench]
# package = "celery"
# module = "celery.app.base"
# stores = ["redis"]
# slots = 2
# handlers = "processes"
# settings = "2 processes, prefetch multiplier 64; without results, gossip, mingle; hiredis"
# ///
"""celery: the oldest queue of Python, with processes, here on Redis.

Two processes below each worker, as many as a small machine has CPUs. The multiplier is in the range
that its guide recommends for many short tasks. Gossip, mingle and heartbeats are off, results are
ignored. Messages that a worker has fetched stay in a hash until they are acknowledged, which is
when a task starts, so the store counts what has not started.
"""

from collections.abc import Callable
from typing import Any

from celery import Celery
from redis import Redis

from benchmarks.protocol.client import BlockingClient, Count, Setting
from benchmarks.protocol.serving import Handlers, serve


def application(setting: Setting) -> Celery:
    app = Celery("bench", broker=setting.url)
    app.conf.update(
        task_ignore_result=True,
        worker_prefetch_multiplier=64,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        broker_connection_retry_on_startup=True,
    )
    return app


class CeleryClient(BlockingClient):
    bulk = False

    def __init__(self, setting: Setting) -> None:
        self._app = application(setting)
        self._redis: Any = Redis.from_url(setting.url)

    def open(self) -> None:
        self._redis.ping()

    def dispatch(self, handler: str, argument: object) -> None:
        self._app.send_task(handler, (argument,))

    def count(self) -> Count:
        waiting, fetched = self._redis.llen("celery"), self._redis.hlen("unacked")
        return Count(unfinished=waiting + fetched, finished=None)


def work(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    app = application(setting)
    for name, handler in handlers.items():
        app.task(handler, name=name)
    worker = app.Worker(
        pool="prefork",
        concurrency=setting.concurrency,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        loglevel="WARNING",
    )
    start()
    worker.start()


if __name__ == "__main__":
    serve(client=CeleryClient, work=work)
