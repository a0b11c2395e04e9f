"""Settles the jobs of abandoned handlers, for a process that ends at once.

A handler that cannot be interrupted outlives its worker, so its job is left to the lease: others
must not start it beside the first one. Where the process ends now, the handler ends with it: its
job is put back, or has timed out where it is past its limit, so that it cannot end one process
after another.
"""

import asyncio
from collections.abc import Sequence

from tenure._runtime.ending import Ending
from tenure._runtime.report import Reporter
from tenure.clock import Clock
from tenure.driver import Capability, Driver
from tenure.errors import QueueError, StateTransitionError
from tenure.types import Hold, Recorded

__all__ = ["settle_abandoned"]

# Seconds. Usually one write; a store that is slow for a moment, as a disk is that others fill, must
# not cost these jobs a whole lease. The process has three seconds of its own to leave.
_BUDGET = 2.0


async def settle_abandoned(
    driver: Driver,
    handlers: Sequence[tuple[Hold, Ending | None]],
    reporter: Reporter,
    clock: Clock,
) -> None:
    """Record the ends, if the store answers in time; report those that stay with their lease.

    Where there is none, nothing can be written: the lease is lost.
    """
    if Capability.RELEASE not in driver.capabilities:
        return
    abandoned = [(hold, ending) for hold, ending in handlers if ending is not None]
    if not abandoned:
        return
    items = [(hold, ending.outcome) for hold, ending in abandoned]
    writing = asyncio.ensure_future(driver.record(items))
    if not await clock.wait(writing, _BUDGET):
        writing.cancel()
        message = "the store did not answer in time; the job is left to its lease"
        for hold, ending in abandoned:
            reporter.report(StateTransitionError(hold.job_id, ending.operation, message))
        return
    try:
        answers = writing.result()
    except QueueError as error:
        reporter.report(error)
        return
    for (hold, ending), answer in zip(abandoned, answers, strict=True):
        if answer is Recorded.FENCED or answer is Recorded.UNKNOWN:
            message = "its hold is no longer current; somebody else has the job"
            reporter.report(StateTransitionError(hold.job_id, ending.operation, message))
        elif ending.error is not None:
            reporter.report(ending.error)
