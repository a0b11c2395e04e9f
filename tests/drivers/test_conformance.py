"""The conformance kit on each driver, and the kit's own promises: skips, needs, names."""

import asyncio
import inspect
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest

from tenure.clock import SystemClock
from tenure.driver import Capability, Driver, RecordItem
from tenure.drivers.memory import MemoryDriver
from tenure.drivers.sqlite import SqliteDriver
from tenure.errors import StoreUnavailable
from tenure.outcomes import Completed, Released
from tenure.standing import Fired, Tick
from tenure.testing import conformance
from tenure.testing.conformance import (
    CHECKS,
    Check,
    ConformanceFailure,
    conform,
    prove,
)
from tenure.testing.conformance.adapter import parametrize_checks, run_check
from tenure.types import Claim, ClaimRequest, Counts, Enqueued, Held, Hold, NewJob, Recorded
from tests.drivers.witnesses import Naming, opening

REQUIRED = ("open", "close", "enqueue", "claim", "record", "counts")


class Minimal(Driver):
    """The memory driver with all but the six required operations hidden, and no capability."""

    capabilities = frozenset[Capability]()

    def __init__(self) -> None:
        self.inner = MemoryDriver(clock=SystemClock())

    async def open(self) -> None:
        await self.inner.open()

    async def close(self) -> None:
        await self.inner.close()

    async def enqueue(
        self, jobs: Sequence[NewJob], *, now: datetime | None = None
    ) -> Sequence[Enqueued | Held]:
        for job in jobs:
            self.judge(job)
        return await self.inner.enqueue(jobs, now=now)

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        if request.names is not None:
            self.lacks(Capability.NAMES)
        return await self.inner.claim(request, now=now)

    async def record(
        self, items: Sequence[RecordItem], *, now: datetime | None = None
    ) -> Sequence[Recorded]:
        for _, outcome in items:
            if isinstance(outcome, Released):
                self.lacks(Capability.RELEASE)
            if getattr(outcome, "delay", None):
                self.lacks(Capability.DELAY)
        return await self.inner.record(items, now=now)

    async def counts(self, *, now: datetime | None = None) -> Counts:
        return await self.inner.counts(now=now)

    async def fire(self, ticks: Sequence[Tick], *, now: datetime | None = None) -> Sequence[Fired]:
        self.lacks(Capability.SCHEDULES)
        for tick in ticks:
            if tick.job is not None:
                self.judge(tick.job)
        return await self.inner.fire(ticks, now=now)

    def judge(self, job: NewJob) -> None:
        if job.at is not None or job.delay is not None:
            self.lacks(Capability.DELAY)
        if job.unique is not None:
            self.lacks(Capability.UNIQUE)
        if job.limits:
            self.lacks(Capability.LIMITS)

    def lacks(self, capability: Capability) -> None:
        """Called when something was used that only drivers with the capability must do."""
        if capability not in self.capabilities:
            raise AssertionError(f"used without being named: {capability}")


OPERATIONS = {
    Capability.EXTEND: ["extend"],
    Capability.RECLAIM: ["expired", "reclaim"],
    Capability.EXCHANGE: ["exchange"],
    Capability.NEXT_DUE: ["next_due"],
    Capability.OLDEST_DUE: ["oldest_due"],
    Capability.WAIT: ["wait"],
    Capability.KEEPER: ["keeper_handle"],
    Capability.PROGRESS: ["progress"],
    Capability.INSPECT: ["get", "list"],
    Capability.CONTROL: ["cancel", "retry", "delete", "move", "purge", "pause"],
    Capability.PRUNE: ["prune"],
    Capability.PRESENCE: ["report", "workers"],
    Capability.LIFELINE: ["lifeline", "shorten"],
    Capability.LIMITS: ["put_limit", "drop_limit", "limits"],
    Capability.HISTORY: ["history"],
    Capability.SCHEDULES: ["put_schedules", "drop_schedules", "pause_schedule", "schedules"],
    Capability.RESTORE: ["dump", "restore", "restore_schedules"],
}


def narrowed(needs: frozenset[Capability]) -> Driver:
    """A driver that can do what `needs` names, and that fails a check which uses anything else."""
    store = Minimal()
    if Capability.NAMES in needs:
        store.inner = Naming(clock=SystemClock())
    vars(store)["capabilities"] = needs
    for capability in needs & OPERATIONS.keys():
        vars(store).update((name, getattr(store.inner, name)) for name in OPERATIONS[capability])
    return store


# --- the drivers --------------------------------------------------------------------------------


@parametrize_checks
def test_memory(check: Check) -> None:
    run_check(check, opening(lambda: MemoryDriver(clock=SystemClock())))


@parametrize_checks
def test_sqlite_in_a_file(check: Check, tmp_path: Path) -> None:
    run_check(check, opening(lambda: SqliteDriver(str(tmp_path / "jobs.db"), clock=SystemClock())))


@parametrize_checks
def test_sqlite_in_memory(check: Check) -> None:
    run_check(check, opening(lambda: SqliteDriver(":memory:", clock=SystemClock())))


@parametrize_checks
def test_a_driver_with_nothing_but_what_a_check_needs(check: Check) -> None:
    """A check that passes here names every capability it uses."""
    run_check(check, opening(lambda: narrowed(check.needs)))


# --- the defaults of the contract ---------------------------------------------------------------


def test_the_default_exchange_returns_the_answers_with_the_error_of_the_claim() -> None:
    class CannotClaim(Minimal):
        async def claim(
            self, request: ClaimRequest, *, now: datetime | None = None
        ) -> Sequence[Claim]:
            raise StoreUnavailable("gone")

    async def main() -> None:
        store = CannotClaim()
        request = ClaimRequest(token="t", queues=(), limit=1, worker="w", lease=30.0)
        answer = await store.exchange([(Hold("nobody", 1, "t"), Completed())], request)
        assert answer.recorded == (Recorded.UNKNOWN,)
        assert answer.claims == ()
        assert isinstance(answer.error, StoreUnavailable)

    asyncio.run(main())


# --- the kit ------------------------------------------------------------------------------------


def test_a_driver_of_six_operations_conforms_with_skips_by_capability_only() -> None:
    report = asyncio.run(conform(opening(Minimal)))
    report.raise_for_failures()
    assert len(report.passed) >= 40
    assert {result.check for result in report.skipped} == {c for c in CHECKS if c.needs}
    for result in report.skipped:
        assert result.missing == result.check.needs
        assert all(str(capability) in result.reason for capability in result.missing)


def test_a_failure_cites_the_check_and_its_guarantee() -> None:
    class Forgetful(Minimal):
        async def enqueue(
            self, jobs: Sequence[NewJob], *, now: datetime | None = None
        ) -> Sequence[Enqueued | Held]:
            return [Enqueued.CREATED for _ in jobs]

    check = next(c for c in CHECKS if c.name == "a_claimed_job_is_not_claimed_again")
    result = asyncio.run(prove(check, opening(Forgetful)))
    assert isinstance(result.error, ConformanceFailure)
    assert str(result.error).startswith("a_claimed_job_is_not_claimed_again (I2): ")
    with pytest.raises(ConformanceFailure, match=r"\(I2\)"):
        run_check(check, opening(Forgetful))
    report = asyncio.run(conform(opening(Forgetful), [check]))
    with pytest.raises(ExceptionGroup, match="1 of 1 checks failed: a_claimed_job"):
        report.raise_for_failures()


def test_an_error_of_the_driver_fails_the_check() -> None:
    class Broken(Minimal):
        async def claim(
            self, request: ClaimRequest, *, now: datetime | None = None
        ) -> Sequence[Claim]:
            raise RuntimeError("out of order")

    report = asyncio.run(conform(opening(Broken)))
    assert {str(result.error) for result in report.failed} == {"out of order"}


def test_the_adapter_skips_by_capability_and_shows_it() -> None:
    check = next(c for c in CHECKS if c.needs == frozenset({Capability.PRUNE}))
    with pytest.raises(pytest.skip.Exception, match="no capability prune"):
        run_check(check, opening(Minimal))


def test_names_are_unique_sentences_and_guarantees_are_cited() -> None:
    names = [check.name for check in CHECKS]
    assert len(names) == len(set(names))
    operations = "|".join(name for name, _ in inspect.getmembers(Driver, inspect.isfunction))
    for check in CHECKS:
        assert re.fullmatch(r"[a-z]+(_[a-z]+){2,}", check.name)
        assert re.fullmatch(rf"I\d+( I\d+)*|({operations})\(\)", check.guarantee), check


def test_the_kit_names_no_driver_and_never_sleeps() -> None:
    for path in Path(conformance.__file__).parent.glob("*.py"):
        text = path.read_text(encoding="utf-8").lower()
        found = re.findall(r"sqlite|redis|postgres|memory|sleep\(|datetime\.now", text)
        assert not found, f"{path.name}: {found}"


def test_only_the_adapter_imports_pytest() -> None:
    folder = Path(conformance.__file__).parent
    importing = [p.name for p in folder.glob("*.py") if "import pytest" in p.read_text("utf-8")]
    assert importing == ["adapter.py"]
