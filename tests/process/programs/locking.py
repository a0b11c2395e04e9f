"""Takes the write lock of a SQLite file again and again, until its stdin is closed.

Its options are how long it keeps the lock each time, and how long it leaves it to others.
"""

import asyncio
import sqlite3
import time
from contextlib import closing
from urllib.parse import urlsplit

from tests.process.programs.setting import Setting


def lock(path: str, hold: float, rest: float, setting: Setting) -> None:
    with closing(sqlite3.connect(path, timeout=30.0, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        time.sleep(hold)
        connection.execute("COMMIT")
    setting.ledger.write("locked")
    time.sleep(rest)


async def main(setting: Setting) -> None:
    path = urlsplit(setting.url).path.removeprefix("/")
    hold, rest = setting.options["hold"], setting.options["rest"]
    stopping = False

    async def again() -> None:
        while not stopping:
            await asyncio.to_thread(lock, path, hold, rest, setting)

    async with setting.until_stdin_closes():
        locking = asyncio.create_task(again())
        setting.ready()
    stopping = True
    await locking


if __name__ == "__main__":
    asyncio.run(main(Setting()))
