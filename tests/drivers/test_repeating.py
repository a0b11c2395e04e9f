"""The conformance kit through the faulty driver, and with every answer lost once (I14)."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

import pytest

from tenure.clock import SystemClock
from tenure.driver import Driver
from tenure.drivers.memory import MemoryDriver
from tenure.drivers.sqlite import SqliteDriver
from tenure.testing.conformance import CHECKS, NOT_REPEATED, REPEATABLE, conform, prove, repeating
from tenure.testing.faults import FaultyDriver
from tenure.types import Answer, Move
from tests.drivers.witnesses import Witness, opening


def memory() -> Driver:
    return MemoryDriver(clock=SystemClock())


def sqlite() -> Driver:
    return SqliteDriver(":memory:", clock=SystemClock())


each_driver = pytest.mark.parametrize("build", [memory, sqlite])


@each_driver
def test_a_faulty_driver_without_faults_conforms_as_the_one_behind_it(build: type[Driver]) -> None:
    report = asyncio.run(conform(opening(lambda: FaultyDriver(build()))))
    report.raise_for_failures()
    able = build().capabilities
    assert {result.check for result in report.skipped} == {c for c in CHECKS if c.needs - able}


@each_driver
def test_every_call_may_be_repeated(build: type[Driver]) -> None:
    report = asyncio.run(conform(repeating(opening(build)), REPEATABLE))
    report.raise_for_failures()
    assert len(report.passed) >= 300


@pytest.mark.parametrize("name", NOT_REPEATED)
def test_a_check_that_is_not_repeated_exists_and_fails_when_it_is(name: str) -> None:
    """One that passes has no reason to be left out."""
    [check] = [check for check in CHECKS if check.name == name]
    assert check not in REPEATABLE
    assert asyncio.run(prove(check, repeating(opening(memory)))).error is not None


# --- a witness: what the kit tells only when it repeats -------------------------------------------


class MovedOnce(Witness):
    """A job that is where a repeated move wants it is refused, as if somebody else had moved it."""

    async def move(self, items: Sequence[Move], *, now: datetime | None = None) -> Sequence[Answer]:
        there = [
            (record := self._records.get(item.job_id)) is not None
            and item.queue is not None
            and record.job.queue == item.queue
            for item in items
        ]
        answers = await super().move(items, now=now)
        return [Answer.LIVE if t else a for t, a in zip(there, answers, strict=True)]


def test_a_driver_that_takes_a_repeat_for_a_new_call_is_told() -> None:
    store = opening(lambda: MovedOnce(clock=SystemClock()))
    asyncio.run(conform(store)).raise_for_failures()
    assert asyncio.run(conform(repeating(store), REPEATABLE)).failed
