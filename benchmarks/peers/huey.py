# /// script
# requires-python = ">=3.11"
# dependencies = ["huey==3.5.4", "redis[hiredis]"]
# [tool.bench]
# package = "huey"
# stores = ["redis", "sqlite"]
# slots = 8
# handlers = "threads"
# settings = "8 threads, no results, no periodic tasks, hiredis; SQLite: polls each 10 to 50 ms"
# ///
"""huey: a small blocking queue with threads, on a Redis list or in a SQLite file.

On Redis a thread waits in BRPOP; on SQLite it polls, by default
each 0.1 to 10 s, which is here less. The file's
`synchronous` is set to what is measured; huey itself knows FULL and OFF. A task is gone from the
store as soon as a thread has it, so the store counts only what nobody took.
"""

from collections.abc import Callable
from typing import Any

from huey import Huey, RedisHuey
from huey.storage import SqliteStorage

from benchmarks.protocol.client import BlockingClient, Count, Setting
from benchmarks.protocol.serving import Handlers, serve

NAMES = ("nothing", "nap", "delay")


class Storage(SqliteStorage):
    def __init__(self, name: str, synchronous: str, **options: Any) -> None:
        self._synchronous = synchronous
        super().__init__(name, **options)

    def _create_connection(self) -> Any:
        connection = super()._create_connection()
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        return connection


def connect(setting: Setting, handlers: Handlers) -> tuple[Huey, dict[str, Any]]:
    if setting.store == "redis":
        huey = RedisHuey("bench", url=setting.url, results=False)
    else:
        huey = Huey(
            "bench",
            storage_class=Storage,
            results=False,
            synchronous=setting.durability,
            filename=setting.url,
        )
    return huey, {name: huey.task(name=name)(here(handlers[name])) for name in NAMES}


def here(handler: Callable[[Any], None]) -> Callable[[Any], None]:
    """A function of this module: messages name it."""
    return lambda argument: handler(argument)


def unknown(argument: Any) -> None:
    raise AssertionError("a client runs nothing")


class HueyClient(BlockingClient):
    bulk = False

    def __init__(self, setting: Setting) -> None:
        self._huey, self._tasks = connect(setting, dict.fromkeys(NAMES, unknown))

    def open(self) -> None:
        self._huey.pending_count()

    def dispatch(self, handler: str, argument: object) -> None:
        self._tasks[handler](argument)

    def count(self) -> Count:
        return Count(unfinished=self._huey.pending_count(), finished=None)


def work(setting: Setting, handlers: Handlers, start: Callable[[], None]) -> None:
    huey, _ = connect(setting, handlers)
    consumer = huey.create_consumer(
        workers=setting.concurrency,
        worker_type="thread",
        periodic=False,
        initial_delay=0.01,
        max_delay=0.05,
        check_worker_health=False,
    )
    start()
    consumer.run()


if __name__ == "__main__":
    serve(client=HueyClient, work=work)
