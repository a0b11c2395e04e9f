"""What the history of each job must have, told from the calls and answers alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tenure.history import PastAttempt, tried
from tenure.outcomes import Outcome
from tenure.types import Hold

__all__ = ["HistoryLedger"]

_MOST = 100


@dataclass(frozen=True, slots=True)
class _Start:
    worker: str
    at: datetime


@dataclass(slots=True)
class HistoryLedger:
    """The attempts that ended without completing their job, and when each hold began.

    `touched` are the jobs whose history may have changed since it was compared last.
    """

    past: dict[str, list[PastAttempt]] = field(default_factory=dict[str, list[PastAttempt]])
    starts: dict[Hold, _Start] = field(default_factory=dict[Hold, _Start])
    touched: set[str] = field(default_factory=set[str])

    def claimed(self, hold: Hold, worker: str, now: datetime) -> None:
        self.starts[hold] = _Start(worker, now)

    def recorded(self, hold: Hold, attempt: int, outcome: Outcome, now: datetime) -> None:
        how = tried(outcome)
        if how is not None:
            self._add(hold, attempt, (how.outcome, how.kind, how.message), now)
        self.touched.add(hold.job_id)

    def reclaimed(self, hold: Hold, attempt: int, now: datetime) -> None:
        self._add(hold, attempt, ("stalled", "stalled", ""), now)

    def _add(self, hold: Hold, attempt: int, how: tuple[str, str, str], now: datetime) -> None:
        start = self.starts[hold]
        past = PastAttempt(
            attempt=attempt,
            serial=hold.serial,
            outcome=how[0],
            started_at=start.at,
            ended_at=now,
            worker=start.worker,
            kind=how[1],
            message=how[2],
        )
        self.past[hold.job_id] = [*self.past.get(hold.job_id, []), past][-_MOST:]
        self.touched.add(hold.job_id)

    def deleted(self, job_id: str) -> None:
        self.past.pop(job_id, None)
        self.touched.add(job_id)

    def check(self, job_id: str, found: Sequence[PastAttempt]) -> None:
        """This is the job's history."""
        assert len(found) <= _MOST, "I16: a history has no bound"
        assert list(found) == self.past.get(job_id, []), "history: what the outcomes and stalls say"
