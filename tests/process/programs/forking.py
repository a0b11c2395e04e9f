"""A host that uses its queue, forks, and uses it on both sides."""

import asyncio
import os

import tenure
from tests.process.programs.setting import Setting


async def dispatch(queue: tenure.Queue, payload: str) -> None:
    await queue.dispatch("quick", payload, id=payload)


def child(queue: tenure.Queue, setting: Setting, number: int) -> None:
    code = 1
    try:
        for turn in range(5):
            asyncio.run(dispatch(queue, f"child-{number}-{turn}"))
        setting.ledger.write("forked")
        code = 0
    finally:
        os._exit(code)  # as a forked worker of a server would: nothing of the parent is ended


if __name__ == "__main__":
    setting = Setting()
    queue = tenure.connect(setting.url)
    asyncio.run(dispatch(queue, "before"))
    setting.ready()
    pids: list[int] = []
    for number in range(3):
        pid = os.fork()
        if pid == 0:
            child(queue, setting, number)
        pids.append(pid)
    for turn in range(5):
        asyncio.run(dispatch(queue, f"parent-{turn}"))
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    setting.ledger.write("done", codes=codes)
    asyncio.run(queue.close())
