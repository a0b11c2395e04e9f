"""The operations about workers that show themselves. Display only: nothing depends on it."""

import msgspec

from tenure.drivers.postgres.encoding import read_worker, text_of
from tenure.drivers.postgres.pool import Runner
from tenure.presence import WorkerInfo

__all__ = ["report", "workers"]


async def report(runner: Runner, worker: WorkerInfo, ttl: float) -> None:
    """See `Driver.report`."""
    await runner.fetch("report", worker.id, text_of(worker), ttl)


async def workers(runner: Runner) -> list[WorkerInfo]:
    """See `Driver.workers`. One whose report cannot be read is not shown."""
    shown: list[WorkerInfo] = []
    for (info,) in await runner.fetch("workers"):
        try:
            shown.append(read_worker(info))
        except (msgspec.MsgspecError, ValueError):
            continue
    return shown
