"""Witnesses of histories and schedules: memory drivers that each break one thing of them."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from tenure.driver import RecordItem
from tenure.drivers.memory.schedule_book import ScheduleBook
from tenure.history import PastAttempt
from tenure.outcomes import Completed, Outcome, Released, Retried, Snoozed
from tenure.standing import Fired, NewSchedule, Schedules, Tick
from tenure.types import Answer, Job, ManualRetry, Recorded
from tests.drivers.witnesses import Witness

# --- histories ----------------------------------------------------------------------------------


class _Kept(Witness):
    """Adds to the history what does not belong there."""

    kinds: tuple[type[Outcome], ...] = ()

    def applied(self, before: Job[bytes], outcome: Outcome, now: datetime) -> None:
        if isinstance(outcome, self.kinds):
            record = self._records[before.id]
            past = PastAttempt(
                attempt=before.attempt,
                serial=before.serial,
                outcome=type(outcome).__name__.lower(),
                started_at=now,
                ended_at=now,
                worker="",
            )
            record.history = [*record.history, past]


class CompletionKept(_Kept):
    """A history has the attempt that completed its job."""

    kinds = (Completed,)


class SnoozeKept(_Kept):
    """A history grows with each snooze."""

    kinds = (Snoozed,)


class ReleaseKept(_Kept):
    """A history grows with each release."""

    kinds = (Released,)


class _Telling(Witness):
    """Shows the history in another way."""

    def told(self, history: Sequence[PastAttempt], job: Job[bytes] | None) -> Sequence[PastAttempt]:
        return history

    async def history(self, job_id: str) -> Sequence[PastAttempt]:
        record = self._records.get(job_id)
        return self.told(await super().history(job_id), record.job if record else None)


class HistoryNewestFirst(_Telling):
    """A history begins with the newest attempt."""

    def told(self, history: Sequence[PastAttempt], job: Job[bytes] | None) -> Sequence[PastAttempt]:
        return history[::-1]


class StallsNotKept(_Telling):
    """A history leaves out what a reclaim ended."""

    def told(self, history: Sequence[PastAttempt], job: Job[bytes] | None) -> Sequence[PastAttempt]:
        return [past for past in history if past.outcome != "stalled"]


class StartedAtTheDispatch(_Telling):
    """A history takes the dispatch for the claim."""

    def told(self, history: Sequence[PastAttempt], job: Job[bytes] | None) -> Sequence[PastAttempt]:
        return [replace(past, started_at=job.created_at) for past in history if job]


class WorkerForgotten(_Telling):
    """A history does not say whose attempt it was."""

    def told(self, history: Sequence[PastAttempt], job: Job[bytes] | None) -> Sequence[PastAttempt]:
        return [replace(past, worker="") for past in history]


class BytesOfAMessageCounted(_Telling):
    """A message is cut to a thousand bytes."""

    def told(self, history: Sequence[PastAttempt], job: Job[bytes] | None) -> Sequence[PastAttempt]:
        cut = [past.message.encode()[:1000].decode(errors="ignore") for past in history]
        return [replace(p, message=text) for p, text in zip(history, cut, strict=True)]


class HistoryUnbounded(Witness):
    """A history keeps every attempt."""

    def _settle(self, item: RecordItem, now: datetime) -> Recorded:
        record = self._records.get(item[0].job_id)
        before = record.history if record else []
        answer = super()._settle(item, now)
        if record is not None and len(before) >= 100:
            record.history = [*before, *record.history[-1:]]
        return answer


class OldestAttemptsKept(Witness):
    """A history keeps the first hundred attempts."""

    def _settle(self, item: RecordItem, now: datetime) -> Recorded:
        record = self._records.get(item[0].job_id)
        before = record.history if record else []
        answer = super()._settle(item, now)
        if record is not None and len(before) >= 100:
            record.history = before
        return answer


class HistoryOutlivesTheJob(Witness):
    """The history of a deleted or pruned job stays, for whoever gets its id."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._left: dict[str, Sequence[PastAttempt]] = {}

    def _delete(self, job_id: str, now: datetime) -> Answer:
        record = self._records.get(job_id)
        answer = super()._delete(job_id, now)
        if answer is Answer.DONE and record is not None:
            self._left[job_id] = record.history
        return answer

    async def history(self, job_id: str) -> Sequence[PastAttempt]:
        return [*self._left.get(job_id, ()), *await super().history(job_id)]


class HistoryForgottenByARetry(Witness):
    """A manual retry begins a new history."""

    def _retry(self, item: ManualRetry, now: datetime) -> Answer:
        answer = super()._retry(item, now)
        if answer is Answer.DONE:
            self._records[item.job_id].history = []
        return answer


class AnyOutcomeAdds(Witness):
    """A history gets an outcome that was not applied."""

    def _settle(self, item: RecordItem, now: datetime) -> Recorded:
        answer = super()._settle(item, now)
        record = self._records.get(item[0].job_id)
        if record is not None and answer is not Recorded.APPLIED and record.history:
            record.history = [*record.history, record.history[-1]]
        return answer


class FailureUnderAWishNotKept(Witness):
    """A history leaves out an attempt that failed when its job was asked to cancel."""

    def applied(self, before: Job[bytes], outcome: Outcome, now: datetime) -> None:
        if before.cancel_requested and isinstance(outcome, Retried):
            record = self._records[before.id]
            record.history = record.history[:-1]


# --- schedules ----------------------------------------------------------------------------------


class _NoCompare(ScheduleBook):
    def pass_tick(self, tick: Tick, now: datetime) -> Fired:
        known = self._schedules.get(tick.schedule_id)
        if known is not None:
            tick = replace(tick, previous=known.last)
        return super().pass_tick(tick, now)


class FireWithoutCompare(Witness):
    """`fire` does not ask for the last tick."""

    book = _NoCompare


class _NoRevision(ScheduleBook):
    def pass_tick(self, tick: Tick, now: datetime) -> Fired:
        known = self._schedules.get(tick.schedule_id)
        if known is not None:
            tick = replace(tick, revision=known.revision)
        return super().pass_tick(tick, now)


class FireIgnoresTheRevision(Witness):
    """`fire` does not ask for the revision."""

    book = _NoRevision


class _NoPause(ScheduleBook):
    def pass_tick(self, tick: Tick, now: datetime) -> Fired:
        known = self._schedules.get(tick.schedule_id)
        if known is not None:
            self._schedules[known.id] = replace(known, paused=False)
        return super().pass_tick(tick, now)


class FireIgnoresThePause(Witness):
    """`fire` does not ask whether the schedule is paused."""

    book = _NoPause


class _Early(ScheduleBook):
    def pass_tick(self, tick: Tick, now: datetime) -> Fired:
        return super().pass_tick(tick, max(now, tick.instant))


class EarlyTickFires(Witness):
    """`fire` does not compare the instant with its clock."""

    book = _Early


class _Late(ScheduleBook):
    def pass_tick(self, tick: Tick, now: datetime) -> Fired:
        known = self._schedules.get(tick.schedule_id)
        exact = known is not None and tick.previous == known.last and tick.instant == now
        return Fired.EARLY if exact else super().pass_tick(tick, now)


class TickEarlyAtItsInstant(Witness):
    """A tick fires only when its instant is past."""

    book = _Late


class _Milliseconds(ScheduleBook):
    def pass_tick(self, tick: Tick, now: datetime) -> Fired:
        known = self._schedules.get(tick.schedule_id)
        if known is not None and abs((known.last - tick.previous).total_seconds()) < 0.001:
            tick = replace(tick, previous=known.last)
        return super().pass_tick(tick, now)


class TicksComparedByMilliseconds(Witness):
    """`fire` takes two last ticks for the same that differ by microseconds."""

    book = _Milliseconds


class LastTickShownInSeconds(Witness):
    """`schedules` cuts the last tick to seconds."""

    async def schedules(self, *, now: datetime | None = None) -> Schedules:
        found = await super().schedules(now=now)
        cut = [replace(s, last=s.last.replace(microsecond=0)) for s in found.items]
        return replace(found, items=cut)


class FireInTwoSteps(Witness):
    """`fire` compares first and passes the instant later, and others come in between."""

    async def fire(self, ticks: Sequence[Tick], *, now: datetime | None = None) -> Sequence[Fired]:
        found = {s.id: s.last for s in (await self.schedules()).items}
        await asyncio.sleep(0)
        seen = {s.id: s.last for s in (await self.schedules()).items}
        late = [
            replace(tick, previous=seen[tick.schedule_id])
            if found.get(tick.schedule_id) == tick.previous
            else tick
            for tick in ticks
        ]
        return await super().fire(late, now=now)


class FireComparesOnceForABatch(Witness):
    """Of several ticks of one schedule in a batch only the first may fire."""

    async def fire(self, ticks: Sequence[Tick], *, now: datetime | None = None) -> Sequence[Fired]:
        answers: list[Fired] = []
        done: set[str] = set()
        for tick in ticks:
            if tick.schedule_id in done:
                answers.append(Fired.LOST)
                continue
            answers += await super().fire([tick], now=now)
            done.add(tick.schedule_id)
        return answers


class KnownIdStopsTheTick(Witness):
    """An instant whose job is known already does not pass."""

    def _fire(self, tick: Tick, now: datetime) -> Fired:
        known = tick.job is not None and self._known(tick.job, now) is not None
        return Fired.LOST if known else super()._fire(tick, now)


class HeldKeyStopsTheTick(Witness):
    """An instant whose job's key is held does not pass."""

    def _fire(self, tick: Tick, now: datetime) -> Fired:
        held = tick.job is not None and self._held(tick.job, now) is not None
        return Fired.LOST if held else super()._fire(tick, now)


class _KeepsLast(ScheduleBook):
    def put(self, new: NewSchedule, now: datetime) -> None:
        known = self._schedules.get(new.id)
        super().put(new, now)
        if known is not None:
            self._schedules[new.id] = replace(self._schedules[new.id], last=known.last)


class ChangedDefinitionKeepsLast(Witness):
    """With another definition a schedule still has the ticks of the old one."""

    book = _KeepsLast


class _Resumes(ScheduleBook):
    def put(self, new: NewSchedule, now: datetime) -> None:
        super().put(new, now)
        self._schedules[new.id] = replace(self._schedules[new.id], paused=False)


class ChangedDefinitionResumes(Witness):
    """A paused schedule runs again when it is put again."""

    book = _Resumes


class _Anew(ScheduleBook):
    def put(self, new: NewSchedule, now: datetime) -> None:
        known = self._schedules.get(new.id)
        if known is not None:
            self._schedules[new.id] = replace(known, definition=b"none of these")
        super().put(new, now)


class PutAgainBeginsAnew(Witness):
    """A schedule put again with its definition begins anew."""

    book = _Anew


class _NewRevision(ScheduleBook):
    def put(self, new: NewSchedule, now: datetime) -> None:
        super().put(new, now)
        self._schedules[new.id] = replace(self._schedules[new.id], revision=new.revision)


class PutAgainTakesTheRevision(Witness):
    """A schedule put again with its definition gets the new revision."""

    book = _NewRevision


class _OldTicks(ScheduleBook):
    def pause(self, schedule_id: str, paused: bool, now: datetime) -> bool:
        known = self._schedules.get(schedule_id)
        answer = super().pause(schedule_id, paused, now)
        if known is not None:
            self._schedules[schedule_id] = replace(known, paused=paused)
        return answer


class ResumeFiresWhatFellIntoThePause(Witness):
    """A resumed schedule goes on with the ticks of its pause."""

    book = _OldTicks


class _EveryResume(ScheduleBook):
    def pause(self, schedule_id: str, paused: bool, now: datetime) -> bool:
        known = self._schedules.get(schedule_id)
        if known is not None:
            self._schedules[schedule_id] = replace(known, paused=True)
        return super().pause(schedule_id, paused, now)


class EveryResumeMovesTheLastTick(Witness):
    """Resuming a schedule that is not paused drops the ticks until now."""

    book = _EveryResume


class _Remembering(ScheduleBook):
    def __init__(self) -> None:
        super().__init__()
        self._dropped: dict[str, Any] = {}

    def drop(self, schedule_id: str) -> bool:
        if schedule_id in self._schedules:
            self._dropped[schedule_id] = self._schedules[schedule_id]
        return super().drop(schedule_id)

    def put(self, new: NewSchedule, now: datetime) -> None:
        if new.id in self._dropped:
            self._schedules[new.id] = self._dropped.pop(new.id)
        super().put(new, now)


class DroppedScheduleComesBack(Witness):
    """A schedule that was dropped and put again goes on where it was."""

    book = _Remembering


class SchedulesInTheOrderOfArrival(Witness):
    """`schedules` does not sort."""

    async def schedules(self, *, now: datetime | None = None) -> Schedules:
        found = await super().schedules(now=now)
        book = self._schedules._schedules  # pyright: ignore[reportPrivateUsage]
        return replace(found, items=list(book.values()))


class TickWithoutItsJob(Witness):
    """An instant passes, and its job is forgotten."""

    def _fire(self, tick: Tick, now: datetime) -> Fired:
        return super()._fire(replace(tick, job=None), now)
