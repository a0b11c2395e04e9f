"""A host that leaves `asyncio.run` while its worker runs a job, without a word to the worker."""

import asyncio

import tenure
from tests.process.programs.setting import Setting


async def main(setting: Setting) -> tenure.WorkerHandle:
    queue = tenure.connect(setting.url)
    async with setting.until_stdin_closes():
        handle = setting.worker(queue).run()
        setting.ready()
    return handle


if __name__ == "__main__":
    setting = Setting()
    handle = asyncio.run(main(setting))
    setting.ledger.write("ended", running=handle.running)
