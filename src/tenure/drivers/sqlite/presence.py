"""The operations about workers that show themselves. Display only: nothing depends on it."""

import msgspec

from tenure.drivers.sqlite.encoding import read_worker, span, text_of
from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Operation, Transaction
from tenure.presence import WorkerInfo

__all__ = ["report", "workers"]

_REPORT = statement("worker_report")
_FORGET = statement("workers_forget")
_SHOWN = statement("workers_shown")


def report(worker: WorkerInfo, ttl: float) -> Operation[None]:
    """See `Driver.report`."""

    def run(transaction: Transaction) -> None:
        now = transaction.time(None)
        transaction.execute(_FORGET, (now,))
        transaction.execute(_REPORT, (worker.id, text_of(worker), now + span(ttl)))

    return run


def workers() -> Operation[list[WorkerInfo]]:
    """See `Driver.workers`. One whose report cannot be read is not shown."""

    def run(transaction: Transaction) -> list[WorkerInfo]:
        shown: list[WorkerInfo] = []
        for (info,) in transaction.rows(_SHOWN, (transaction.time(None),)):
            try:
                shown.append(read_worker(info))
            except (msgspec.MsgspecError, ValueError):
                continue
        return shown

    return run
