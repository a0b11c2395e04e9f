"""Handlers in the program itself, found by the processes as `multiprocessing` finds a program."""

import asyncio
import os
import sys

import tenure


class Wrong(Exception):
    pass


def work(payload: int) -> int:
    return payload + 1


def fail(payload: None) -> None:
    raise Wrong("here")


async def main() -> None:
    async with tenure.connect("memory://") as queue:
        worker = tenure.Worker(queue, process_pool=tenure.ProcessPool(size=1))
        worker.register("work", work, executor="process")
        retry = tenure.RetryPolicy(max_attempts=2, base=0.0, retry_on=(Wrong,))
        worker.register("fail", fail, executor="process", retry=retry)
        async with worker.run():
            job = await queue.dispatch("work", 41)
            sys.stdout.write(f"{await job.result(timeout=10.0)}\n")
            failing = await queue.dispatch("fail")
            try:
                await failing.result(timeout=10.0)
            except tenure.JobFailed as error:
                sys.stdout.write(f"{error.attempt} {error.failure.message}\n")


if __name__ == "__main__" or os.environ.get("UNGUARDED"):
    asyncio.run(main())
