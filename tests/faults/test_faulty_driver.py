"""`FaultyDriver`: faults as planned, calls counted, and what was planned and never happened."""

import asyncio
import inspect
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from tenure.clock import SystemClock
from tenure.driver import Capability, Driver
from tenure.drivers.memory import MemoryDriver
from tenure.errors import StoreError, StoreUnavailable
from tenure.testing import ManualClock
from tenure.testing.faults import Failing, FaultyDriver, Late, PassingDriver, Storm
from tenure.types import ClaimRequest, Hold, Kept, NewJob, QueueLimit


def made(clock: ManualClock | None = None) -> FaultyDriver:
    clock = clock or ManualClock()
    return FaultyDriver(MemoryDriver(clock=clock), clock=clock)


async def enqueue(driver: Driver, id: str) -> None:
    await driver.enqueue([NewJob(id=id, name="work")])


async def pending(driver: FaultyDriver) -> int:
    return (await driver.inner.counts()).pending


async def held(driver: FaultyDriver) -> Sequence[Hold]:
    await enqueue(driver.inner, "held")
    request = ClaimRequest(
        token="t", queues=(QueueLimit("default", 9),), limit=9, worker="w", lease=30.0
    )
    return [claim.hold for claim in await driver.inner.claim(request)]


# --- passing on ---------------------------------------------------------------------------------


def test_every_operation_and_every_trait_of_a_driver_is_passed_on() -> None:
    """One that is added to the contract and forgotten here would get the contract's default."""
    names = {name for cls in Driver.__mro__[:-2] for name in vars(cls) if name[0] != "_"}
    inner = MemoryDriver(clock=SystemClock())
    passing = PassingDriver(inner)
    assert names <= vars(PassingDriver).keys() | vars(passing).keys()
    for name in names - vars(passing).keys() - {"keeper_handle"}:
        assert inspect.iscoroutinefunction(getattr(passing, name)), name
        assert inspect.signature(getattr(passing, name)) == inspect.signature(getattr(inner, name))
    assert (passing.capabilities, passing.overlap) == (inner.capabilities, inner.overlap)


def test_capabilities_can_be_hidden() -> None:
    few = frozenset({Capability.DELAY})
    assert FaultyDriver(MemoryDriver(clock=SystemClock()), capabilities=few).capabilities == few


async def test_calls_are_listed_in_order_and_counted() -> None:
    driver = made()
    await enqueue(driver, "a")
    await driver.counts()
    await enqueue(driver, "b")
    assert driver.calls == ("enqueue", "counts", "enqueue")
    assert driver.count("enqueue") == 2
    assert driver.count("enqueue", "counts", "claim") == 3
    assert await pending(driver) == 2
    assert driver.befallen == ()


# --- failing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "ambiguous", "stored"),
    [("before", False, 0), ("after", True, 1), ("ambiguously", True, 0)],
)
async def test_a_call_fails_before_after_or_ambiguously(
    how: Any, ambiguous: bool, stored: int
) -> None:
    driver = made()
    driver.fail("enqueue", how=how)
    with pytest.raises(StoreUnavailable, match="a fault befell enqueue") as caught:
        await enqueue(driver, "a")
    assert caught.value.ambiguous is ambiguous
    assert await pending(driver) == stored
    await enqueue(driver, "a")  # the same again
    assert await pending(driver) == 1
    [befallen] = driver.befallen
    assert (befallen.operation, befallen.number, befallen.fault) == ("enqueue", 1, Failing(how))


async def test_a_plan_counts_from_when_it_was_made_and_befalls_so_many_calls() -> None:
    driver = made()
    await driver.counts()
    driver.fail("counts", on=2, times=2)
    failed: list[bool] = []
    for _ in range(5):
        try:
            await driver.counts()
        except StoreUnavailable:
            failed.append(True)
        else:
            failed.append(False)
    assert failed == [False, True, True, False, False]
    assert [befallen.number for befallen in driver.befallen] == [3, 4]


async def test_operations_of_one_plan_are_counted_together() -> None:
    driver = made()
    driver.fail("counts", "get", on=2)
    await driver.counts()
    with pytest.raises(StoreUnavailable):
        await driver.get("a")
    await driver.counts()


async def test_a_failure_may_be_any_error() -> None:
    driver = made()
    error = StoreError("no")
    driver.fail("enqueue", how="after", error=error)
    with pytest.raises(StoreError) as caught:
        await enqueue(driver, "a")
    assert caught.value is error
    assert await pending(driver) == 1


async def test_what_was_planned_and_did_not_happen_can_be_asked_for() -> None:
    driver = made()
    never = driver.fail("record")
    partly = driver.fail("counts", times=2)
    always = driver.fail("get", times=None)
    assert list(driver.unfired) == [never, partly, always]
    assert "record from call 1" in repr(never)
    with pytest.raises(StoreUnavailable):
        await driver.counts()
    with pytest.raises(StoreUnavailable):
        await driver.get("a")
    assert list(driver.unfired) == [never, partly]
    assert (never.fired, partly.fired, always.fired) == (0, 1, 1)
    partly.lift()
    await driver.counts()
    assert list(driver.unfired) == [never, partly]


@pytest.mark.parametrize("operations", [(), ("recrod",)])
def test_an_operation_that_no_driver_has_is_refused(operations: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"at least one|did you mean 'record'"):
        made().fail(*operations)


# --- late and frozen ----------------------------------------------------------------------------


@pytest.mark.parametrize(("when", "stored"), [("before", 0), ("after", 1)])
async def test_a_delay_goes_by_the_clock_before_the_store_is_reached_or_after(
    when: Any, stored: int
) -> None:
    clock = ManualClock()
    driver = made(clock)
    driver.delay("enqueue", seconds=5.0, when=when, times=1)
    call = asyncio.ensure_future(enqueue(driver, "a"))
    await clock.advance(4.9)
    assert (call.done(), await pending(driver)) == (False, stored)
    await clock.advance(0.1)
    await call
    await enqueue(driver, "b")
    assert clock.monotonic() == 5.0


@pytest.mark.parametrize(("when", "stored"), [("before", 0), ("after", 2)])
async def test_frozen_calls_wait_until_they_are_thawed(when: Any, stored: int) -> None:
    clock = ManualClock()
    driver = made(clock)
    freeze = driver.freeze("enqueue", when=when)
    calls = [asyncio.ensure_future(enqueue(driver, id)) for id in "ab"]
    await clock.advance(1e6)
    assert freeze.holding == 2
    assert await pending(driver) == stored
    freeze.thaw()
    await asyncio.gather(*calls)
    await enqueue(driver, "c")
    assert (freeze.holding, await pending(driver), driver.unfired) == (0, 3, ())


async def test_a_frozen_call_that_is_cancelled_waits_no_more() -> None:
    driver = made()
    freeze = driver.freeze("counts")
    call = asyncio.ensure_future(driver.counts())
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call])
    assert (call.cancelled(), freeze.holding) == (True, 0)


async def test_closing_thaws_what_is_frozen() -> None:
    driver = made()
    driver.freeze("counts")
    call = asyncio.ensure_future(driver.counts())
    await asyncio.sleep(0)
    await driver.close()
    assert (await call).pending == 0


async def test_several_plans_befall_one_call() -> None:
    clock = ManualClock()
    driver = made(clock)
    driver.delay("enqueue", seconds=1.0)
    driver.delay("enqueue", seconds=2.0, when="after")
    driver.fail("enqueue", how="after")
    call = asyncio.ensure_future(enqueue(driver, "a"))
    await clock.advance(2.9)
    assert not call.done()
    await clock.advance(0.1)
    with pytest.raises(StoreUnavailable):
        await call
    driver.calm()
    await enqueue(driver, "b")
    assert clock.monotonic() == 3.0


# --- the keeper's thread ------------------------------------------------------------------------


async def test_faults_befall_the_keeper_in_its_own_thread() -> None:
    clock = ManualClock()
    driver = made(clock)
    holds = await held(driver)
    answers: list[object] = []
    go = threading.Event()

    def keep() -> None:
        keeper = driver.keeper_handle()
        for _ in range(4):
            try:
                answers.append(list(keeper.extend(holds, 60.0)))
            except StoreUnavailable as error:
                answers.append(error.ambiguous)
        keeper.close()
        go.set()

    driver.fail("keeper.extend", how="before")
    driver.fail("keeper.extend", on=2, how="after")
    driver.delay("keeper.extend", seconds=5.0, on=3, times=1)
    freeze = driver.freeze("keeper.extend", on=4)
    thread = clock.spawn("tenure-test-keeper", keep)
    await clock.settle()
    assert answers == [False, True]
    await clock.advance(5.0)
    assert answers == [False, True, [Kept.KEPT]]
    assert freeze.holding == 1
    freeze.thaw()
    await asyncio.to_thread(thread.join, 10.0)
    assert answers[3:] == [[Kept.KEPT]]
    assert driver.count("keeper.extend") == 4
    assert driver.unfired == ()


# --- storms -------------------------------------------------------------------------------------


async def outcomes(storm: Storm) -> list[str]:
    clock = ManualClock()
    driver = FaultyDriver(MemoryDriver(clock=clock), clock=clock, storm=storm)
    seen: list[str] = []
    for number in range(60):
        call = asyncio.ensure_future(enqueue(driver, f"{number}"))
        await clock.advance(storm.longest)
        try:
            await call
        except StoreUnavailable as error:
            seen.append(str(error))
        else:
            seen.append("done")
    return seen


async def test_a_storm_is_the_same_for_the_same_seed_and_strikes_in_every_way() -> None:
    first = await outcomes(Storm(7))
    assert first == await outcomes(Storm(7))
    assert first != await outcomes(Storm(8))
    assert len(set(first)) == 4


def test_a_storm_strikes_about_as_often_as_it_says_and_spares_what_it_is_to_spare() -> None:
    storm = Storm(1, failing=0.5, late=0.1, longest=3.0, spares=frozenset({"get"}))
    faults = [fault for number in range(1000) for fault in storm.faults("claim", number)]
    late = [fault for fault in faults if isinstance(fault, Late)]
    assert 400 < len(faults) - len(late) < 600
    assert 50 < len(late) < 150
    assert all(0.0 <= fault.seconds <= 3.0 for fault in late)
    assert not any(storm.faults("get", number) for number in range(1000))


async def test_a_storm_can_be_ended() -> None:
    driver = FaultyDriver(MemoryDriver(clock=SystemClock()), storm=Storm(1, failing=1.0, late=0.0))
    with pytest.raises(StoreUnavailable):
        await driver.counts()
    driver.calm()
    await driver.counts()
