"""A process that dispatches: `python -m chaos.dispatcher NAME LEDGER URL`, until its stdin closes.

It notes each id before its dispatch, and then how that ended: `stored` when it returned, `refused`
when it raised and nothing may be stored, `unsure` when it raised and something may be.
"""

import asyncio
import logging
import sys
from uuid import uuid4

import tenure
from chaos.ledger import Ledger
from chaos.worker import JOB

__all__ = ["ENDS"]

ENDS = ("stored", "refused", "unsure")

SINGLES, PAUSE = 24, 0.05  # tasks that dispatch one job after another, with a pause between
BULK, BULK_PAUSE = 25, 0.25  # how many jobs another task dispatches together
IMPATIENCE = 0.4  # seconds that every other of these waits for an answer before it gives up
AFTER_FAILURE = 0.2


class Dispatcher:
    """Tasks that dispatch at the same time, as the requests of a web server would."""

    def __init__(self, queue: tenure.Queue, ledger: Ledger) -> None:
        self._queue = queue
        self._ledger = ledger
        self._closed = asyncio.Event()

    async def run(self) -> None:
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._closed.set)
        async with asyncio.TaskGroup() as group:
            for number in range(SINGLES):
                group.create_task(self._singly(IMPATIENCE if number % 2 else None))
            group.create_task(self._in_bulk())

    async def _singly(self, patience: float | None) -> None:
        while not self._closed.is_set():
            [job_id] = self._new(1)
            try:
                async with asyncio.timeout(patience):
                    await self._queue.dispatch(JOB, 0, id=job_id)
            except TimeoutError:
                self._note("unsure", [job_id], "given up by the caller")
            except tenure.StoreUnavailable as error:
                self._note("unsure" if error.ambiguous else "refused", [job_id], str(error))
                await asyncio.sleep(AFTER_FAILURE)
            else:
                self._note("stored", [job_id])
            await asyncio.sleep(PAUSE)

    async def _in_bulk(self) -> None:
        while not self._closed.is_set():
            ids = self._new(BULK)
            try:
                await self._queue.dispatch_many([tenure.Call(JOB, 0, id=job_id) for job_id in ids])
            except tenure.PartialDispatch as error:
                known = {*error.stored, *error.unsure}
                self._note("stored", error.stored)
                self._note("unsure", error.unsure, str(error.__cause__))
                self._note("refused", [i for i in ids if i not in known], str(error.__cause__))
            except tenure.StoreUnavailable as error:
                self._note("refused", ids, str(error))
                await asyncio.sleep(AFTER_FAILURE)
            else:
                self._note("stored", ids)
            await asyncio.sleep(BULK_PAUSE)

    def _new(self, number: int) -> list[str]:
        ids = [str(uuid4()) for _ in range(number)]
        self._note("tried", ids)
        return ids

    def _note(self, what: str, ids: "list[str] | tuple[str, ...]", text: str = "") -> None:
        for job_id in ids:
            self._ledger.note(what, job_id, text=text)


async def main(ledger: Ledger, url: str) -> None:
    async with tenure.connect(url) as queue:
        ledger.note("ready")
        await Dispatcher(queue, ledger).run()


if __name__ == "__main__":
    logging.getLogger("tenure").addHandler(logging.NullHandler())
    asyncio.run(main(Ledger(sys.argv[2]), sys.argv[3]))
