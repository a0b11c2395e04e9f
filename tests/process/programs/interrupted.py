"""A host under `asyncio.run`, which turns the first Ctrl-C into a cancellation of its main task."""

import asyncio

import tenure
from tests.process.programs.setting import Setting


async def main(setting: Setting) -> None:
    async with tenure.connect(setting.url) as queue, setting.worker(queue).run() as handle:
        setting.ready()
        await handle.wait()


if __name__ == "__main__":
    setting = Setting()
    try:
        asyncio.run(main(setting))
    except KeyboardInterrupt:
        setting.ledger.write("interrupted")
