# /// script
# requires-python = ">=3.11"
# dependencies = ["potatoq[redis,postgres]==26.1a8", "redis[hiredis]"]
# [tool.bench]
# package = "potatoq"
# stores = ["sqlite", "redis", "postgres"]
# slots = 2
# handlers = "processes"
# settings = "2 processes, results ignored; SQLite: durable where FULL is measured; hiredis"
# ///
"""potatoq: a queue with the interface of celery and processes, on a store of one's choice.

Two processes below each worker, as many as a small machine has CPUs, each with one task at a time.
`queue_sizes` counts what waits, so the store counts what no process has.
"""

import os
from collections.abc import Callable

from potatoq import Potatoq

from benchmarks.protocol.client import BlockingClient, Count, Setting
from benchmarks.protocol.serving import Handlers, serve


def application(setting: Setting) -> Potatoq:
    sqlite = setting.store == "sqlite"
    app = Potatoq(
        "bench",
        broker=f"sqlite:///{os.path.abspath(setting.url)}" if sqlite else setting.url,
        task_ignore_result=True,
    )
    if sqlite and setting.durability == "FULL":
        app.conf.broker_transport_options = {"durable": True}
    return app


class PotatoqClient(BlockingClient):
    bulk = False

    def __init__(self, setting: Setting) -> None:
        self._app = application(setting)

    def open(self) -> None:
        self.count()

    def dispatch(self, handler: str, argument: object) -> None:
        self._app.send_task(handler, (argument,))

    def count(self) -> Count:
        sizes: dict[str, int] = self._app.broker.queue_sizes()
        return Count(unfinished=sum(sizes.values()), finished=None)


def work(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    app = application(setting)
    for name, handler in handlers.items():
        app.task(name=name)(handler)
    worker = app.Worker(concurrency=setting.concurrency, loglevel="WARNING")
    start()
    worker.start()


if __name__ == "__main__":
    serve(client=PotatoqClient, work=work)
