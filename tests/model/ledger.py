"""What must be true of a store, told from the calls and answers alone: the plain oracle.

It does not know how any driver works. `now` is the instant of the call that is looked at, `before`
the jobs as they were stored just before it, in the order of arrival.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from msgspec.structs import replace

from tenure.driver import RecordItem
from tenure.outcomes import Completed, Failed, Failure, Retried, settle
from tenure.standing import Fired, Tick
from tenure.states import TERMINAL, TRANSITIONS, State
from tenure.types import (
    Answer,
    Claim,
    ClaimRequest,
    Enqueued,
    Held,
    Hold,
    Job,
    Kept,
    ManualRetry,
    NewJob,
    Recorded,
)
from tests.model.histories import HistoryLedger
from tests.model.keys import KeyLedger, due, put_off
from tests.model.limits import LimitLedger, Places
from tests.model.schedules import ScheduleLedger

__all__ = ["Ledger", "View"]

View = Mapping[str, Job[bytes]]

_MINUTE = timedelta(minutes=1)


@dataclass(slots=True)
class Ledger:
    """Jobs that were accepted, holds that are current, results that were recorded.

    `accepted` has each job as it was dispatched; `payloads` what it carries by now.
    """

    accepted: dict[str, NewJob] = field(default_factory=dict[str, NewJob])
    payloads: dict[str, bytes] = field(default_factory=dict[str, bytes])
    gone: dict[str, datetime] = field(default_factory=dict[str, datetime])
    holds: dict[str, Hold] = field(default_factory=dict[str, Hold])
    ends: dict[str, datetime] = field(default_factory=dict[str, datetime])
    leases: dict[str, float] = field(default_factory=dict[str, float])
    results: dict[str, bytes | None] = field(default_factory=dict[str, bytes | None])
    errors: dict[str, Failure | None] = field(default_factory=dict[str, Failure | None])
    settled: dict[str, RecordItem] = field(default_factory=dict[str, RecordItem])
    paused: set[str] = field(default_factory=set[str])
    keys: KeyLedger = field(default_factory=KeyLedger)
    limits: LimitLedger = field(default_factory=LimitLedger)
    histories: HistoryLedger = field(default_factory=HistoryLedger)
    schedules: ScheduleLedger = field(default_factory=ScheduleLedger)

    # --- calls ----------------------------------------------------------------------------------

    def enqueued(
        self,
        jobs: Sequence[NewJob],
        answers: Sequence[Enqueued | Held],
        before: View,
        after: View,
        now: datetime,
    ) -> None:
        """I5, I8, I15: all that is accepted is stored; with a duplicate nothing is."""
        assert len(answers) == len(jobs)
        refused = Enqueued.DUPLICATE in answers
        assert not refused or after == before, "I15: a refused batch left a trace"
        right = dict(before)
        for job, answer in zip(jobs, answers, strict=True):
            if job.id in before:
                same = self.accepted[job.id] == job
                assert answer is (Enqueued.CREATED if same else Enqueued.DUPLICATE), "I14: content"
            elif not self._remembered(job.id, now):
                held = self.keys.holder(job.unique, now)
                assert answer == (held or Enqueued.CREATED), "I8: held, or not, as the key is"
                if not refused:
                    self._dispatched(job, right, after, now)
        self._check_dispatched(right, after)

    def fired(
        self,
        ticks: Sequence[Tick],
        answers: Sequence[Fired],
        before: View,
        after: View,
        now: datetime,
    ) -> None:
        """I13: each tick that fired made its one job, or met one that was there."""
        self.schedules.passed(ticks, answers, now)
        right = dict(before)
        for tick, answer in zip(ticks, answers, strict=True):
            if answer is not Fired.FIRED or tick.job is None:
                continue
            if tick.job.id not in right and not self._remembered(tick.job.id, now):
                assert tick.job.id in after or self.keys.holder(tick.job.unique, now), (
                    "I13: an instant has passed and its job is not there"
                )
                self._dispatched(tick.job, right, after, now)
        self._check_dispatched(right, after)

    def _dispatched(
        self, job: NewJob, right: dict[str, Job[bytes]], after: View, now: datetime
    ) -> None:
        """A job of an unknown id: stored, or refused after what its mode does to the holder."""
        held = self.keys.holder(job.unique, now)
        if held is not None:
            put_off(right, job, held, now)
            return
        assert job.id in after, "I5: what was accepted is not stored"
        self.accepted[job.id] = job
        self.results[job.id] = self.errors[job.id] = None
        self.keys.taken(job.id, job.unique, now)
        right[job.id] = replace(after[job.id], payload=job.payload, run_at=due(job, now))

    def _check_dispatched(self, right: View, after: View) -> None:
        assert list(after) == list(right), "I11: what was stored, and in which order"
        for job_id, job in right.items():
            assert after[job_id].run_at == job.run_at, "I8: the due time of a job, or of a holder"
            self.payloads[job_id] = job.payload

    def _remembered(self, job_id: str, now: datetime) -> bool:
        """Whether the id is known of a job that was deleted."""
        return job_id in self.gone and now < self.gone[job_id] + _MINUTE

    def retried(
        self, items: Sequence[ManualRetry], answers: Sequence[Answer], before: View, now: datetime
    ) -> None:
        """I8: a job that ended waits again, unless another one has its key by now."""
        assert len(answers) == len(items)
        waiting: set[str] = set()
        for item, answer in zip(items, answers, strict=True):
            job = before.get(item.job_id)
            if job is None or job.id in waiting or item.serial not in (None, job.serial):
                continue
            if job.state in (State.FAILED, State.CANCELLED):
                throttled = job.unique is not None and job.unique.mode == "throttle"
                unique = None if throttled else job.unique
                held = self.keys.holder(unique, now)
                right = Answer.DONE if held is None else Answer.HELD
                assert answer is right, "I8: a manual retry, and whether its key is held"
                if held is None:
                    self.keys.taken(job.id, unique, now)
                    waiting.add(job.id)

    def claimed(
        self, request: ClaimRequest, claims: Sequence[Claim], before: View, now: datetime
    ) -> None:
        """I2, I11: due jobs that nobody holds, in order, and first what the token holds already."""
        ids = [claim.job.id for claim in claims]
        places = self._places()
        for claim in claims:
            if claim.job.id not in self.holds:
                keys = self.accepted[claim.job.id].limits
                assert not places.full(keys, now), "limits: claimed beyond the limit of a key"
                places.take(keys, now)
        right = self._right_claim(request, before, now)
        own = [job_id for job_id in right if job_id in self.holds]
        assert ids == right or (own and ids == own), "I11: the jobs, and their order"
        for claim in claims:
            job, hold = before[claim.job.id], claim.hold
            held = self.holds.get(job.id)
            assert (hold.job_id, hold.token) == (job.id, request.token)
            assert claim.job.payload == self.payloads[job.id], "I10"
            assert claim.damage is None
            if held is not None:
                assert request.again, "I2: a job that is held was claimed"
                assert held == hold, "I2: a job that is held was given another hold"
            else:
                assert job.state is State.PENDING, "I1"
                assert hold.serial == job.serial + 1, "I3: the serial grows by one"
                assert claim.attempt == job.attempt + 1, "I4: a start counts once"
                assert claim.lease == request.lease
                self.holds[job.id] = hold
                self._leased(job.id, request.lease, now)
                self.keys.started(job)
                self.histories.claimed(hold, request.worker, now)
        self.limits.claims = places.claims

    def _places(self) -> Places:
        """What counts against the limits now."""
        return self.limits.places(self.accepted[job_id].limits for job_id in self.holds)

    def next_due(self, waiting: Sequence[Job[bytes]], now: datetime) -> datetime | None:
        """The latest instant that `next_due` may say while these jobs wait."""
        places = self._places()
        due = {(job.queue, job.priority, job.limits) for job in waiting if job.run_at <= now}
        times = [
            max(job.run_at, free)
            for job in waiting
            if job.run_at <= now
            or not job.limits
            or (job.queue, job.priority, job.limits) not in due
            if (free := places.free_at(job.limits, now)) is not None
        ]
        return min((time for time in times if time > now), default=None)

    def _right_claim(self, request: ClaimRequest, before: View, now: datetime) -> list[str]:
        arrival = {job_id: place for place, job_id in enumerate(before)}
        room = {queue.name: queue.limit for queue in request.queues}

        def in_order(jobs: list[Job[bytes]]) -> list[Job[bytes]]:
            return sorted(jobs, key=lambda job: (-job.priority, job.run_at, arrival[job.id]))

        own = [
            in_order([job for job in before.values() if self._is_own(job, name, request)])
            for name in room
        ]
        waiting = [
            in_order([job for job in before.values() if self._is_due(job, name, now)])
            for name in room
        ]
        places = self._places()
        taken: list[Job[bytes]] = []
        for job in (job for jobs in own + waiting for job in jobs):
            size = sum(len(one.payload) for one in [*taken, job])
            held = job.id in self.holds
            if not room[job.queue] or (not held and places.full(job.limits, now)):
                continue
            if len(taken) >= request.limit or (taken and size > request.max_bytes):
                break
            room[job.queue] -= 1
            taken.append(job)
            if not held:
                places.take(job.limits, now)
        return [job.id for job in taken]

    def _is_own(self, job: Job[bytes], queue: str, request: ClaimRequest) -> bool:
        held = self.holds.get(job.id)
        own = held is not None and held.token == request.token
        return request.again and own and job.queue == queue

    def _is_due(self, job: Job[bytes], queue: str, now: datetime) -> bool:
        waits = job.queue == queue and queue not in self.paused
        return waits and job.state is State.PENDING and job.run_at <= now

    def recorded(
        self,
        items: Sequence[RecordItem],
        answers: Sequence[Recorded],
        before: View,
        after: View,
        at: datetime,
    ) -> None:
        """I3, I4: applied where the hold is current, and only there. `after` may lie later."""
        assert len(answers) == len(items)
        for (hold, outcome), answer in zip(items, answers, strict=True):
            job = before.get(hold.job_id)
            current = self.holds.get(hold.job_id) == hold
            assert (answer is Recorded.APPLIED) == current, "I3: applied, or not, against the hold"
            assert (answer is Recorded.UNKNOWN) == (job is None)
            repeats = not current and self.settled.get(hold.job_id) == (hold, outcome)
            assert (answer is Recorded.REPEATED) == repeats, (
                "I14: known until a later one is settled"
            )
            if job is None or not current:
                continue
            del self.holds[job.id], self.ends[job.id]
            self.settled[job.id] = hold, outcome
            self.histories.recorded(hold, job.attempt, outcome, at)
            match outcome:
                case Completed(result=result):
                    self.results[job.id], self.errors[job.id] = result, None
                case Failed(failure=failure) | Retried(failure=failure):
                    self.errors[job.id] = failure
                case _:
                    pass
            right = settle(
                outcome,
                attempt=job.attempt,
                stalls=job.stalls,
                cancel_requested=job.cancel_requested,
            )
            now = after[job.id]
            if now.serial == job.serial:  # no claim came after it in the same call
                got = now.state, now.attempt, now.stalls
                assert got == (right.state, right.attempt, right.stalls), "I4: the settlement"

    def extended(
        self, holds: Sequence[Hold], answers: Sequence[Kept], lease: float, now: datetime
    ) -> None:
        """I3, I6: a current hold is kept, also when its lease had run out; no other is."""
        assert len(answers) == len(holds)
        for hold, answer in zip(holds, answers, strict=True):
            current = self.holds.get(hold.job_id) == hold
            assert (answer is not Kept.LOST) == current, "I3: extended, or not, against the hold"
            if current:
                self._leased(hold.job_id, lease, now)

    def _leased(self, job_id: str, lease: float, now: datetime) -> None:
        self.leases[job_id], self.ends[job_id] = lease, now + timedelta(seconds=lease)

    def run_out(
        self, now: datetime, only: Sequence[Hold] | None = None, *, ahead: bool
    ) -> dict[Hold, datetime]:
        """The current holds whose lease has run out, longest ago first, with their ends.

        With `ahead` also those that end later than their whole lease from now.
        """
        found = [
            (self.ends[hold.job_id], hold)
            for hold in self.holds.values()
            if (only is None or hold in only) and self._looks_ended(hold.job_id, now, ahead)
        ]
        return {hold: end for end, hold in sorted(found, key=lambda entry: entry[0])}

    def _looks_ended(self, job_id: str, now: datetime, ahead: bool) -> bool:
        end = self.ends[job_id]
        return end <= now or (ahead and end > now + timedelta(seconds=self.leases[job_id]))

    def reclaimed(
        self,
        ended: Sequence[Hold],
        limit: int,
        only: Sequence[Hold] | None,
        now: datetime,
        before: View,
        after: View,
    ) -> None:
        """I6, I7: holds that ran out, longest ago first, as many as asked for; no others."""
        right = self.run_out(now, only, ahead=only is not None)
        assert set(ended) <= right.keys(), "I6: a lease that runs was reclaimed"
        ends = [right[hold] for hold in ended]
        assert ends == list(right.values())[:limit], "I7: how many, and the longest ago first"
        assert len(set(ended)) == len(ended)
        for hold in ended:
            del self.holds[hold.job_id], self.ends[hold.job_id]
            was, job = before[hold.job_id], after[hold.job_id]
            self.histories.reclaimed(hold, was.attempt, now)
            assert job.state is State.PENDING, "I7"
            assert job.serial == was.serial + 1, "I3: a reclaim takes a serial of its own"
            assert (job.attempt, job.stalls) == (was.attempt, was.stalls + 1), "I4"

    def deleted(self, gone: Sequence[str], now: datetime) -> None:
        """I2: a job that is held is never deleted."""
        for job_id in gone:
            assert job_id not in self.holds, "a processing job was deleted"
            del self.accepted[job_id], self.results[job_id], self.errors[job_id]
            del self.payloads[job_id]
            self.settled.pop(job_id, None)
            self.histories.deleted(job_id)
            self.gone[job_id] = now

    # --- what is stored -------------------------------------------------------------------------

    def check(self, view: View, before: View) -> None:
        """What holds of the stored jobs at any time, and of each one's way to where it is."""
        assert view.keys() == self.accepted.keys(), "I5: exactly what was accepted is stored"
        self.keys.check(view)
        for job in view.values():
            self._check_job(job)
            if job.id in before:
                _check_step(before[job.id], job)

    def _check_job(self, job: Job[bytes]) -> None:
        given = self.accepted[job.id]
        assert job.payload == self.payloads[job.id], "I10: the payload"
        assert (job.name, dict(job.headers)) == (given.name, dict(given.headers)), "I10: as given"
        assert (job.unique, job.limits) == (given.unique, given.limits), "I10: its keys"
        assert (job.max_attempts, job.timeout) == (given.max_attempts, given.timeout)
        held = self.holds.get(job.id)
        assert (job.state is State.PROCESSING) == (held is not None), "I2: held while it runs"
        assert held is None or held.serial == job.serial, "I2: the serial of the current hold"
        assert (job.state in TERMINAL) == (job.finished_at is not None), "I1"
        assert 0 <= job.attempt <= job.serial, "I4: no more starts than claims"
        assert 0 <= job.stalls <= job.serial
        assert job.result == self.results[job.id], "I10: the result that was recorded"
        assert job.error == self.errors[job.id], "I10: the newest failure"
        assert not (job.state in TERMINAL and job.cancel_requested), "a wish outlived the job"


def _check_step(before: Job[bytes], after: Job[bytes]) -> None:
    """I1: a call makes at most two transitions (an exchange ends an attempt and starts one)."""
    assert before.serial <= after.serial, "I3: a serial is never given back"
    assert before.created_at == after.created_at
    reachable = {before.state}
    for _ in range(2):
        reachable |= {state for one in reachable for state in TRANSITIONS[one]}
    assert after.state in reachable, "I1: the transitions of states.py only"
