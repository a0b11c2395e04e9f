"""What a worker program knows of its processes, and what follows: does it live, is it ready.

A store that is away makes it not ready, and never dead. A process that is being replaced is neither
dead nor in the way of the others. Used on the event loop of the program's own thread.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from tenure.cli.watch.lines import Line
from tenure.cli.watch.merging import Sums, counted
from tenure.cli.watch.terms import Family, Sample, Told
from tenure.clock import Clock

__all__ = ["Board", "Verdict"]

_PATIENCE = 0.8  # seconds for an answer: probes often give up after one
_COUNTING = 2.5  # for one with metrics, which may have to ask the store
_FRESH = 0.25  # seconds for which a verdict stands, however many ask for it
_COUNTS_FRESH = 1.0
_STUCK = 15.0  # the supervisor looks once a second


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is wrong, in words: nothing is where these are empty."""

    not_live: Sequence[str] = field(default=())
    not_ready: Sequence[str] = field(default=())
    some_ready: bool = False
    processes: int = 0
    slots: int = 0
    used: int = 0


class Board:
    """The processes of one program, `wanted` of them."""

    def __init__(self, wanted: int, clock: Clock) -> None:
        self._wanted = wanted
        self._clock = clock
        self._lines: dict[int, Line] = {}
        self._open: set[Line] = set()  # also those whose process has just ended
        self._gone = Sums()  # what ended processes have counted
        self._stopping = False
        self._whole = False  # every process has been ready at the same time once
        self._turned = clock.monotonic()
        self._judging = asyncio.Lock()
        self._counting = asyncio.Lock()
        self._verdict = (float("-inf"), Verdict())
        self._counts: tuple[float, Sequence[Family]] = (float("-inf"), ())

    # --- what is heard --------------------------------------------------------------------------

    def started(self, line: Line) -> None:
        self._lines[line.place] = line
        self._open.add(line)

    def ready(self, place: int) -> None:
        if place in self._lines:
            self._lines[place].ready = True
        ready = sum(line.ready for line in self._lines.values())
        self._whole = self._whole or ready >= self._wanted

    def ended(self, place: int) -> Line | None:
        """The line of the process that was there."""
        return self._lines.pop(place, None)

    def bury(self, line: Line) -> None:
        """There will be no more from this line."""
        self._open.discard(line)
        self._gone.add(counted(line.families or ()))

    def stopping(self) -> None:
        self._stopping = True

    def turned(self) -> None:
        """The supervisor lives."""
        self._turned = self._clock.monotonic()

    # --- what follows ---------------------------------------------------------------------------

    async def verdict(self) -> Verdict:
        """Ask every process, unless somebody just did. Takes less than a second."""
        async with self._judging:
            at, verdict = self._verdict
            if self._clock.monotonic() - at >= _FRESH:
                verdict = await self._judge()
                self._verdict = (self._clock.monotonic(), verdict)
            return verdict

    async def _judge(self) -> Verdict:
        lines = [line for line in self._lines.values() if line.ready]
        answers = await asyncio.gather(*(line.ask(_PATIENCE) for line in lines))
        not_live: list[str] = []
        not_ready = ["the program is stopping"] if self._stopping else []
        ready = slots = used = 0
        if (still := self._clock.monotonic() - self._turned) > _STUCK:
            not_live.append(f"the supervisor of the processes has not turned for {still:.0f} s")
        for line, told in zip(lines, answers, strict=True):
            if self._lines.get(line.place) is not line:
                continue  # it has ended meanwhile
            dead, unready = _wrong(line, told)
            not_live += dead
            not_ready += unready
            ready += not unready
            if told is not None:
                slots, used = slots + told.slots, used + told.used
        if not (self._whole or self._stopping):
            missing = self._wanted - len(lines)
            not_ready += [f"{missing} of {self._wanted} processes have not been started yet"]
        elif not lines and not self._stopping:
            not_ready.append("every process is being replaced")
        return Verdict(
            not_live=not_live,
            not_ready=not_ready,
            some_ready=ready > 0 and not self._stopping,
            processes=len(lines),
            slots=slots,
            used=used,
        )

    async def families(self) -> Sequence[Family]:
        """The metrics of all processes, those that have ended included, as of the last second."""
        async with self._counting:
            at, families = self._counts
            if self._clock.monotonic() - at >= _COUNTS_FRESH:
                families = await self._count()
                self._counts = (self._clock.monotonic(), families)
            return families

    async def _count(self) -> Sequence[Family]:
        lines = [line for line in self._lines.values() if line.ready]
        await asyncio.gather(*(line.ask(_COUNTING, metrics=True) for line in lines))
        sums = Sums()
        sums.add(self._gone.families())
        for line in self._open:
            sums.add(line.families or ())
        return [*sums.families(), *self._own()]

    def _own(self) -> Sequence[Family]:
        ready = sum(line.ready for line in self._lines.values())
        return [
            _gauge("tenure_processes", "Worker processes that there should be", self._wanted),
            _gauge("tenure_processes_running", "Worker processes whose worker runs", ready),
        ]


def _wrong(line: Line, told: Told | None) -> tuple[Sequence[str], Sequence[str]]:
    """Why a process is not live, and why it is not ready."""
    if silent := line.silent:
        text = f"{line.name}: it has not answered for {silent:.0f} s"
        return [text], [text]
    if told is None:
        return [], [f"{line.name}: it has not answered yet"]
    not_live = [f"{line.name}: {told.not_live}"] if told.not_live else []
    not_ready = [f"{line.name}: {told.not_ready}"] if told.not_ready else not_live
    return not_live, not_ready


def _gauge(name: str, text: str, value: float) -> Family:
    return Family(name, "gauge", text, [Sample(name, {}, value)])
