"""What must be true of a store, told from the calls and answers alone: the plain oracle.

It does not know how any driver works. `now` is the instant of the call that is looked at, `before`
the jobs as they were stored just before it, in the order of arrival.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tenure.driver import RecordItem
from tenure.outcomes import Completed, Failed, Failure, Retried, settle
from tenure.states import TERMINAL, TRANSITIONS, State
from tenure.types import (
    Claim,
    ClaimRequest,
    Counts,
    Enqueued,
    Hold,
    Job,
    Kept,
    NewJob,
    Recorded,
    Retention,
)

__all__ = ["Ledger", "View", "beyond", "counted"]

View = Mapping[str, Job[bytes]]

_MINUTE = timedelta(minutes=1)


@dataclass(slots=True)
class Ledger:
    """Jobs that were accepted, holds that are current, results that were recorded."""

    accepted: dict[str, NewJob] = field(default_factory=dict[str, NewJob])
    holds: dict[str, Hold] = field(default_factory=dict[str, Hold])
    ends: dict[str, datetime] = field(default_factory=dict[str, datetime])
    leases: dict[str, float] = field(default_factory=dict[str, float])
    results: dict[str, bytes | None] = field(default_factory=dict[str, bytes | None])
    errors: dict[str, Failure | None] = field(default_factory=dict[str, Failure | None])
    settled: dict[str, RecordItem] = field(default_factory=dict[str, RecordItem])
    paused: set[str] = field(default_factory=set[str])

    # --- calls ----------------------------------------------------------------------------------

    def enqueued(self, jobs: Sequence[NewJob], answers: Sequence[Enqueued], before: View) -> None:
        """I5, I15: what was accepted is stored from now on; a refused batch stored nothing."""
        assert len(answers) == len(jobs)
        for job, answer in zip(jobs, answers, strict=True):
            first = self.accepted.get(job.id)
            if job.id in before and first is not None:
                assert (answer is Enqueued.CREATED) == (first == job), "I14: the same content"

    def appeared(self, job: NewJob) -> None:
        """A job that was not stored is, after an `enqueue` without a duplicate."""
        self.accepted[job.id] = job
        self.results[job.id] = self.errors[job.id] = None

    def claimed(
        self, request: ClaimRequest, claims: Sequence[Claim], before: View, now: datetime
    ) -> None:
        """I2, I11: due jobs that nobody holds, in order, and first what the token holds already."""
        ids = [claim.job.id for claim in claims]
        assert ids == self._right_claim(request, before, now), "I11: the jobs, and their order"
        for claim in claims:
            job, hold = before[claim.job.id], claim.hold
            held = self.holds.get(job.id)
            assert (hold.job_id, hold.token) == (job.id, request.token)
            assert claim.job.payload == self.accepted[job.id].payload, "I10"
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

    def _right_claim(self, request: ClaimRequest, before: View, now: datetime) -> list[str]:
        arrival = {job_id: place for place, job_id in enumerate(before)}
        room = {queue.name: queue.limit for queue in request.queues}

        def in_order(jobs: list[Job[bytes]]) -> list[Job[bytes]]:
            return sorted(jobs, key=lambda job: (-job.priority, job.run_at, arrival[job.id]))

        own = [
            in_order([job for job in before.values() if self._is_own(job, name, request)])
            for name in room
        ]
        due = [
            in_order([job for job in before.values() if self._is_due(job, name, now)])
            for name in room
        ]
        taken: list[Job[bytes]] = []
        for job in (job for jobs in own + due for job in jobs):
            size = sum(len(one.payload) for one in [*taken, job])
            if not room[job.queue]:
                continue
            if len(taken) >= request.limit or (taken and size > request.max_bytes):
                break
            room[job.queue] -= 1
            taken.append(job)
        return [job.id for job in taken]

    def _is_own(self, job: Job[bytes], queue: str, request: ClaimRequest) -> bool:
        held = self.holds.get(job.id)
        own = held is not None and held.token == request.token
        return request.again and own and job.queue == queue

    def _is_due(self, job: Job[bytes], queue: str, now: datetime) -> bool:
        waits = job.queue == queue and queue not in self.paused
        return waits and job.state is State.PENDING and job.run_at <= now

    def recorded(
        self, items: Sequence[RecordItem], answers: Sequence[Recorded], before: View, after: View
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

    def run_out(self, now: datetime, only: Sequence[Hold] | None = None) -> dict[Hold, datetime]:
        """The current holds whose lease has run out, longest ago first, with their ends."""
        found = [
            (self.ends[hold.job_id], hold)
            for hold in self.holds.values()
            if self.ends[hold.job_id] <= now and (only is None or hold in only)
        ]
        return {hold: end for end, hold in sorted(found, key=lambda entry: entry[0])}

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
        right = self.run_out(now, only)
        assert set(ended) <= right.keys(), "I6: a lease that runs was reclaimed"
        ends = [right[hold] for hold in ended]
        assert ends == list(right.values())[:limit], "I7: how many, and the longest ago first"
        assert len(set(ended)) == len(ended)
        for hold in ended:
            del self.holds[hold.job_id], self.ends[hold.job_id]
            was, job = before[hold.job_id], after[hold.job_id]
            assert job.state is State.PENDING, "I7"
            assert job.serial == was.serial + 1, "I3: a reclaim takes a serial of its own"
            assert (job.attempt, job.stalls) == (was.attempt, was.stalls + 1), "I4"

    def deleted(self, gone: Sequence[str]) -> None:
        """I2: a job that is held is never deleted."""
        for job_id in gone:
            assert job_id not in self.holds, "a processing job was deleted"
            del self.accepted[job_id], self.results[job_id], self.errors[job_id]
            self.settled.pop(job_id, None)

    # --- what is stored -------------------------------------------------------------------------

    def check(self, view: View, before: View) -> None:
        """What holds of the stored jobs at any time, and of each one's way to where it is."""
        assert view.keys() == self.accepted.keys(), "I5: exactly what was accepted is stored"
        for job in view.values():
            self._check_job(job)
            if job.id in before:
                _check_step(before[job.id], job)

    def _check_job(self, job: Job[bytes]) -> None:
        given = self.accepted[job.id]
        assert (job.name, job.payload, dict(job.headers)) == (
            given.name,
            given.payload,
            dict(given.headers),
        ), "I10: as it was given"
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


def counted(view: View, now: datetime, paused: frozenset[str] = frozenset()) -> Counts:
    """The counts of these jobs. Of the queues only those that have any."""
    by_queue: dict[str, Counts] = {}
    for queue in sorted({job.queue for job in view.values()}):
        jobs = {key: job for key, job in view.items() if job.queue == queue}
        by_queue[queue] = _numbers(list(jobs.values()), now, {}, frozenset())
    return _numbers(list(view.values()), now, by_queue, paused)


def _numbers(
    jobs: Sequence[Job[bytes]], now: datetime, by_queue: dict[str, Counts], paused: frozenset[str]
) -> Counts:
    states = [job.state for job in jobs]
    due = [job for job in jobs if job.state is State.PENDING and job.run_at <= now]
    return Counts(
        pending=len(due),
        scheduled=states.count(State.PENDING) - len(due),
        blocked=states.count(State.BLOCKED),
        processing=states.count(State.PROCESSING),
        completed=states.count(State.COMPLETED),
        failed=states.count(State.FAILED),
        cancelled=states.count(State.CANCELLED),
        by_queue=by_queue,
        paused=paused,
    )


def beyond(view: View, retention: Retention, now: datetime) -> list[Job[bytes]]:
    """The finished jobs that the retention no longer keeps.

    Which of several completed jobs is among the newest is not told where they ended at the same
    instant: others of the same queue, state and end may stand for those given here.
    """
    ages = {
        State.COMPLETED: retention.completed,
        State.FAILED: retention.failed,
        State.CANCELLED: retention.cancelled,
    }
    newer: Counter[str] = Counter()
    found: list[Job[bytes]] = []
    ended = [(job.finished_at, job) for job in view.values() if job.finished_at is not None]
    for end, job in sorted(ended, key=lambda entry: entry[0], reverse=True):
        age = ages[job.state]
        doomed = age is not None and now - end > timedelta(seconds=age)
        if job.state is State.COMPLETED and retention.completed_count is not None:
            newer[job.queue] += 1
            doomed = doomed or newer[job.queue] > retention.completed_count
        if doomed and now - end >= _MINUTE:
            found.append(job)
    return found
