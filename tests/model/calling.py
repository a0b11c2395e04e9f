"""How one call is made on both stores, compared, and told to the ledger."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace as with_changes
from datetime import datetime, timedelta

from msgspec.structs import replace

from tenure.driver import Capability, Driver, RecordItem
from tenure.standing import Fired, Limit, Tick
from tenure.states import State
from tenure.types import (
    Answer,
    Claim,
    ClaimRequest,
    Enqueued,
    Exchanged,
    Held,
    Hold,
    Job,
    JobFilter,
    Kept,
    NewJob,
    QueueLimit,
    Recorded,
    Retention,
)
from tests.model.counting import beyond
from tests.model.ledger import Ledger, View
from tests.model.pair import Call, Pair
from tests.model.subjects import Subject
from tests.model.values import T0, undated

__all__ = ["Calls", "matches", "repeated"]

_OPTIONAL = {
    Capability.LIMITS,
    Capability.UNIQUE,
    Capability.HISTORY,
    Capability.SCHEDULES,
    Capability.RESTORE,
}
_NOT_CALLED = {Capability.NAMES, Capability.SHARED, Capability.WITHIN, Capability.LIFELINE}
NEEDED = frozenset(Capability) - _OPTIONAL - _NOT_CALLED

PLENTY = 8 * 1024 * 1024
# Made again at the same instant, these change nothing more (I14). A repeated purge, prune or
# reclaim goes on where its limit had stopped it.
_SETTLED_AT_ONCE = frozenset(
    [
        "enqueue",
        "claim",
        "record",
        "exchange",
        "extend",
        "cancel",
        "retry",
        "delete",
        "move",
        "pause",
        "progress",
        "fire",
    ]
)


class Calls:
    """Two stores and the ledger, at one instant after the other.

    What is said of a period, or of a rate, needs a clock that is never set back: `steady` says
    which of both this exercise has.
    """

    def __init__(self, subject: Subject, reference: Driver) -> None:
        self.pair = Pair(subject, reference)
        self.capabilities = self.pair.tested.capabilities
        assert self.capabilities >= NEEDED
        self.steady = True
        self.ledger = Ledger()
        self.now = T0
        self.view: View = {}
        self.dispatched: dict[str, NewJob] = {}
        self.claimed: list[Hold] = []
        self._tokens = 0
        self._retired: frozenset[str] = frozenset()

    # --- how a call is made ---------------------------------------------------------------------

    def make(self, call: Call, *, lost: bool = False) -> None:
        """Make the call; when its answer was lost, make it again."""
        self._once(call)
        self.settle()
        if lost:
            once = self.view
            self._once(repeated(call))
            self.settle()
            if call.operation in _SETTLED_AT_ONCE:
                assert self.view == once, "I14: a repeat changed something"

    def settle(self) -> None:
        """Both store the same, and the ledger agrees."""
        view = self.pair.view()
        self.ledger.check(view, self.view)
        self.view = view

    def request(
        self, queues: tuple[QueueLimit, ...], limit: int, lease: float, most: int = PLENTY
    ) -> ClaimRequest:
        """A request under a token that nobody had before."""
        self._tokens += 1
        return ClaimRequest(
            token=f"token-{self._tokens}",
            queues=queues,
            limit=limit,
            worker=f"worker-{self._tokens % 3}",
            lease=lease,
            max_bytes=most,
        )

    def revision(self) -> str:
        """One that no schedule had before."""
        self._tokens += 1
        return f"revision-{self._tokens}"

    def usable(self, jobs: Sequence[NewJob]) -> list[NewJob]:
        """Those whose ids are not of the time before the clock was set back, as they may be."""
        return [self.fitting(job) for job in jobs if job.id not in self._retired]

    def usable_ticks(self, ticks: Sequence[Tick]) -> list[Tick]:
        """The ticks, without the jobs that are not usable."""
        jobs = {job.id: job for job in self.usable([tick.job for tick in ticks if tick.job])}
        return [replace(tick, job=tick.job and jobs.get(tick.job.id)) for tick in ticks]

    def fitting(self, job: NewJob) -> NewJob:
        """The job without what the driver lacks, and without dates where the clock is not true."""
        if Capability.LIMITS not in self.capabilities:
            job = replace(job, limits=())
        if Capability.UNIQUE not in self.capabilities:
            job = replace(job, unique=None)
        return job if self.steady else undated(job)

    def fitting_limit(self, limit: Limit) -> Limit:
        """The limit without a rate where the clock is not true."""
        return limit if self.steady else replace(limit, per_second=None, concurrent=1)

    def set_back(self, seconds: float) -> None:
        """How long a deleted id is known depends on a true clock: those are used no more."""
        self._retired = frozenset(self.ledger.gone)
        self.now -= timedelta(seconds=seconds)

    # --- one call -------------------------------------------------------------------------------

    def _once(self, call: Call) -> None:
        match call:
            case Call("enqueue", (jobs,)):
                self._enqueue(call, jobs)
            case Call("claim", (request,)):
                claims: Sequence[Claim] = self.pair.of_tested(call, self.now)
                self._claimed(request, claims, self.view)
            case Call("record", (items,)):
                self._record(call, items)
            case Call("exchange", (items, request)):
                self._exchange(call, items, request)
            case Call("extend", (holds, lease)):
                kept: Sequence[Kept] = self.pair.ask(call, self.now)
                self.ledger.extended(holds, kept, lease, self.now)
            case Call("reclaim", (limit, _), {"only": only}):
                self._reclaim(call, limit, only)
            case Call("retry", (items,)):
                done: Sequence[Answer] = self.pair.ask(call, self.now)
                self.ledger.retried(items, done, self.view, self.now)
            case Call("delete", (ids,)):
                answers: Sequence[Answer] = self.pair.ask(call, self.now)
                assert len(answers) == len(ids)
                gone = {i for i, a in zip(ids, answers, strict=True) if a is Answer.DONE}
                self.ledger.deleted(sorted(gone), self.now)
            case Call("purge", (which, limit)):
                self._remove(
                    call, limit, [job for job in self.view.values() if _may_go(job, which)]
                )
            case Call("prune", (retention, limit)):
                self._remove(call, limit, beyond(self.view, retention, self.now))
                self.pair.of_reference(Call("prune", (_KEEP_ALL, 1)), self.now)
            case Call("pause", (queue, paused)):
                self.pair.ask(call, None)
                (self.ledger.paused.add if paused else self.ledger.paused.discard)(queue)
            case Call("put_limit", (limit,)):
                self.pair.ask(call, None)
                self.ledger.limits.put(limit)
            case Call("drop_limit", (key,)):
                there: bool = self.pair.ask(call, None)
                assert there == (self.ledger.limits.limits.pop(key, None) is not None)
            case Call("put_schedules", (new,)):
                self.pair.ask(call, self.now)
                self.ledger.schedules.put(new, self.now)
            case Call("drop_schedules", (ids,)):
                self.ledger.schedules.dropped(ids, self.pair.ask(call, None))
            case Call("pause_schedule", (id, paused)):
                known: bool = self.pair.ask(call, self.now)
                self.ledger.schedules.paused(id, paused, known, self.now)
            case Call("fire", (ticks,)):
                self._fire(call, ticks)
            case _:
                self.pair.ask(call, self.now)

    def _enqueue(self, call: Call, jobs: Sequence[NewJob]) -> None:
        answers: Sequence[Enqueued | Held] = self.pair.ask(call, self.now)
        self.ledger.enqueued(jobs, answers, self.view, self.pair.view(), self.now)
        if Enqueued.DUPLICATE not in answers:
            self.dispatched |= {job.id: job for job in jobs if job.id not in self.dispatched}

    def _fire(self, call: Call, ticks: Sequence[Tick]) -> None:
        answers: Sequence[Fired] = self.pair.ask(call, self.now)
        self.ledger.fired(ticks, answers, self.view, self.pair.view(), self.now)
        jobs = [tick.job for tick in ticks if tick.job is not None]
        self.dispatched |= {job.id: job for job in jobs if job.id not in self.dispatched}

    def _record(self, call: Call, items: Sequence[RecordItem]) -> None:
        answers: Sequence[Recorded] = self.pair.ask(call, self.now)
        after = self.pair.view()
        self.ledger.recorded(items, answers, self.view, after, self.now)
        if Recorded.APPLIED not in answers:
            assert after == self.view, "I3: a write that was not applied changed something"

    def _exchange(self, call: Call, items: Sequence[RecordItem], request: ClaimRequest) -> None:
        """As `record`, then `claim`: the reference makes them one by one."""
        answers: Sequence[Recorded] = self.pair.of_reference(Call("record", (items,)), self.now)
        recorded = self.pair.view_of_reference()
        answer: Exchanged = self.pair.of_tested(call, self.now)
        assert answer.error is None
        self.pair.same(answer.recorded, answers, "the outcomes of an exchange")
        self.ledger.recorded(items, answer.recorded, self.view, recorded, self.now)
        self._claimed(request, answer.claims, recorded)

    def _claimed(self, request: ClaimRequest, claims: Sequence[Claim], before: View) -> None:
        """Hold a claim of the subject against the ledger, and the reference.

        A repeat that finds what its token holds may leave it at that: then the reference does too.
        """
        held = set(self.ledger.holds.values())
        if request.again and claims and held.issuperset(claim.hold for claim in claims):
            same = replace(request, limit=len(claims))
        else:
            same = request
        self.ledger.claimed(request, claims, before, self.now)
        right: Sequence[Claim] = self.pair.of_reference(Call("claim", (same,)), self.now)
        self.pair.same(claims, right, "the claims")
        self.claimed += [claim.hold for claim in claims if claim.hold not in self.claimed]

    def _reclaim(self, call: Call, limit: int, only: Sequence[Hold] | None) -> None:
        """Which of the holds that ended at the same instant come within the limit is left free."""
        ended: Sequence[Hold] = self.pair.of_tested(call, self.now)
        after = self.pair.view_of_tested()
        self.ledger.reclaimed(ended, limit, only, self.now, self.view, after)
        same = Call("reclaim", (len(ended), *call.arguments[1:]), {"only": ended})
        right: Sequence[Hold] = self.pair.of_reference(same, self.now)
        assert set(right) == set(ended), "reclaim differs from the reference"

    def _remove(self, call: Call, limit: int, doomed: Sequence[Job[bytes]]) -> None:
        """Which of the doomed jobs come within the limit is left free: the reference follows."""
        number: int = self.pair.of_tested(call, self.now)
        assert number == min(limit, len(doomed)), f"{call.operation}: how many"
        left = self.pair.view_of_tested()
        gone = [job_id for job_id in self.view if job_id not in left]
        assert len(gone) == number
        if number == len(doomed):
            assert set(gone) == {job.id for job in doomed}, f"{call.operation}: which"
        kinds = Counter(map(_kind, doomed))
        assert Counter(_kind(self.view[key]) for key in gone) <= kinds, f"{call.operation}: which"
        self.pair.of_reference(Call("delete", (gone,)), self.now)
        self.ledger.deleted(gone, self.now)


_KEEP_ALL = Retention(
    completed=None, completed_count=None, completed_bytes=None, failed=None, cancelled=None
)


def repeated(call: Call) -> Call:
    """The call as it is sent again: a claim asks for what its token holds already."""
    again = [replace(a, again=True) if isinstance(a, ClaimRequest) else a for a in call.arguments]
    return with_changes(call, arguments=tuple(again))


def _kind(job: Job[bytes]) -> tuple[str, State, datetime | None]:
    return job.queue, job.state, job.finished_at


def matches(job: Job[bytes], which: JobFilter) -> bool:
    return (
        which.state in (None, job.state)
        and which.queue in (None, job.queue)
        and which.name in (None, job.name)
    )


def _may_go(job: Job[bytes], which: JobFilter) -> bool:
    return matches(job, which) and job.state is not State.PROCESSING
