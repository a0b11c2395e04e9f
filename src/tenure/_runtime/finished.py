"""How an attempt ended, on its way into the store."""

from tenure._runtime.progress import JobProgress
from tenure.errors import QueueError
from tenure.outcomes import Completed, Outcome
from tenure.types import Claim

__all__ = ["Finished"]


class Finished:
    """One outcome on its way into the store.

    `operation` is the write's name in errors; `error` is reported once the outcome was applied.
    `repeated` is set when an earlier try may have been applied. `within` is a completion that the
    handler wrote in a transaction of its own: where that was committed, it is the outcome. Of a
    handler that was called, `progress` is what it has said, to be written first.
    """

    __slots__ = (
        "claim",
        "error",
        "operation",
        "outcome",
        "progress",
        "repeated",
        "seconds",
        "within",
    )

    def __init__(
        self,
        claim: Claim,
        outcome: Outcome,
        operation: str,
        *,
        error: QueueError | None = None,
        seconds: float = 0.0,
        within: Completed | None = None,
        progress: JobProgress | None = None,
    ) -> None:
        self.progress = progress
        self.within = within
        self.claim = claim
        self.outcome = outcome
        self.operation = operation
        self.error = error
        self.seconds = seconds
        self.repeated = False
