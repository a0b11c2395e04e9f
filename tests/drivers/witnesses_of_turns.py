"""Witnesses of whose turn it is: memory drivers that break the order of limited jobs, or a rate."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from tenure.drivers.memory.key_limits import KeyLimits
from tenure.standing import Limit
from tenure.states import State
from tenure.types import Answer, Move
from tests.drivers.witnesses import Witness

_SECOND = timedelta(seconds=1)
_TICK = timedelta(microseconds=1)


# --- order, and what becomes of those that wait -------------------------------------------------


class _InOrder(Witness):
    """Takes what is due in another order, or not all of it."""

    def chosen(self, due: list[Any], queue: str, now: datetime) -> list[Any]:
        return due

    def waiting(self) -> list[Any]:
        return [r for r in self._records.values() if r.job.state is State.PENDING]

    def _due(self, queue: str, now: datetime, names: frozenset[str] | None) -> Any:
        return self.chosen(super()._due(queue, now, names), queue, now)


class LimitedJobsGoLast(_InOrder):
    """Jobs without limits go before those that have any."""

    def chosen(self, due: list[Any], queue: str, now: datetime) -> list[Any]:
        return sorted(due, key=lambda record: (-record.job.priority, bool(record.job.limits)))


class SetsOfKeysOneByOne(_InOrder):
    """Of one priority, the jobs of one set of keys go before those of the next."""

    def chosen(self, due: list[Any], queue: str, now: datetime) -> list[Any]:
        return sorted(due, key=lambda record: (-record.job.priority, record.job.limits))


class FreedPlacesIgnorePriority(_InOrder):
    """Jobs with limits go in the order of their arrival."""

    def chosen(self, due: list[Any], queue: str, now: datetime) -> list[Any]:
        limited = iter(sorted((r for r in due if r.job.limits), key=lambda r: r.arrival))
        return [next(limited) if record.job.limits else record for record in due]


class ScheduledJobHoldsBackItsKey(_InOrder):
    """A job waits for those of its keys that go before it, though they are not due."""

    def chosen(self, due: list[Any], queue: str, now: datetime) -> list[Any]:
        heads = {r.job.limits: r for r in sorted(self.waiting(), key=_place, reverse=True)}
        return [r for r in due if not r.job.limits or heads[r.job.limits].job.run_at <= now]


class FreedPlaceIsOfOneQueue(_InOrder):
    """A freed place is kept for the job that has waited longest, wherever it is."""

    def chosen(self, due: list[Any], queue: str, now: datetime) -> list[Any]:
        def first(record: Any) -> bool:
            alike = [r for r in self.waiting() if r.job.limits == record.job.limits]
            return bool(record.job.queue == min(alike, key=_place).job.queue)

        return [record for record in due if not record.job.limits or first(record)]


class _Forgetful(_InOrder):
    """Forgets the other jobs of a queue and set of keys when one that waits goes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._forgotten: set[str] = set()

    def chosen(self, due: list[Any], queue: str, now: datetime) -> list[Any]:
        return [record for record in due if record.job.id not in self._forgotten]

    def gone(self, job_id: str, take: Callable[[], Answer]) -> Answer:
        record = self._records.get(job_id)
        before = record.job if record is not None else None
        answer = take()
        if before is not None and before.state is State.PENDING and before.limits:
            rest = [r.job for r in self.waiting() if r.job.id != job_id]
            where = before.queue, before.limits
            self._forgotten |= {job.id for job in rest if (job.queue, job.limits) == where}
        return answer


class CancelledJobForgetsTheRest(_Forgetful):
    """When a waiting job is cancelled nobody sees those behind it."""

    def _cancel(self, job_id: str, now: datetime) -> Answer:
        return self.gone(
            job_id, lambda: super(CancelledJobForgetsTheRest, self)._cancel(job_id, now)
        )


class DeletedJobForgetsTheRest(_Forgetful):
    """When a waiting job is deleted nobody sees those behind it."""

    def _delete(self, job_id: str, now: datetime) -> Answer:
        take = super()._delete
        return self.gone(job_id, lambda: take(job_id, now))


class MovedJobForgetsTheRest(_Forgetful):
    """When a waiting job is moved nobody sees those behind it."""

    def _move(self, item: Move, now: datetime) -> Answer:
        take = super()._move
        return self.gone(item.job_id, lambda: take(item, now))


def _place(record: Any) -> Any:
    return record.place()


# --- rates --------------------------------------------------------------------------------------


class _Inclusive(KeyLimits):
    def _rate_free_at(self, key: str, now: datetime) -> datetime:
        free = super()._rate_free_at(key, now - _TICK)
        return now if free == now - _TICK else free + _TICK


class RateWindowInclusive(Witness):
    """A claim counts when it was made just a second ago."""

    key_limits = _Inclusive


class _Calendar(KeyLimits):
    def _rate_free_at(self, key: str, now: datetime) -> datetime:
        rate, start = self._rate(key), now.replace(microsecond=0)
        made = sum(start <= at < start + _SECOND for at in self._claims.get(key, ()))
        return now if rate is None or made < rate else start + _SECOND


class RateOfCalendarSeconds(Witness):
    """A rate counts anew with each second of the clock."""

    key_limits = _Calendar


class _Returning(KeyLimits):
    def give_back(self, keys: Iterable[str]) -> None:
        keys = list(keys)
        super().give_back(keys)
        for key in keys:
            if self._claims.get(key):
                self._claims[key].popleft()


class EndGivesAClaimBack(Witness):
    """A claim does not count for its second when its hold has ended."""

    key_limits = _Returning


class _Future(KeyLimits):
    def _rate_free_at(self, key: str, now: datetime) -> datetime:
        rate = self._rate(key)
        recent = sorted(at for at in self._claims.get(key, ()) if at > now - _SECOND)
        return now if rate is None or len(recent) < rate else recent[-rate] + _SECOND


class FutureClaimsHoldTheRate(Witness):
    """A claim of the far future counts until its instant comes."""

    key_limits = _Future


class _ForgetfulOfClaims(KeyLimits):
    def forget(self, now: datetime) -> None:
        self._claims.clear()


class PruneForgetsClaims(Witness):
    """A prune drops the claims of the last second."""

    key_limits = _ForgetfulOfClaims


class _NewRate(KeyLimits):
    def put(self, limit: Limit) -> None:
        super().put(limit)
        self._claims.pop(limit.key, None)


class ChangedRateForgetsClaims(Witness):
    """A rate that is put again begins with no claims."""

    key_limits = _NewRate


class NextDueIgnoresRates(Witness):
    """`next_due` looks at due times alone."""

    def _claimable_at(self, record: Any, now: datetime) -> datetime | None:
        due: datetime = record.job.run_at
        return due


class NextDueAfterTheRate(Witness):
    """`next_due` waits until all claims of a rate are a second old."""

    def _claimable_at(self, record: Any, now: datetime) -> datetime | None:
        due = super()._claimable_at(record, now)
        late = due is not None and due > now and record.job.run_at <= now
        return due + _SECOND / 2 if due is not None and late else due
