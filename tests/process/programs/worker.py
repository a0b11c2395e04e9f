"""A worker that runs until its stdin is closed."""

import asyncio

import tenure
from tests.process.programs.setting import Setting


async def main(setting: Setting) -> None:
    async with (
        tenure.connect(setting.url, clock=setting.clock) as queue,
        setting.worker(queue).run(),
        setting.until_stdin_closes(),
    ):
        setting.ready()


if __name__ == "__main__":
    asyncio.run(main(Setting()))
