"""A driver whose calls fail, come late or freeze, as planned or as a storm will have it.

What no fault befalls goes through unchanged. It never invents an answer.
"""

import inspect
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from difflib import get_close_matches
from typing import TypeVar

from tenure.clock import Clock, SystemClock
from tenure.driver import Capability, Driver
from tenure.testing.faults.gate import Gate
from tenure.testing.faults.passing import KEEPER, PassingDriver
from tenure.testing.faults.plans import (
    Befallen,
    Failing,
    Fault,
    Freeze,
    Frozen,
    How,
    Late,
    Plan,
    Storm,
    When,
)

__all__ = ["FaultyDriver"]

T = TypeVar("T")

_OPERATIONS = sorted(
    {KEEPER, *(name for name, _ in inspect.getmembers(Driver, inspect.iscoroutinefunction))}
)


class FaultyDriver(PassingDriver):
    """Stands before `inner`, and lets faults befall the calls that go through it.

        faults = FaultyDriver(inner)
        faults.fail("record", "exchange", on=3, how="after")
        async with tenure.Queue(faults) as queue: ...
        assert not faults.unfired

    An operation is called by its name in `tenure.driver.Driver`; what the keeper's thread asks is
    `keeper.extend`. Several names are counted together. Several plans may befall one call: all that
    make it late, and the first that lets it fail. Time passes by `clock` only, by default the
    system's. All of it may be used from any thread.

    `storm` befalls whatever it likes, beside the plans. `capabilities` as in `PassingDriver`.
    """

    def __init__(
        self,
        inner: Driver,
        *,
        clock: Clock | None = None,
        storm: Storm | None = None,
        capabilities: frozenset[Capability] | None = None,
    ) -> None:
        super().__init__(inner, capabilities=capabilities)
        self._clock = clock or SystemClock()
        self._storm = storm
        self._lock = threading.Lock()
        self._counts = Counter[str]()
        self._calls: list[str] = []
        self._befallen: list[Befallen] = []
        self._plans: list[Plan] = []

    # --- plans ----------------------------------------------------------------------------------

    def fail(
        self,
        *operations: str,
        how: How = "before",
        on: int = 1,
        times: int | None = 1,
        error: Exception | None = None,
    ) -> Plan:
        """Let the `on`-th call from now on, and those after it up to `times`, raise.

        `before`: the store is not reached, and `StoreUnavailable` says so. `after`: the store does
        the call, and the answer is lost. `ambiguously`: the store is not reached, but the caller
        cannot know. The last two raise `StoreUnavailable(ambiguous=True)`; `error` is raised in
        the place of either. `times=None` is for ever, or until the plan is lifted.
        """
        return self._plan(Plan(_known(operations), Failing(how, error), on, times))

    def delay(
        self,
        *operations: str,
        seconds: float,
        when: When = "before",
        on: int = 1,
        times: int | None = None,
    ) -> Plan:
        """Let calls take so many seconds longer, before the store does them or after."""
        return self._plan(Plan(_known(operations), Late(seconds, when), on, times))

    def freeze(
        self, *operations: str, when: When = "before", on: int = 1, times: int | None = None
    ) -> Freeze:
        """Let calls wait, before the store does them or after, until the freeze is thawed."""
        fault = Frozen(Gate(), when)
        freeze = Freeze(_known(operations), fault, on, times)
        self._plan(freeze)
        return freeze

    def calm(self) -> None:
        """Lift all plans, thaw all that is frozen, and end the storm."""
        with self._lock:
            self._storm = None
            plans = list(self._plans)
        for plan in plans:
            plan.lift()
        self._thaw()

    # --- what happened --------------------------------------------------------------------------

    @property
    def calls(self) -> tuple[str, ...]:
        """The operations in the order in which their calls began, whatever befell them."""
        with self._lock:
            return tuple(self._calls)

    def count(self, *operations: str) -> int:
        """How many calls of these have begun."""
        with self._lock:
            return sum(self._counts[operation] for operation in _known(operations))

    @property
    def befallen(self) -> tuple[Befallen, ...]:
        """What befell which call, in order, of plans and storm alike."""
        with self._lock:
            return tuple(self._befallen)

    @property
    def unfired(self) -> tuple[Plan, ...]:
        """The plans of which something has not happened; a test that made them is to notice."""
        with self._lock:
            return tuple(plan for plan in self._plans if plan.outstanding)

    # --- the calls ------------------------------------------------------------------------------

    async def around(self, operation: str, call: Callable[[], Awaitable[T]]) -> T:
        faults = self._begin(operation)
        for stay in _stays(faults, "before"):
            await stay.wait(self._clock)
        _raise(faults, operation, done=False)
        answer = await call()
        for stay in _stays(faults, "after"):
            await stay.wait(self._clock)
        _raise(faults, operation, done=True)
        return answer

    def around_keeper(self, call: Callable[[], T]) -> T:
        faults = self._begin(KEEPER)
        for stay in _stays(faults, "before"):
            stay.block(self._clock)
        _raise(faults, KEEPER, done=False)
        answer = call()
        for stay in _stays(faults, "after"):
            stay.block(self._clock)
        _raise(faults, KEEPER, done=True)
        return answer

    async def close(self) -> None:
        """Thaw what is frozen, so that nothing waits for ever, and close the store."""
        self._thaw()
        await super().close()

    def _thaw(self) -> None:
        with self._lock:
            freezes = [plan for plan in self._plans if isinstance(plan, Freeze)]
        for freeze in freezes:
            freeze.thaw()

    def _plan(self, plan: Plan) -> Plan:
        with self._lock:
            self._plans.append(plan)
        return plan

    def _begin(self, operation: str) -> list[Fault]:
        with self._lock:
            self._calls.append(operation)
            self._counts[operation] += 1
            number = self._counts[operation]
            faults = [plan.fault for plan in self._plans if plan.befalls(operation)]
            if self._storm is not None:
                faults += self._storm.faults(operation, number)
            self._befallen += [Befallen(operation, number, fault) for fault in faults]
            return faults


def _stays(faults: Sequence[Fault], when: When) -> list[Late | Frozen]:
    """What makes the call late at that point."""
    return [f for f in faults if not isinstance(f, Failing) and f.when == when]


def _raise(faults: Sequence[Fault], operation: str, *, done: bool) -> None:
    """Fail as the first failing fault will have it, if it does so at this point."""
    failing = next((fault for fault in faults if isinstance(fault, Failing)), None)
    if failing is not None and done is (failing.how == "after"):
        raise failing.to_raise(operation)


def _known(operations: tuple[str, ...]) -> frozenset[str]:
    """The operations; `ValueError` where there are none, or one that the contract does not have."""
    if not operations:
        raise ValueError("at least one operation must be named")
    for name in operations:
        if name not in _OPERATIONS:
            near = get_close_matches(name, _OPERATIONS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"a driver has no operation {name!r}{hint}")
    return frozenset(operations)
