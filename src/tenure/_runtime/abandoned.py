"""Puts the jobs of abandoned handlers back, for a process that ends at once.

A handler that cannot be interrupted outlives its worker, so its job is left to the lease: others
must not start it beside the first one. Where the process ends now, the handler ends with it.
"""

import asyncio
from collections.abc import Sequence

from tenure._runtime.report import Reporter
from tenure.clock import Clock
from tenure.driver import Capability, Driver
from tenure.errors import QueueError, StateTransitionError
from tenure.outcomes import Released
from tenure.types import Hold, Recorded

__all__ = ["put_back"]

_BUDGET = 0.5  # seconds
_OPERATION = "release_after_shutdown"


async def put_back(driver: Driver, holds: Sequence[Hold], reporter: Reporter, clock: Clock) -> None:
    """Release the holds, if the store answers at once; report those that stay with their lease."""
    if not holds or Capability.RELEASE not in driver.capabilities:
        return
    outcome = Released("worker shutdown")
    writing = asyncio.ensure_future(driver.record([(hold, outcome) for hold in holds]))
    if not await clock.wait(writing, _BUDGET):
        writing.cancel()
        return
    try:
        answers = writing.result()
    except QueueError as error:
        reporter.report(error)
        return
    for hold, answer in zip(holds, answers, strict=True):
        if answer is Recorded.FENCED or answer is Recorded.UNKNOWN:
            message = "its hold is no longer current; somebody else has the job"
            reporter.report(StateTransitionError(hold.job_id, _OPERATION, message))
