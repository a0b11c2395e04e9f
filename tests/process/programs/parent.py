"""A worker whose process forks a child that does nothing; option `brief`: and ends at once.

Else the child lives until `go` is there, for some minutes at most. The worker runs until stdin is
closed.
"""

import asyncio
import os
import time

import tenure
from tests.process.programs.setting import Setting

PATIENCE = 120.0


def child(setting: Setting, *, brief: bool) -> None:
    setting.ledger.write("child")
    end = time.monotonic() + PATIENCE
    while not brief and not setting.go.exists() and time.monotonic() < end:
        time.sleep(0.05)
    os._exit(0)  # nothing of the parent is ended


async def main(setting: Setting, *, brief: bool) -> None:
    async with (
        tenure.connect(setting.url, clock=setting.clock) as queue,
        setting.worker(queue).run(),
        setting.until_stdin_closes(),
    ):
        setting.ready()
        await asyncio.to_thread(setting.wait_for_start)
        pid = os.fork()
        if pid == 0:
            child(setting, brief=brief)
        if brief:
            await asyncio.to_thread(os.waitpid, pid, 0)
        setting.ledger.write("forked")


if __name__ == "__main__":
    setting = Setting()
    asyncio.run(main(setting, brief=setting.options.pop("brief")))
