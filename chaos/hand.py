"""The hostile hand: it starts the processes of a run, does what the plan says, and ends them.

It notes in a ledger of its own whom it has killed. It judges nothing.
"""

import asyncio
import signal
import sqlite3
import time
from contextlib import AsyncExitStack, closing
from pathlib import Path

import msgspec

import tenure
from chaos.clocks import Clocks
from chaos.disk import Disk
from chaos.ledger import Entry, Ledger
from chaos.load import ONE_AT_A_TIME, RATE, SCHEDULES
from chaos.plan import PRODUCERS, WORKERS, Step
from chaos.processes import Process
from chaos.reading import waiting
from chaos.stores import Server
from tenure.testing.faults import Relay

__all__ = ["Hand", "Scene"]

SETTLE = 120.0  # seconds that all jobs have to end, once the hand rests,
SETTLE_SHARE = 0.3  # and that share of the run: what was put off by clocks comes only then
LATE = 0.3  # of the time, after which new workers know all handlers


class Scene(msgspec.Struct, frozen=True):
    """What the hand can reach, beside the processes; None is what this machine cannot do."""

    store: Path  # where the files of the store are
    server: Server | None = None
    disk: Disk | None = None
    clocks: Clocks | None = None
    settable: bool = True  # the clock of the server, where there are clocks


class Hand:
    """One run: its processes, the network before each, and what is done to them."""

    def __init__(self, folder: Path, scene: Scene, seconds: float) -> None:
        self.folder, self.scene, self.seconds = folder, scene, seconds
        self.store, self.server = scene.store, scene.server
        self.ledger = Ledger(folder / "ledger-hand", "hand")
        self.problems: list[str] = []
        self.every: list[Process] = []
        self.workers: list[Process] = []
        self.early: set[str] = set()
        self._relays: list[Relay] = []
        self._began = time.monotonic()
        self._alive = AsyncExitStack()

    @property
    def url(self) -> str:
        return f"sqlite:///{self.store / 'jobs.db'}" if self.server is None else self.server.url

    def _url(self, place: int) -> str:
        """Of the store as seen by one process: through a network of its own."""
        if self.server is None:
            return self.url
        return self.url.replace(f":{self.server.port}", f":{self._relays[place].port}")

    async def __aenter__(self) -> "Hand":
        try:
            if self.server is not None:
                for _ in range(WORKERS + PRODUCERS + 1):
                    relay = Relay("127.0.0.1", self.server.port)
                    self._relays.append(await self._alive.enter_async_context(relay))
            async with tenure.connect(self.url) as queue:
                await queue.limit(f"{ONE_AT_A_TIME}*", concurrent=1)
                await queue.limit("rate", per_second=RATE)
                for schedule, missed in zip(SCHEDULES, ("all", "skip"), strict=True):
                    await queue.schedule(schedule, "@every 1s", "ticking", schedule, missed=missed)
            self.workers = [self._worker(place) for place in range(WORKERS)]
            late = self.seconds * LATE
            self.producers = [
                self._add("producer", f"producer-{place}", place, late)
                for place in range(WORKERS, WORKERS + PRODUCERS)
            ]
            self.producers.append(self._add("meddler", "meddler", WORKERS + PRODUCERS))
            for process in self.every:
                await process.ready()
        except BaseException:
            await self.__aexit__()
            raise
        self._began = time.monotonic()
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self.every:
            process.kill()
        await self._alive.aclose()

    def _add(self, module: str, name: str, place: int, *arguments: object) -> Process:
        clocks = self.scene.clocks
        environment = None if clocks is None else clocks.of_place(place)
        url = self._url(place)
        process = Process(module, name, self.folder, url, *arguments, environment=environment)
        self.every.append(process)
        return process

    def _worker(self, place: int) -> Process:
        late = time.monotonic() > self._began + self.seconds * LATE and bool(self.workers)
        worker = self._add("mixed", f"worker-{len(self.every)}", place, "late" if late else "early")
        if not late:
            self.early.add(worker.name)
        return worker

    async def disturb(self, steps: tuple[Step, ...]) -> None:
        """Do each step at its time, then let the rest of the time pass."""
        for step in steps:
            await self._wait(step.at)
            await self._do(step)
        await self._wait(self.seconds)

    async def _wait(self, until: float) -> None:
        """Meanwhile start anew who was killed by a job."""
        while True:
            self._revive()
            left = self._began + until - time.monotonic()
            if left <= 0:
                return
            await asyncio.sleep(min(left, 0.2))

    def _revive(self) -> None:
        for place, worker in enumerate(self.workers):
            if not worker.running:
                self._died(worker)
                self.workers[place] = self._worker(place)

    def _died(self, worker: Process) -> None:
        self.ledger.note("killed", text=worker.name)
        self.ledger.note("died of a job", text=worker.name)
        if worker.code != -signal.SIGKILL or worker.stderr:
            self.problems.append(f"{worker.name} died ({worker.code}): {worker.stderr}")

    async def _do(self, step: Step) -> None:
        self.ledger.note("step", text=step.kind)
        await self._step(step)
        self.ledger.note("step over", text=step.kind)

    async def _step(self, step: Step) -> None:
        place = step.victim % WORKERS
        match step.kind:
            case "kill":
                self.ledger.note("killed", text=self.workers[place].name)
                self.workers[place].kill()
                self.workers[place] = self._worker(place)
            case "freeze":
                self.workers[place].send(signal.SIGSTOP)
                await asyncio.sleep(step.seconds)
                self.workers[place].send(signal.SIGCONT)
            case "server":
                assert self.server is not None
                await asyncio.to_thread(self.server.kill)
                await asyncio.sleep(step.seconds)
                await asyncio.to_thread(self.server.start)
            case "cut" | "drop" | "silence":
                await self._disconnect(self._relays[step.victim], step)
            case "disk":
                await self._fill(step.seconds)
            case "clock":
                assert self.scene.clocks is not None
                self.scene.clocks.set_store(step.offset, self.ledger)
            case "worker clock":
                assert self.scene.clocks is not None
                self.scene.clocks.set_place(step.victim, step.offset)
            case _:
                await asyncio.to_thread(lock, self.store / "jobs.db", step.seconds)

    async def _fill(self, seconds: float) -> None:
        """A server may end over that, as Redis does when it cannot write what it has promised."""
        assert self.scene.disk is not None
        await asyncio.to_thread(self.scene.disk.fill, seconds)
        if self.server is not None and not self.server.answers:
            self.ledger.note("ended by a full disk")
            await asyncio.to_thread(self.server.kill)
            await asyncio.to_thread(self.server.start)

    async def _disconnect(self, relay: Relay, step: Step) -> None:
        match step.kind:
            case "cut":
                relay.refuse()
                relay.cut()
            case "drop":
                relay.drop_replies()
            case _:
                relay.freeze()
        await asyncio.sleep(step.seconds)
        relay.restore()
        if step.kind == "drop":
            relay.cut()  # a connection that has lost an answer would carry none ever after

    async def finish(self, queue: tenure.Queue) -> None:
        """End the producers, exchange the oldest workers, wait until all is done, end the rest."""
        await self._end(*self.producers)
        for schedule in SCHEDULES:
            await queue.unschedule(schedule)
        if self.scene.clocks is not None:
            self.scene.clocks.catch_up(self.ledger)
        old = [worker for worker in self.workers if worker.name in self.early and worker.running]
        self.workers = [
            self._worker(place) if worker in old else worker
            for place, worker in enumerate(self.workers)
        ]
        await self._end(*old)
        deadline = time.monotonic() + SETTLE + SETTLE_SHARE * self.seconds
        while await waiting(queue) and time.monotonic() < deadline:
            self._revive()
            await asyncio.sleep(0.2)
        await self._end(*self.workers)

    async def _end(self, *processes: Process) -> None:
        await asyncio.gather(*map(self._end_one, processes))

    async def _end_one(self, process: Process) -> None:
        problem = await process.ended()
        if process.code == -signal.SIGKILL:
            self._died(process)
        elif problem:
            self.problems.append(problem)

    def entries(self) -> list[Entry]:
        ledgers = (self.ledger, *(process.ledger for process in self.every))
        return [entry for ledger in ledgers for entry in ledger.read()]


def lock(path: Path, seconds: float) -> None:
    """Hold the write lock of the file, as a forgotten transaction would."""
    with closing(sqlite3.connect(path, timeout=30.0, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        time.sleep(seconds)
        connection.execute("ROLLBACK")
