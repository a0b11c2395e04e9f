"""The state machine: random calls about jobs at random instants, on a store and on its reference.

After each step the stored jobs of both are the same, and what the ledger says of them holds. Time
is what the machine says. Most choices are among what is there, since a made-up id or hold seldom
meets anything; some are made up, or stale, or a little wrong. `standing.py` adds the calls about
what stands beside the jobs.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace as with_changes
from datetime import timedelta
from itertools import count
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)
from msgspec.structs import replace

from tenure.driver import Driver, RecordItem
from tenure.outcomes import Outcome
from tenure.types import Hold, Job, JobFilter, ManualRetry, Move, NewJob, QueueLimit, Retention
from tests.model import values as v
from tests.model.calling import PLENTY, matches, repeated
from tests.model.exercise import EVERYTHING, Exercise
from tests.model.pair import Call
from tests.model.subjects import Subject

__all__ = ["LOST", "JobMachine", "again", "known_ids", "of"]

T = TypeVar("T")


def of(choices: Callable[["JobMachine"], st.SearchStrategy[T]]) -> st.SearchStrategy[T]:
    """What to draw from where the machine stands."""
    return st.runner().flatmap(choices)


def _newest(items: Iterable[T]) -> list[T]:
    """A few, since hypothesis writes out what it chooses from."""
    return list(items)[-12:]


def known_ids(model: "JobMachine") -> st.SearchStrategy[str]:
    stored = list(model.exercise.view)
    return st.sampled_from([*stored, *stored, *model.exercise.dispatched, "nobody"])


def _holds(model: "JobMachine") -> st.SearchStrategy[Hold]:
    """Current ones mostly; any that ever was; and some that are wrong by one part."""
    current = _newest(model.exercise.ledger.holds.values())
    near = [
        other
        for hold in current
        for other in (
            replace(hold, serial=hold.serial - 1),
            replace(hold, serial=hold.serial + 1),
            replace(hold, token="another"),
        )
    ]
    earlier = _newest(model.exercise.claimed) or [Hold("nobody", 1, "token")]
    of_others = [Hold(job.id, job.serial, earlier[0].token) for job in _newest(model.jobs)]
    choices = [earlier, of_others or earlier]
    if current:
        choices += [current, current, current, near]
    return st.one_of(*(st.sampled_from(each) for each in choices))


def _some_holds(model: "JobMachine") -> st.SearchStrategy[Sequence[Hold]]:
    return v.batches(_holds(model), 4, by=lambda hold: hold.job_id)


def _items(model: "JobMachine") -> st.SearchStrategy[Sequence[RecordItem]]:
    """Outcomes, and some that were recorded before and may have been the last of their job."""
    new = st.tuples(_holds(model), v.OUTCOMES)
    settled = _newest(model.exercise.ledger.settled.values())
    items = st.one_of(new, new, st.sampled_from(settled)) if settled else new
    return v.batches(items, 4, by=lambda item: item[0].job_id)


def again(model: "JobMachine") -> st.SearchStrategy[NewJob]:
    """A job that was dispatched before, or one with its id and other content."""
    first = st.sampled_from(_newest(model.exercise.dispatched.values()))
    other = st.builds(v.under_the_id_of, v.JOBS, first)
    changed = st.builds(v.changed, first, st.sampled_from(v.CHANGES))
    return st.one_of(first, first, other, changed)


def _dispatches(model: "JobMachine") -> st.SearchStrategy[Sequence[NewJob]]:
    """New jobs under fresh ids, in which there may be an earlier one."""
    new = v.batches(v.JOBS, 6).map(model.fresh)
    if not model.exercise.dispatched:
        return new
    mixed = st.tuples(new, v.batches(again(model), 2, by=lambda job: job.id)).flatmap(
        lambda two: st.permutations([*two[0], *two[1]])
    )
    return st.one_of(new, new, mixed)


def _known(model: "JobMachine") -> st.SearchStrategy[tuple[str, int | None]]:
    """An id with the serial of its job, or a wrong one, or none."""
    choices: list[tuple[str, int | None]] = [("nobody", None), ("nobody", 1)]
    for job in model.jobs:
        choices += [(job.id, None), (job.id, job.serial), (job.id, job.serial - 1)]
    return st.sampled_from(choices)


def _retries(model: "JobMachine") -> st.SearchStrategy[Sequence[ManualRetry]]:
    return v.batches(_known(model).map(lambda known: ManualRetry(*known)), 4)


def _moves(model: "JobMachine") -> st.SearchStrategy[Sequence[Move]]:
    return v.batches(st.builds(_aimed, v.MOVES, _known(model)), 3)


def _aimed(move: Move, known: tuple[str, int | None]) -> Move:
    return replace(move, job_id=known[0], serial=known[1])


LOST = st.sampled_from([False, False, True])


class JobMachine(RuleBasedStateMachine):
    """One store from empty on. `lost`: the answer of a call is thrown away, and it is repeated."""

    calls: Bundle[Call] = Bundle("calls")

    def __init__(self, subject: Subject, reference: Driver) -> None:
        super().__init__()
        self.exercise = Exercise(subject, reference)
        self._sound = True
        self._numbers = count()

    @property
    def jobs(self) -> Sequence[Job[bytes]]:
        return list(self.exercise.view.values())

    def fresh(self, jobs: Sequence[NewJob]) -> Sequence[NewJob]:
        """The same under ids that nobody had: not in order, neither as text nor as numbers."""
        return [replace(job, id=v.ids(next(self._numbers))) for job in jobs]

    def make(self, call: Call, lost: bool = False) -> Call:
        self._sound = False
        self.exercise.make(call, lost=lost)
        return call

    # --- time -----------------------------------------------------------------------------------

    @rule(seconds=v.PAUSES)
    def time_passes(self, seconds: float) -> None:
        self.exercise.now += timedelta(seconds=seconds)

    @precondition(lambda self: self.exercise.ledger.ends)
    @rule(early=st.sampled_from([0, 1]))
    def time_comes_to_the_end_of_a_lease(self, early: int) -> None:
        end = min(self.exercise.ledger.ends.values()) - timedelta(microseconds=early)
        self.exercise.now = max(self.exercise.now, end)

    @precondition(lambda self: not self.exercise.steady)
    @rule(seconds=st.sampled_from([0.000001, 5.0, 40.0]))
    def the_clock_is_set_back(self, seconds: float) -> None:
        self.exercise.set_back(seconds)

    # --- the job store --------------------------------------------------------------------------

    @rule(target=calls, jobs=of(_dispatches), lost=LOST)
    def enqueue(self, jobs: Sequence[NewJob], lost: bool) -> Call:
        return self.make(Call("enqueue", (self.exercise.usable(jobs),)), lost)

    @rule(target=calls, jobs=v.batches(v.JOBS, 6))
    def enqueue_new_ones(self, jobs: Sequence[NewJob]) -> Call:
        return self.make(Call("enqueue", (self.exercise.usable(self.fresh(jobs)),)), lost=False)

    @precondition(lambda self: self.exercise.dispatched)
    @rule(target=calls, job=of(again))
    def enqueue_one_again(self, job: NewJob) -> Call:
        return self.make(Call("enqueue", (self.exercise.usable([job]),)), lost=False)

    @rule(
        target=calls,
        queues=v.QUEUE_LIMITS,
        limit=st.integers(0, 4),
        lease=v.LEASES,
        most=st.sampled_from([PLENTY, PLENTY, 0, 100, 250]),
        lost=LOST,
    )
    def claim(
        self, queues: tuple[QueueLimit, ...], limit: int, lease: float, most: int, lost: bool
    ) -> Call:
        return self.make(Call("claim", (self.exercise.request(queues, limit, lease, most),)), lost)

    @rule(target=calls, limit=st.sampled_from([2, EVERYTHING]), lease=v.LEASES)
    def claim_from_all_queues(self, limit: int, lease: float) -> Call:
        request = self.exercise.request(v.ALL_QUEUES, limit, lease)
        return self.make(Call("claim", (request,)), lost=False)

    @rule(target=calls, items=of(_items), lost=LOST)
    def record(self, items: Sequence[RecordItem], lost: bool) -> Call:
        return self.make(Call("record", (items,)), lost)

    @precondition(lambda self: self.exercise.ledger.holds)
    @rule(target=calls, outcome=v.OUTCOMES)
    def record_all_alike(self, outcome: Outcome) -> Call:
        items = [(hold, outcome) for hold in self.exercise.ledger.holds.values()]
        return self.make(Call("record", (items,)), lost=False)

    @rule(
        target=calls,
        items=of(_items),
        queues=v.QUEUE_LIMITS,
        limit=st.integers(0, 4),
        lease=v.LEASES,
        lost=LOST,
    )
    def exchange(
        self,
        items: Sequence[RecordItem],
        queues: tuple[QueueLimit, ...],
        limit: int,
        lease: float,
        lost: bool,
    ) -> Call:
        request = self.exercise.request(queues, limit, lease)
        return self.make(Call("exchange", (items, request)), lost)

    @rule(target=calls, holds=of(_some_holds), lease=v.LEASES, lost=LOST)
    def extend(self, holds: Sequence[Hold], lease: float, lost: bool) -> Call:
        return self.make(Call("extend", (holds, lease)), lost)

    @rule(
        target=calls,
        limit=st.integers(1, 3),
        delays=v.RECLAIM_DELAYS,
        only=st.none() | st.none() | of(_some_holds),
        lost=LOST,
    )
    def reclaim(
        self, limit: int, delays: Sequence[float], only: Sequence[Hold] | None, lost: bool
    ) -> Call:
        return self.make(Call("reclaim", (limit, delays), {"only": only}), lost)

    @rule(target=calls, hold=of(_holds), value=v.DATA, lost=LOST)
    def progress(self, hold: Hold, value: bytes, lost: bool) -> Call:
        return self.make(Call("progress", (hold, value)), lost)

    @rule(lease=v.LEASES, outcome=v.OUTCOMES)
    def all_that_is_due_is_done(self, lease: float, outcome: Outcome) -> None:
        self.claim_from_all_queues(EVERYTHING, lease)
        items = [(hold, outcome) for hold in self.exercise.ledger.holds.values()]
        self.make(Call("record", (items,)), lost=False)

    @rule(delays=v.RECLAIM_DELAYS)
    def a_worker_dies(self, delays: Sequence[float]) -> None:
        """It claims what is due, and nobody hears of it again until its leases run out."""
        self.claim_from_all_queues(EVERYTHING, 1.0)
        self.exercise.now += timedelta(seconds=1.0)
        self.make(Call("reclaim", (EVERYTHING, delays), {"only": None}), lost=False)

    # --- control --------------------------------------------------------------------------------

    @rule(target=calls, ids=v.batches(of(known_ids), 3), lost=LOST)
    def cancel(self, ids: Sequence[str], lost: bool) -> Call:
        return self.make(Call("cancel", (ids,)), lost)

    @rule(target=calls, items=of(_retries), lost=LOST)
    def retry(self, items: Sequence[ManualRetry], lost: bool) -> Call:
        return self.make(Call("retry", (items,)), lost)

    @rule(target=calls, ids=v.batches(of(known_ids), 2), lost=LOST)
    def delete(self, ids: Sequence[str], lost: bool) -> Call:
        return self.make(Call("delete", (ids,)), lost)

    @rule(target=calls, items=of(_moves), lost=LOST)
    def move(self, items: Sequence[Move], lost: bool) -> Call:
        return self.make(Call("move", (items,)), lost)

    @rule(target=calls, which=v.FILTERS, limit=st.integers(1, 3), lost=LOST)
    def purge(self, which: JobFilter, limit: int, lost: bool) -> Call:
        return self.make(Call("purge", (which, limit)), lost)

    @rule(target=calls, retention=v.RETENTIONS, limit=st.integers(1, 3), lost=LOST)
    def prune(self, retention: Retention, limit: int, lost: bool) -> Call:
        return self.make(Call("prune", (retention, limit)), lost)

    @rule(target=calls, queue=v.QUEUES, paused=st.booleans(), lost=LOST)
    def pause(self, queue: str, paused: bool, lost: bool) -> Call:
        return self.make(Call("pause", (queue, paused)), lost)

    # --- the same again, at another time --------------------------------------------------------

    @rule(call=calls)
    def a_call_comes_again(self, call: Call) -> None:
        """Perhaps long after, when the store has moved on."""
        if call.operation == "enqueue":
            call = with_changes(call, arguments=(self.exercise.usable(call.arguments[0]),))
        if call.operation == "fire":
            call = with_changes(call, arguments=(self.exercise.usable_ticks(call.arguments[0]),))
        self.make(repeated(call), lost=False)

    @precondition(lambda self: self.exercise.pair.subject.lasts)
    @rule()
    def reopen(self) -> None:
        self.exercise.pair.reopen()
        self.exercise.settle()

    # --- looking --------------------------------------------------------------------------------

    @rule(queues=st.lists(v.QUEUES, max_size=3, unique=True))
    def next_due(self, queues: Sequence[str]) -> None:
        self.exercise.check_next_due(queues)
        self.exercise.check_oldest_due(queues)

    @rule(which=v.FILTERS, limit=st.integers(1, 3))
    def walk(self, which: JobFilter, limit: int) -> None:
        listed = self.exercise.pair.view(limit, which)
        assert listed == {job.id: job for job in self.jobs if matches(job, which)}

    @rule(job_id=of(known_ids))
    def get(self, job_id: str) -> None:
        job: Job[bytes] | None = self.exercise.pair.ask(Call("get", (job_id,)), None)
        assert job == self.exercise.view.get(job_id)

    # --- after each step ------------------------------------------------------------------------

    @invariant()
    def both_store_the_same_and_the_ledger_agrees(self) -> None:
        self._sound = False
        self.exercise.check_keys()
        self.exercise.check_counts()
        self.exercise.check_leases()
        self.exercise.check_histories()
        self._sound = True

    def teardown(self) -> None:
        try:
            if self._sound:
                self.exercise.end_everything()
        finally:
            self.exercise.pair.close()
