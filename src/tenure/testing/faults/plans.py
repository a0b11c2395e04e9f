"""What may befall a call, and which calls: plans that a test makes, storms that a seed makes.

A plan counts, a storm draws, and time passes by the clock of the driver that has them. Nothing here
knows what an operation means.
"""

import threading
from dataclasses import KW_ONLY, dataclass
from random import Random
from typing import Literal

from tenure.clock import Clock
from tenure.errors import StoreUnavailable
from tenure.testing.faults.gate import Gate

__all__ = [
    "Befallen",
    "Failing",
    "Fault",
    "Freeze",
    "Frozen",
    "How",
    "Late",
    "Plan",
    "Storm",
    "When",
]

How = Literal["before", "after", "ambiguously"]
When = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Failing:
    """The call raises `error`.

    `before`: it never reaches the store, which the caller is told. `ambiguously`: neither does it,
    but the caller cannot know. `after`: the store does it, and the answer is lost. Without an
    `error` it is `StoreUnavailable`, which is ambiguous but for `before`.
    """

    how: How
    error: Exception | None = None

    def to_raise(self, operation: str) -> Exception:
        if self.error is not None:
            return self.error
        said = {
            "before": "it did not reach the store",
            "ambiguously": "it may have reached the store",
            "after": "its answer was lost",
        }
        return StoreUnavailable(
            f"a fault befell {operation}: {said[self.how]}", ambiguous=self.how != "before"
        )


@dataclass(frozen=True, slots=True)
class Late:
    """The call (`before`) or its answer (`after`) takes so many seconds longer."""

    seconds: float
    when: When = "before"

    async def wait(self, clock: Clock) -> None:
        await clock.sleep(self.seconds)

    def block(self, clock: Clock) -> None:
        clock.block(threading.Event(), self.seconds)


@dataclass(frozen=True, slots=True)
class Frozen:
    """The call (`before`) or its answer (`after`) waits for the gate."""

    gate: Gate
    when: When = "before"

    async def wait(self, clock: Clock) -> None:
        await self.gate.wait()

    def block(self, clock: Clock) -> None:
        self.gate.block(clock)


Fault = Failing | Late | Frozen


@dataclass(frozen=True, slots=True)
class Befallen:
    """What befell the `number`-th call of an operation."""

    operation: str
    number: int
    fault: Fault


class Plan:
    """A fault for some of the calls of its operations, counted together from now on.

    `on` is the first call it befalls (1: the next one), `times` how many in a row (None: all that
    follow). `fired` counts those that it has befallen.
    """

    def __init__(
        self, operations: frozenset[str], fault: Fault, on: int, times: int | None
    ) -> None:
        self.operations = operations
        self.fault = fault
        self.on = on
        self.times = times
        self.fired: int = 0
        self._seen = 0
        self._lifted = False

    def __repr__(self) -> str:
        names = "|".join(sorted(self.operations))
        span = "all" if self.times is None else str(self.times)
        return f"<{self.fault} on {names} from call {self.on}, {span}: befell {self.fired}>"

    @property
    def outstanding(self) -> bool:
        """Whether something that was planned has not happened: for `times=None`, anything."""
        return self.fired < (1 if self.times is None else self.times)

    def lift(self) -> None:
        """Let it befall no call any more; what has not happened by now stays `outstanding`."""
        self._lifted = True

    def befalls(self, operation: str) -> bool:
        """Count a call, and say whether this plan befalls it."""
        if operation not in self.operations:
            return False
        self._seen += 1
        due = self.on <= self._seen and (self.times is None or self._seen < self.on + self.times)
        if not due or self._lifted:
            return False
        self.fired += 1
        return True


class Freeze(Plan):
    """A plan whose calls wait until `thaw`."""

    def __init__(
        self, operations: frozenset[str], fault: Frozen, on: int, times: int | None
    ) -> None:
        super().__init__(operations, fault, on, times)
        self._gate = fault.gate

    @property
    def holding(self) -> int:
        """How many calls wait now."""
        return self._gate.holding

    def thaw(self) -> None:
        """Let the waiting calls go on, and all later ones pass. Legal on any thread, and twice."""
        self.lift()
        self._gate.open()


@dataclass(frozen=True, slots=True)
class Storm:
    """Any call may fail or take its time; the same for the same seed.

    `failing` is the share of calls that fail, in any of the `ways` of `FaultyDriver.fail`; `late`
    the share of those that take up to `longest` seconds, before or after the store has done them.
    Both may befall one call. What befalls the n-th call of
    an operation depends on nothing but the seed, the operation and n, so that a run can be played
    again however its calls interleave. The operations in `spares` are left alone; by default
    opening and closing, and those in a caller's own transaction, whose end the caller knows.
    """

    seed: int
    _: KW_ONLY
    failing: float = 0.25
    late: float = 0.25
    longest: float = 2.0
    ways: tuple[How, ...] = ("before", "after", "ambiguously")
    spares: frozenset[str] = frozenset({"open", "close", "enqueue_within", "record_within"})

    def faults(self, operation: str, number: int) -> tuple[Fault, ...]:
        """What befalls that call."""
        if operation in self.spares:
            return ()
        draw = Random(f"{self.seed} {operation} {number}")
        found: list[Fault] = []
        if draw.random() < self.late:
            whens: tuple[When, ...] = ("before", "after")
            found.append(Late(draw.uniform(0.0, self.longest), draw.choice(whens)))
        if draw.random() < self.failing:
            found.append(Failing(draw.choice(self.ways)))
        return tuple(found)
