"""The kit once more, each call made twice as if its first answer had been lost (I14).

    report = await conform(repeating(open_store), REPEATABLE)

`repeating` stands a `tenure.testing.faults.RepeatingDriver` before each store. A check that passes
without it must pass with it: `REPEATABLE` are all but those in `NOT_REPEATED`, which gives for each
why its calls are not to come twice. It excuses no driver from anything else.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType

from tenure.driver import Driver
from tenure.testing.conformance.catalog import CHECKS
from tenure.testing.conformance.check import Check
from tenure.testing.conformance.report import OpenStore
from tenure.testing.faults import RepeatingDriver

__all__ = ["NOT_REPEATED", "REPEATABLE", "repeating"]

NOT_REPEATED: Mapping[str, str] = MappingProxyType(
    {
        "a_repeated_claim_leaves_settled_and_foreign_holds_alone": (
            "it claims twice under one token, which the repeat of the second claim takes for one"
        ),
        "ticks_of_one_batch_are_judged_in_their_order": (
            "it fires a tick before the one that must precede it; in the repeat that one has passed"
        ),
    }
)

REPEATABLE: tuple[Check, ...] = tuple(check for check in CHECKS if check.name not in NOT_REPEATED)


def repeating(open_store: OpenStore) -> OpenStore:
    """The same stores, each behind a driver that makes every call twice."""

    @asynccontextmanager
    async def open_repeating() -> AsyncGenerator[Driver]:
        async with open_store() as store:
            yield RepeatingDriver(store)

    return open_repeating
