# /// script
# requires-python = ">=3.12"
# dependencies = ["litequeue==0.14"]
# [tool.bench]
# package = "litequeue"
# stores = ["sqlite"]
# slots = 1
# handlers = "threads"
# settings = "a loop of pop and done, which looks each millisecond; synchronous as measured"
# ///
"""litequeue: a queue in a SQLite file, without a worker of its own.

Its worker is here a loop of `pop`, handler, `done`. It sets `synchronous` to NORMAL, which is here
set to what is measured. Done messages are kept, so the store counts both kinds. Needs Python 3.12,
so it may run on a newer one than the others.
"""

import json
import time
from collections.abc import Callable

from litequeue import LiteQueue

from benchmarks.protocol.client import BlockingClient, Count, Setting
from benchmarks.protocol.serving import Handlers, serve

LOOK = 0.001


def connect(setting: Setting) -> LiteQueue:
    queue = LiteQueue(setting.url, timeout=30)
    queue.conn.execute(f"PRAGMA synchronous = {setting.durability}")
    return queue


class LitequeueClient(BlockingClient):
    bulk = False

    def __init__(self, setting: Setting) -> None:
        self._queue = connect(setting)

    def open(self) -> None:
        self._queue.qsize()

    def dispatch(self, handler: str, argument: object) -> None:
        self._queue.put(json.dumps([handler, argument]))

    def count(self) -> Count:
        unfinished = self._queue.ready_count() + self._queue.locked_count()
        return Count(unfinished=unfinished, finished=self._queue.done_count())


def work(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    queue = connect(setting)
    start()
    while True:
        message = queue.pop()
        if message is None:
            time.sleep(LOOK)
            continue
        handler, argument = json.loads(message.data)
        handlers[handler](argument)
        queue.done(message.message_id, claim_id=message.claim_id)


if __name__ == "__main__":
    serve(client=LitequeueClient, work=work)
