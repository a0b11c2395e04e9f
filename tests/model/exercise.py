"""How one call is made on both stores, compared, and told to the ledger."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace as with_changes
from datetime import datetime, timedelta

from msgspec.structs import replace

from tenure.driver import Capability, Driver, RecordItem
from tenure.states import State
from tenure.types import (
    Answer,
    Claim,
    ClaimRequest,
    Enqueued,
    Exchanged,
    Expired,
    Hold,
    Job,
    JobFilter,
    Kept,
    NewJob,
    QueueLimit,
    Recorded,
    Retention,
)
from tests.model.ledger import Ledger, View, beyond, counted
from tests.model.pair import Call, Pair
from tests.model.subjects import Subject
from tests.model.values import T0

__all__ = ["Exercise", "matches", "repeated"]

NEEDED = frozenset(Capability) - {Capability.NAMES, Capability.SHARED, Capability.WITHIN}

EVERYTHING = 1000
LAST = T0 + timedelta(days=58_500)  # past every `at` that the values have
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
    ]
)


class Exercise:
    """Two stores and the ledger, at one instant after the other."""

    def __init__(self, subject: Subject, reference: Driver) -> None:
        self.pair = Pair(subject, reference)
        assert self.pair.tested.capabilities >= NEEDED
        self.ledger = Ledger()
        self.now = T0
        self.view: View = {}
        self.dispatched: dict[str, NewJob] = {}
        self.claimed: list[Hold] = []
        self._tokens = 0
        self._gone: set[str] = set()
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

    def check_counts(self) -> None:
        counts = self.pair.counts(self.now)
        assert counts == counted(self.view, self.now, frozenset(self.ledger.paused)), "I1: counts"

    def check_leases(self) -> None:
        """Which leases have run out, up to a limit; and, seen from far in the future, all of them.

        Which of those that end at the same instant come within the limit is left free.
        """
        for now, limit in ((self.now, 2), (LAST, EVERYTHING)):
            found: Expired = self.pair.of_tested(Call("expired", (limit,)), now)
            right = self.ledger.run_out(now)
            assert found.now == now
            ends = [entry.until for entry in found.holds]
            assert ends == list(right.values())[:limit], "I6, I7: the ends of leases"
            assert {entry.hold for entry in found.holds} <= right.keys()
            assert all(self.ledger.leases[e.hold.job_id] == e.lease for e in found.holds)

    def request(
        self, queues: tuple[QueueLimit, ...], limit: int, lease: float, most: int = PLENTY
    ) -> ClaimRequest:
        """A request under a token that nobody had before."""
        self._tokens += 1
        return ClaimRequest(
            token=f"token-{self._tokens}",
            queues=queues,
            limit=limit,
            worker="worker",
            lease=lease,
            max_bytes=most,
        )

    def usable(self, jobs: Sequence[NewJob]) -> list[NewJob]:
        """Those whose ids are not of the time before the clock was set back."""
        return [job for job in jobs if job.id not in self._retired]

    def set_back(self, seconds: float) -> None:
        """How long a deleted id is known depends on a true clock: those are used no more."""
        self._retired = frozenset(self._gone)
        self.now -= timedelta(seconds=seconds)

    def end_everything(self) -> None:
        """I16: what has ended goes when it is pruned, and nothing of it stays."""
        self.now = LAST
        self.make(Call("reclaim", (EVERYTHING, (0.0,)), {"only": None}))
        self.make(Call("cancel", (list(self.view),)))
        self.now += timedelta(minutes=2)
        self.make(Call("prune", (Retention(completed=0, failed=0, cancelled=0), EVERYTHING)))
        assert self.view == {}, "I16: a finished job outlives its retention"

    def _once(self, call: Call) -> None:
        match call:
            case Call("enqueue", (jobs,)):
                self._enqueue(call, jobs)
            case Call("claim", (request,)):
                claims: Sequence[Claim] = self.pair.ask(call, self.now)
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
            case Call("delete", (ids,)):
                answers: Sequence[Answer] = self.pair.ask(call, self.now)
                assert len(answers) == len(ids)
                done = {i for i, a in zip(ids, answers, strict=True) if a is Answer.DONE}
                self._forget(sorted(done))
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
            case _:
                self.pair.ask(call, self.now)

    def _enqueue(self, call: Call, jobs: Sequence[NewJob]) -> None:
        answers: Sequence[Enqueued] = self.pair.ask(call, self.now)
        self.ledger.enqueued(jobs, answers, self.view)
        stored = self.pair.view()
        new = [job for job in jobs if job.id in stored and job.id not in self.view]
        if Enqueued.DUPLICATE in answers:
            assert stored == self.view, "I15: a refused batch left a trace"
        else:
            missing = {job.id for job in jobs} - stored.keys()
            assert missing <= self._gone, "I5: what was accepted is not stored"
        arrived = list(stored)[len(self.view) :]
        assert arrived == [job.id for job in new], "I11: arrival is the order of the batch"
        for job in new:
            self.ledger.appeared(job)
            self.dispatched[job.id] = job
            assert stored[job.id].run_at == _due(job, self.now)

    def _record(self, call: Call, items: Sequence[RecordItem]) -> None:
        answers: Sequence[Recorded] = self.pair.ask(call, self.now)
        after = self.pair.view()
        self.ledger.recorded(items, answers, self.view, after)
        if Recorded.APPLIED not in answers:
            assert after == self.view, "I3: a write that was not applied changed something"

    def _exchange(self, call: Call, items: Sequence[RecordItem], request: ClaimRequest) -> None:
        """As `record`, then `claim`: the reference makes them one by one."""
        answers: Sequence[Recorded] = self.pair.of_reference(Call("record", (items,)), self.now)
        recorded = self.pair.view_of_reference()
        claims: Sequence[Claim] = self.pair.of_reference(Call("claim", (request,)), self.now)
        answer: Exchanged = self.pair.of_tested(call, self.now)
        assert answer.error is None
        self.pair.same(answer.recorded, answers, "the outcomes of an exchange")
        self.pair.same(answer.claims, claims, "the claims of an exchange")
        self.ledger.recorded(items, answer.recorded, self.view, recorded)
        self._claimed(request, answer.claims, recorded)

    def _claimed(self, request: ClaimRequest, claims: Sequence[Claim], before: View) -> None:
        self.ledger.claimed(request, claims, before, self.now)
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
        kinds = Counter(map(_kind, doomed))
        assert Counter(_kind(self.view[key]) for key in gone) <= kinds, f"{call.operation}: which"
        self.pair.of_reference(Call("delete", (gone,)), self.now)
        self._forget(gone)

    def _forget(self, gone: Sequence[str]) -> None:
        self.ledger.deleted(gone)
        self._gone |= set(gone)


_KEEP_ALL = Retention(completed=None, completed_count=None, failed=None, cancelled=None)


def repeated(call: Call) -> Call:
    """The call as it is sent again: a claim asks for what its token holds already."""
    again = [replace(a, again=True) if isinstance(a, ClaimRequest) else a for a in call.arguments]
    return with_changes(call, arguments=tuple(again))


def _due(job: NewJob, now: datetime) -> datetime:
    return job.at or now + timedelta(seconds=job.delay or 0.0)


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
