"""What a check is: a named sentence of the contract, with the coroutine that proves it on a store.

A check never knows which driver it is given, never sleeps, and says what it expected and got.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import NoReturn

from tenure.driver import Capability, Driver

__all__ = ["Check", "ConformanceFailure", "check", "expect", "expect_that", "refuse"]


class ConformanceFailure(AssertionError):
    """The store does not do what the contract says.

    `check` and `guarantee` name the sentence that does not hold, `finding` what was seen instead.
    """

    def __init__(self, finding: str) -> None:
        super().__init__(finding)
        self.finding = finding
        self.check = ""
        self.guarantee = ""

    def __str__(self) -> str:
        return f"{self.check} ({self.guarantee}): {self.finding}" if self.check else self.finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One sentence of the contract.

    `name` is the sentence in snake case. `guarantee` cites the numbered guarantees it serves, or
    the operation whose docstring states it. `needs` are the capabilities without which it says
    nothing: a check that needs none uses the six required operations only. `run` proves it on a
    fresh, opened, empty store, and raises `ConformanceFailure` where it does not hold.
    """

    name: str
    guarantee: str
    needs: frozenset[Capability]
    run: Callable[[Driver], Awaitable[None]]


def check(
    guarantee: str, needs: Iterable[Capability] = ()
) -> Callable[[Callable[[Driver], Awaitable[None]]], Check]:
    """Make a `Check` of a coroutine function, under the function's name."""

    def made(prove: Callable[[Driver], Awaitable[None]]) -> Check:
        name = prove.__name__

        async def run(store: Driver) -> None:
            try:
                await prove(store)
            except ConformanceFailure as failure:
                failure.check, failure.guarantee = name, guarantee
                raise

        return Check(name=name, guarantee=guarantee, needs=frozenset(needs), run=run)

    return made


def refuse(finding: str) -> NoReturn:
    """Fail the running check."""
    raise ConformanceFailure(finding)


def expect(actual: object, expected: object, what: str) -> None:
    """Fail the running check unless both are equal; `what` names the thing that was looked at."""
    if actual != expected:
        refuse(f"{what}: expected {_shown(expected)}, got {_shown(actual)}")


def expect_that(holds: bool, finding: str) -> None:
    """Fail the running check with `finding` unless the condition holds."""
    if not holds:
        refuse(finding)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 600 else f"{text[:500]} ... ({len(text)} characters)"
