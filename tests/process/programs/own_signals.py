"""A host with a SIGTERM handler of its own, set before the worker starts."""

import asyncio
import signal

import tenure
from tests.process.programs.setting import Setting


async def main(setting: Setting) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def terminate(number: int, frame: object) -> None:
        setting.ledger.write("terminated", number=number)
        loop.call_soon_threadsafe(stop.set)

    signal.signal(signal.SIGTERM, terminate)
    async with tenure.connect(setting.url) as queue, setting.worker(queue).run():
        setting.ready()
        await stop.wait()
    setting.ledger.write("kept", kept=signal.getsignal(signal.SIGTERM) is terminate)


if __name__ == "__main__":
    asyncio.run(main(Setting()))
