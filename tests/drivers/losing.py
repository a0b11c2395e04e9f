"""A network that fails a driver in one way after the other, for drivers of every kind of server."""

import asyncio
from collections.abc import Callable

import pytest

from tenure.driver import Driver
from tenure.errors import StoreUnavailable
from tenure.testing.faults import Relay
from tenure.types import NewJob

__all__ = ["lost_and_repeated"]


async def lost_and_repeated(driver: Driver, relay: Relay) -> list[bool]:
    """Let answers vanish, everything freeze, connections be cut and refused; repeat what failed.

    All jobs must be there once in the end. Whether each of the failures was ambiguous.
    """

    def refuse() -> None:
        relay.refuse()
        relay.cut()

    jobs = [NewJob(id=f"job-{n}", name="work") for n in range(4)]
    await driver.enqueue(jobs[:1])  # so that the server knows what is asked of it
    breaks: list[Callable[[], None]] = [relay.drop_replies, relay.freeze, refuse]
    ambiguous: list[bool] = []
    for number, break_off in enumerate(breaks, 2):
        break_off()
        with pytest.raises(StoreUnavailable) as caught:
            await driver.enqueue(jobs[:number])
        ambiguous.append(caught.value.ambiguous)
        relay.restore()
        await _resumed(driver)
        await driver.enqueue(jobs[:number])
    assert (await driver.counts()).pending == len(jobs)
    return ambiguous


async def _resumed(driver: Driver) -> None:
    async with asyncio.timeout(10.0):
        while True:
            try:
                await driver.counts()
            except StoreUnavailable:
                await asyncio.sleep(0.02)
            else:
                return
