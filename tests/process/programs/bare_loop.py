"""A host with a loop of its own making: a Ctrl-C is raised from whatever line is running."""

import asyncio

import tenure
from tests.process.programs.setting import Setting


async def main(setting: Setting) -> None:
    async with tenure.connect(setting.url) as queue:
        handle = setting.worker(queue).run()
        setting.ready()
        await handle.wait()


if __name__ == "__main__":
    setting = Setting()
    loop = asyncio.new_event_loop()
    task = loop.create_task(main(setting))
    try:
        loop.run_until_complete(task)
    except KeyboardInterrupt:
        setting.ledger.write("interrupted")
        loop.run_until_complete(task)
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
