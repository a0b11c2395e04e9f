"""Completions in a transaction of the handler's own: written there, checked afterwards.

Whether that transaction was committed is for the store to say: the job is looked at once more when
its handler has ended. Must not write on a connection of the worker's own.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from tenure.codec import encode
from tenure.driver import Capability, Driver
from tenure.errors import StateTransitionError, Unsupported
from tenure.outcomes import Completed
from tenure.states import State
from tenure.types import Claim, Recorded

__all__ = ["Completer", "NotCommitted"]


class NotCommitted(Exception):
    """The handler returned, and left the transaction of its completion uncommitted."""

    def __init__(self) -> None:
        super().__init__("complete_within() was called, but its transaction was not committed")


class Completer:
    """The store as `RunningJob.complete_within` and its check see it."""

    def __init__(self, driver: Driver, result_limit: int) -> None:
        self._driver = driver
        self._result_limit = result_limit

    async def complete(self, claim: Claim, connection: object, result: Any) -> Completed:
        """Write the completion in the transaction; with a blocking connection never suspends."""
        if Capability.WITHIN not in self._driver.capabilities:
            raise Unsupported("complete_within()")
        encoded = None
        if result is not None:
            encoded = encode(result, root="result", limit=self._result_limit)
        outcome = Completed(encoded)
        (answer,) = await self._driver.record_within([(claim.hold, outcome)], connection)
        if answer not in (Recorded.APPLIED, Recorded.REPEATED):
            raise StateTransitionError(
                claim.hold.job_id,
                "complete_within",
                "nothing was changed: the hold is not current, since the job was reclaimed and "
                "perhaps run again elsewhere; roll the transaction back",
            )
        return outcome

    async def committed(self, claims: Sequence[Claim]) -> list[bool]:
        """For each claim whether its completion is there, by what is committed."""
        return await asyncio.gather(*(self._is_committed(claim) for claim in claims))

    async def _is_committed(self, claim: Claim) -> bool:
        job = await self._driver.get(claim.hold.job_id)
        # A running job is never deleted: one that is gone had ended.
        return job is None or (job.serial == claim.hold.serial and job.state is State.COMPLETED)
