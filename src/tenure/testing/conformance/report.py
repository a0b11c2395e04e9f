"""Runs checks against a store, one fresh store for each, and reports what came of them."""

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from tenure.driver import Capability, Driver
from tenure.testing.conformance.catalog import CHECKS
from tenure.testing.conformance.check import Check

__all__ = ["OpenStore", "Report", "Result", "conform", "prove"]

OpenStore = Callable[[], AbstractAsyncContextManager[Driver]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of one check.

    `missing` are the capabilities for want of which it was skipped, `error` why it failed: a
    `ConformanceFailure`, or whatever else the driver raised. With neither it passed.
    """

    check: Check
    missing: frozenset[Capability] = frozenset()
    error: Exception | None = None

    @property
    def reason(self) -> str:
        """Why it was skipped or failed, for people; empty when it passed."""
        if self.missing:
            return f"the driver has no capability {', '.join(sorted(self.missing))}"
        return "" if self.error is None else f"{type(self.error).__name__}: {self.error}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The results of a run, in the order of the checks."""

    results: tuple[Result, ...]

    @property
    def passed(self) -> tuple[Result, ...]:
        return tuple(r for r in self.results if r.error is None and not r.missing)

    @property
    def failed(self) -> tuple[Result, ...]:
        return tuple(r for r in self.results if r.error is not None)

    @property
    def skipped(self) -> tuple[Result, ...]:
        return tuple(r for r in self.results if r.missing)

    def raise_for_failures(self) -> None:
        """Raise an `ExceptionGroup` of the errors, if any check failed."""
        failed = self.failed
        if failed:
            names = ", ".join(result.check.name for result in failed)
            raise ExceptionGroup(
                f"{len(failed)} of {len(self.results)} checks failed: {names}",
                [result.error for result in failed if result.error is not None],
            )


async def prove(check: Check, open_store: OpenStore) -> Result:
    """Run one check on a fresh store, or skip it for the capabilities that the driver lacks."""
    try:
        async with open_store() as store:
            missing = check.needs - store.capabilities
            if missing:
                return Result(check=check, missing=missing)
            await check.run(store)
    except Exception as error:  # whatever a driver raises is what the report is about
        return Result(check=check, error=error)
    return Result(check=check)


async def conform(open_store: OpenStore, checks: Iterable[Check] = CHECKS) -> Report:
    """Run the checks one after the other, each on a fresh store, and report what came of them."""
    return Report(results=tuple([await prove(check, open_store) for check in checks]))
