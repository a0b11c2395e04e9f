"""What became of one attempt on a bench, as a value."""

from typing import Any, Generic, TypeVar

from msgspec import Struct

from tenure.outcomes import Completed, Failed, Failure, Outcome, Retried
from tenure.types import Job

__all__ = ["Processed"]

R = TypeVar("R")


class Processed(Struct, Generic[R], frozen=True, kw_only=True):
    """What became of one attempt: its `outcome`, and the `job` as it is stored afterwards."""

    outcome: Outcome
    job: Job[Any]
    returned: R | None = None

    @property
    def result(self) -> R:
        """What the handler returned. Raises `AssertionError` where the attempt did not complete."""
        if not isinstance(self.outcome, Completed):
            why = self.failure.message if self.failure else repr(self.outcome)
            raise AssertionError(f"job {self.job.id} ({self.job.name}) did not complete: {why}")
        result: Any = self.returned
        return result  # type: ignore[no-any-return]  # None where its type is None

    @property
    def failure(self) -> Failure | None:
        """Why it failed, also where another attempt follows; None where it did not."""
        return self.outcome.failure if isinstance(self.outcome, Failed | Retried) else None
