"""A host that shuts its worker down in spite of a handler that never returns, and ends."""

import asyncio

import tenure
from tests.process.programs.setting import Setting


async def main(setting: Setting) -> None:
    async with tenure.connect(setting.url) as queue, setting.until_stdin_closes():
        handle = setting.worker(queue).run()
        setting.ready()
    # The body above has been left; the queue, closed by now, has shut the worker down.
    setting.ledger.write("shut down", running=handle.running)


if __name__ == "__main__":
    asyncio.run(main(Setting()))
