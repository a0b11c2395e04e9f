"""The working parts of one run of a worker, built for its store and joined to each other.

What each of them does stands in its own file. When they start and end is decided in `lifecycle.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from tenure._runtime.claimer import Claimer
from tenure._runtime.completer import Completer
from tenure._runtime.ending import Ending
from tenure._runtime.executor import Executor
from tenure._runtime.judge import Judge
from tenure._runtime.keeper import Keeper
from tenure._runtime.loop import Loop
from tenure._runtime.progress import ProgressWriter
from tenure._runtime.recorder import Awaited, Recorder
from tenure._runtime.report import Reporter
from tenure._runtime.resources import Resources
from tenure._runtime.settings import WorkerSettings
from tenure._runtime.slots import Slots, Stop
from tenure._runtime.upkeep.prune import Pruner
from tenure._runtime.upkeep.reclaim import Reclaimer
from tenure._runtime.upkeep.report import Presence
from tenure._runtime.upkeep.ticker import Ticker
from tenure._runtime.vitals import claimed_at
from tenure.clock import Clock
from tenure.driver import Capability, Driver
from tenure.errors import StateTransitionError, StoreUnavailable
from tenure.handlers import HandlerSpec
from tenure.types import Hold

if TYPE_CHECKING:
    from tenure._runtime.pool.calls import ProcessCalls

__all__ = ["Parts"]

Spawn = Callable[[Coroutine[object, object, None], str], "asyncio.Task[None]"]


class Parts:
    """Claimer, executor, recorder, keeper and upkeep. What the store cannot do has no part.

    `spawn` starts a task that the run owns; `aborting` says whether a cancellation is the end of
    the worker; `interrupted` is told of a real Ctrl-C in a handler.
    """

    def __init__(
        self,
        driver: Driver,
        settings: WorkerSettings,
        handlers: Mapping[str, HandlerSpec],
        slots: Slots,
        reporter: Reporter,
        clock: Clock,
        resources: Resources,
        *,
        awaited: Awaited,
        spawn: Spawn,
        aborting: Callable[[], bool],
        interrupted: Callable[[BaseException], None],
    ) -> None:
        self.driver = driver
        self._settings = settings
        self._slots = slots
        self._reporter = reporter
        self._clock = clock
        self._spawn = spawn
        self._loops: list[Loop] = []
        completer = Completer(driver, settings.result_limit, settings.codec, reporter, clock, spawn)
        self._progress = ProgressWriter(driver, settings.codec, reporter, clock, spawn)
        self._processes = self._processes_of(handlers, aborting)
        self.recorder = Recorder(driver, completer, slots, reporter, clock)
        self.executor = Executor(
            settings,
            slots,
            self.recorder,
            completer,
            self._progress,
            reporter,
            clock,
            resources,
            can_delay={Capability.RELEASE, Capability.DELAY} <= driver.capabilities,
            aborting=aborting,
            interrupted=interrupted,
            processes=self._processes,
        )
        judge = Judge(
            driver.capabilities,
            settings,
            handlers,
            slots,
            self.recorder,
            self.executor,
            reporter,
            clock,
        )
        self.claimer = Claimer(
            driver, settings, handlers, slots, self.recorder, judge, reporter, clock, spawn
        )
        self.recorder.claims = self.claimer
        self.recorder.awaited = awaited
        self._progress.lost = self.executor.lose
        self.executor.slot_freed = judge.start_ready
        # An attempt whose lease was lost gives its slot back without an outcome: nothing else would
        # tell the claimer, and a worker whose slots had all been taken would claim no more.
        slots.watch = self.recorder.wake
        self.presence: Presence | None = None
        self._keeper: Keeper | None = None

    def _processes_of(
        self, handlers: Mapping[str, HandlerSpec], aborting: Callable[[], bool]
    ) -> "ProcessCalls | None":
        """For handlers that run in processes; what that takes is not loaded for others."""
        names = [spec.process for spec in handlers.values() if spec.process is not None]
        if not names:
            return None
        from tenure._runtime.pool.calls import ProcessCalls

        return ProcessCalls(
            self._settings,
            names,
            self._clock,
            self._reporter.report,
            progress=Capability.PROGRESS in self.driver.capabilities,
            aborting=aborting,
        )

    def start(self) -> None:
        """Start every loop, the keeper's thread and all processes; the first claim goes out."""
        driver, settings, slots = self.driver, self._settings, self._slots
        reporter, clock = self._reporter, self._clock
        if self._processes is not None:
            self._processes.start()
        self._loop("recorder", self.recorder.turn)
        if driver.overlap:
            self._loop("recorder", self.recorder.second_turn)
        self._loop("claimer", self.claimer.turn)
        if Capability.RECLAIM in driver.capabilities:
            reclaimer = Reclaimer(driver, settings, slots, self.recorder, reporter, clock)
            self._loop("reclaim", reclaimer.turn)
        if settings.retention is not None and Capability.PRUNE in driver.capabilities:
            self._loop("prune", Pruner(driver, settings.retention, reporter).turn)
        if Capability.SCHEDULES in driver.capabilities:
            self._loop("schedules", Ticker(driver, settings.poll_interval, reporter, clock).turn)
        if Capability.PRESENCE in driver.capabilities:
            claimed = partial(claimed_at, self.claimer, clock)
            self.presence = Presence(driver, settings, slots, reporter, clock, claimed)
            self._loop("presence", self.presence.turn)
        if Capability.EXTEND in driver.capabilities:
            self._keeper = Keeper(
                driver,
                settings.lease,
                slots,
                clock,
                lost=self.executor.lose,
                cancelled=self.executor.cancel,
                kept=self.executor.note_kept,
                report=reporter.report,
            )
            self._keeper.start()
        self.claimer.want()

    def _loop(self, name: str, turn: Callable[[], Awaitable[float]]) -> None:
        loop = Loop(name, turn, clock=self._clock, report=self._reporter.report)
        self._loops.append(loop)
        self._spawn(loop.run(), f"tenure-{name}")

    @property
    def healthy(self) -> bool:
        """Whether no loop has died three times in a row, and processes can be started."""
        keeper = self._keeper is None or self._keeper.healthy
        processes = self._processes is None or self._processes.healthy
        return keeper and processes and all(loop.healthy for loop in self._loops)

    async def write_rest(self) -> None:
        """Write what is left, where the loops have been cancelled, until this is."""
        while True:
            delay = await self.recorder.turn()
            if delay > 0:
                await self._clock.sleep(delay)

    def abandon(self) -> list[tuple[Hold, Ending | None]]:
        """Report what did not end in time, and leave it to its lease.

        Of handlers, what the end of the process would make of their jobs.
        """
        abandoned: list[tuple[Hold, Ending | None]] = []
        for hold, attempt in self._slots.running.items():
            ending = self.executor.endings.stopped(attempt, attempt.stop or Stop.SHUTDOWN)
            abandoned.append((hold, ending))
            self._left(
                hold,
                "release_after_shutdown",
                "the handler did not stop in time and was abandoned; the job comes back when its "
                "lease runs out",
            )
        self.executor.abort()
        for item in self.recorder.abandon():
            self._left(
                item.claim.hold,
                item.operation,
                "the store did not answer before the worker had to stop; the job comes back when "
                "its lease runs out",
            )
        if self.claimer.in_flight:
            self._reporter.report(
                StoreUnavailable(
                    "a claim was not answered before the worker had to stop; what it took comes "
                    "back when its lease runs out",
                    ambiguous=True,
                )
            )
        return abandoned

    def _left(self, hold: Hold, operation: str, message: str) -> None:
        self._reporter.report(StateTransitionError(hold.job_id, operation, message))

    def close(self, patience: float) -> "list[asyncio.Future[Any]]":
        """Start nothing more; what else has to end, the keeper's thread after so many seconds."""
        self._progress.close()
        self.executor.abort()
        self.executor.close()
        ends: list[asyncio.Future[Any]] = []
        if self._processes is not None:
            ends.append(self._processes.close())
        if (hint := self.claimer.stop()) is not None:
            ends.append(hint)
        if self._keeper is not None and (ended := self._keeper.stop(patience)) is not None:
            ends.append(ended)
        return ends
