"""A worker process: `python -m chaos.mixed NAME LEDGER URL WHICH`, WHICH is `early` or `late`.

It has a handler of every kind; only the late ones have that of the jobs named `late`. It notes each
start and end of a handler, and all that its worker tells it, and runs until its stdin closes. It
judges nothing.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

import tenure
from chaos.ledger import Ledger
from chaos.load import LEASE, MAX_STALLS, QUEUES
from chaos.noting import NotingDriver
from chaos.opening import opened

__all__: list[str] = []

CONCURRENCY = 16
Result = list[str | int]


def rest(seconds: float) -> None:
    """Block this thread. (`time.sleep` is refused where the wall clock is another.)"""
    threading.Event().wait(seconds)


class Handlers:
    """Each returns who ran it, under which hold, and its payload, so that the store shows it."""

    def __init__(self, ledger: Ledger, claimed: dict[str, float]) -> None:
        self._ledger = ledger
        self._claimed = claimed  # by job: when its claim was asked for
        self._snoozed: set[str] = set()

    @contextmanager
    def _noted(self, payload: str, job: tenure.RunningJob) -> Generator[Result]:
        sent = f"{self._claimed.pop(job.id):.6f}"
        self._ledger.note("started", job.id, job.attempt, sent, serial=job.fence)
        try:
            yield [self._ledger.process, job.fence, payload]
        finally:
            self._ledger.note("ended", job.id, job.attempt, serial=job.fence)

    async def short(self, payload: str, job: tenure.RunningJob) -> Result:
        with self._noted(payload, job) as result:
            await asyncio.sleep(0.005)
            return result

    def thread(self, payload: str, job: tenure.RunningJob) -> Result:
        with self._noted(payload, job) as result:
            rest(0.005)
            return result

    async def blocking(self, payload: str, job: tenure.RunningJob) -> Result:
        with self._noted(payload, job) as result:
            rest(0.002)  # it is meant to hold up the loop
            return result

    async def flaky(self, payload: str, job: tenure.RunningJob) -> Result:
        with self._noted(payload, job) as result:
            if job.attempt == 1:
                raise tenure.Retry("the first attempt always fails", after=0.1)
            return result

    async def snoozing(self, payload: str, job: tenure.RunningJob) -> Result | tenure.Snooze:
        with self._noted(payload, job) as result:
            if job.id not in self._snoozed:
                self._snoozed.add(job.id)
                self._ledger.note("given back", job.id, job.attempt, serial=job.fence)
                return tenure.Snooze(0.1)
            return result

    async def failing(self, payload: str, job: tenure.RunningJob) -> Result:
        with self._noted(payload, job):
            raise tenure.Retry("it always fails", after=0.05)

    async def slow(self, payload: str, job: tenure.RunningJob) -> Result:
        """It does not end within its time limit."""
        with self._noted(payload, job) as result:
            await asyncio.sleep(60.0)
            return result

    def overdue(self, payload: str, job: tenure.RunningJob) -> Result:
        """It does not end within its time limit, and cannot be interrupted: its result counts."""
        with self._noted(payload, job) as result:
            rest(0.6)
            return result

    async def long(self, payload: str, job: tenure.RunningJob) -> Result:
        """It needs its lease to be extended, more than once."""
        with self._noted(payload, job) as result:
            await asyncio.sleep(1.5 * LEASE)
            return result

    async def poison(self, payload: str, job: tenure.RunningJob) -> Result:
        with self._noted(payload, job) as result:
            os.kill(os.getpid(), signal.SIGKILL)
            return result


def observer(ledger: Ledger, driver: NotingDriver, claimed: dict[str, float]) -> tenure.Observer:
    """Notes what the worker was told of its holds, and what it did to those of others."""

    def observe(event: tenure.Event) -> None:
        match event:
            case tenure.JobStarted(job=job, hold=hold):
                claimed[job.id] = driver.sent(hold)
            case tenure.JobSettled(job=job, hold=hold, attempt=attempt, outcome=outcome):
                ledger.note("settled", job.id, attempt, type(outcome).__name__, serial=hold.serial)
                if isinstance(outcome, tenure.Released):
                    ledger.note("given back", job.id, attempt, serial=hold.serial)
            case tenure.JobFenced(job=job, hold=hold, operation=operation):
                ledger.note("fenced", job.id, text=operation, serial=hold.serial)
            case tenure.LeaseEnded(job=job, hold=hold):
                ledger.note("lease ended", job.id, serial=hold.serial)
            case tenure.JobsReclaimed(job_ids=ids):
                for job_id in ids:
                    ledger.note("reclaimed", job_id)
            case tenure.ScheduleFired(schedule_id=schedule_id, job_id=job_id):
                ledger.note("fired", job_id, text=schedule_id)
            case tenure.ErrorReported(error=tenure.JobOverdue(job_id=job_id)):
                ledger.note("overdue", job_id)
            case _:
                pass

    return observe


def worker_on(driver: NotingDriver, ledger: Ledger, *, late: bool) -> tenure.Worker:
    """A worker with all handlers, that keeps every job for the checker."""
    claimed: dict[str, float] = {}
    worker = tenure.Worker(
        tenure.Queue(driver),
        concurrency=CONCURRENCY,
        lease=LEASE,
        max_stalls=MAX_STALLS,
        queues=QUEUES,
        retention=None,
        observers=[observer(ledger, driver, claimed)],
    )
    handlers = Handlers(ledger, claimed)
    for name in ("async", "unique", "single", "rated", "ticking", *(["late"] if late else [])):
        worker.register(name, handlers.short)
    worker.register("thread", handlers.thread)
    worker.register("blocking", handlers.blocking)
    worker.register("flaky", handlers.flaky)
    worker.register("snoozing", handlers.snoozing)
    worker.register("failing", handlers.failing)
    worker.register("slow", handlers.slow)
    worker.register("overdue", handlers.overdue)
    worker.register("long", handlers.long)
    worker.register("poison", handlers.poison)
    return worker


async def main(ledger: Ledger, url: str, which: str) -> None:
    logging.getLogger("tenure").addHandler(logging.NullHandler())
    closed = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), closed.set)
    async with await opened(url) as queue:
        driver = NotingDriver(await queue.driver(), ledger)
        async with worker_on(driver, ledger, late=which == "late").run():
            ledger.note("ready")
            await closed.wait()


if __name__ == "__main__":
    asyncio.run(main(Ledger(sys.argv[2], sys.argv[1]), sys.argv[3], sys.argv[4]))
