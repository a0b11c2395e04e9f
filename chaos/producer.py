"""A process that dispatches jobs of all kinds: `python -m chaos.producer NAME LEDGER URL LATE`.

It notes each id and payload before the dispatch, and then how that ended: `stored`, `kept` (another
job has the unique key, and nothing was stored), `refused` (nothing may be stored) or `unsure`. For
the first LATE seconds it also dispatches jobs that no worker has a handler for yet. It runs until
its stdin closes, and runs no job.
"""

import asyncio
import logging
import random
import sys
import time
from collections.abc import Sequence
from uuid import uuid4

import tenure
from chaos.ledger import Ledger
from chaos.load import KEYS, LATE, LONG, MIXED, ONE_AT_A_TIME, POISON, QUEUES, RATED, Kind
from chaos.opening import opened

__all__: list[str] = []

SINGLES, PAUSE = 6, 0.06  # tasks that dispatch one by one, with a pause between
IMPATIENCE = 0.4  # seconds that every other of these waits for an answer before it gives up
BULK, BULK_PAUSE = 90, 0.25  # how many jobs two other tasks dispatch together
ENOUGH = 2500  # jobs that wait: no more are added
RATED_PAUSE, RATED_NUMBER = 8.0, 30  # of all producers together six times what the limit lets by
LONG_PAUSE, LATE_PAUSE, POISON_PAUSE = 2.0, 1.0, 45.0


class Producer:
    """Tasks that dispatch one by one, and some that dispatch many together."""

    def __init__(self, queue: tenure.Queue, ledger: Ledger, late: float) -> None:
        self._queue = queue
        self._ledger = ledger
        self._late_until = time.monotonic() + late
        self._closed = asyncio.Event()
        self._enough = False

    async def run(self) -> None:
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._closed.set)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._count())
            for number in range(SINGLES):
                group.create_task(self._singly(IMPATIENCE if number % 2 else None))
            for _ in range(2):
                group.create_task(self._together(BULK, BULK_PAUSE, None))
            group.create_task(self._together(RATED_NUMBER, RATED_PAUSE, RATED))
            group.create_task(self._together(1, LONG_PAUSE, LONG))
            group.create_task(self._together(1, POISON_PAUSE, POISON))
            group.create_task(self._together(1, LATE_PAUSE, LATE))

    async def _count(self) -> None:
        """Look whether the workers keep up."""
        while not self._closed.is_set():
            try:
                async with asyncio.timeout(2.0):
                    self._enough = (await self._queue.counts()).pending > ENOUGH
            except (tenure.StoreError, TimeoutError):
                self._enough = True
            await self._pause(0.5)

    async def _singly(self, patience: float | None) -> None:
        while not self._closed.is_set():
            call = self._call(None, unique=True)
            [job_id] = self._tried([call])
            try:
                async with asyncio.timeout(patience):
                    [handle] = await self._queue.dispatch_many([call])
            except TimeoutError:
                self._note("unsure", [job_id], "given up")
            except tenure.PartialDispatch as error:
                self._part(error, [job_id])
            except tenure.StoreError as error:
                self._failed(error, [job_id])
            else:
                self._note("stored" if handle.id == job_id else "kept", [job_id], handle.id)
            await self._pause(PAUSE)

    async def _together(self, number: int, pause: float, kind: Kind | None) -> None:
        while not self._closed.is_set():
            if kind is LATE and time.monotonic() > self._late_until:
                return
            if not self._enough or kind is not None:
                calls = [self._call(kind) for _ in range(number)]
                ids = self._tried(calls)
                try:
                    await self._queue.dispatch_many(calls)
                except tenure.PartialDispatch as error:
                    self._part(error, ids)
                except tenure.StoreError as error:
                    self._failed(error, ids)
                else:
                    self._note("stored", ids)
            await self._pause(pause)

    def _call(self, kind: Kind | None, *, unique: bool = False) -> tenure.Call:
        if kind is None:
            kinds = [each for each in MIXED if unique or each.name != "unique"]
            [kind] = random.choices(kinds, [each.weight for each in kinds])
        job_id = str(uuid4())
        limits = {
            "single": [f"{ONE_AT_A_TIME}{random.randrange(KEYS)}"],
            "rated": ["rate"],
        }
        return tenure.Call(
            kind.name,
            f"ä\t{job_id}\\",
            id=job_id,
            queue=random.choice(QUEUES),
            priority=random.randint(-5, 5),
            delay=random.choice((None, None, 0.5)),
            max_attempts=kind.max_attempts,
            timeout=kind.timeout,
            unique=f"key:{random.randrange(KEYS)}" if kind.name == "unique" else None,
            limits=limits.get(kind.name, ()),
        )

    def _tried(self, calls: Sequence[tenure.Call]) -> list[str]:
        for call in calls:
            self._ledger.note("tried", str(call.id), text=str(call.payload))
        return [str(call.id) for call in calls]

    def _part(self, error: tenure.PartialDispatch, ids: Sequence[str]) -> None:
        known = {*error.stored, *error.unsure}
        self._note("stored", error.stored)
        self._note("unsure", error.unsure)
        self._note("refused", [i for i in ids if i not in known])

    def _failed(self, error: tenure.StoreError, ids: Sequence[str]) -> None:
        ambiguous = isinstance(error, tenure.StoreUnavailable) and error.ambiguous
        self._note("unsure" if ambiguous else "refused", ids, str(error))

    def _note(self, what: str, ids: Sequence[str], text: str = "") -> None:
        for job_id in ids:
            self._ledger.note(what, job_id, text=text)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._closed.wait()
        except TimeoutError:
            pass


async def main(ledger: Ledger, url: str, late: float) -> None:
    async with await opened(url) as queue:
        ledger.note("ready")
        await Producer(queue, ledger, late).run()


if __name__ == "__main__":
    logging.getLogger("tenure").addHandler(logging.NullHandler())
    asyncio.run(main(Ledger(sys.argv[2], sys.argv[1]), sys.argv[3], float(sys.argv[4])))
