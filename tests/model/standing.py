"""The state machine's calls about what stands beside the jobs: keys, limits, schedules, histories.

What a driver lacks the capability for is not asked of it.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from msgspec.structs import replace

from tenure.driver import Capability
from tenure.outcomes import Completed
from tenure.standing import Limit, NewSchedule, ScheduleRecord, Tick, governing
from tenure.types import NewJob, QueueLimit, UniqueKey
from tests.model import values as v
from tests.model.machine import LOST, JobMachine, again, known_ids, of
from tests.model.pair import Call

__all__ = ["Model"]

_SCHEDULES = st.sampled_from(["s", "S", "t"])
_DEFINITIONS = st.sampled_from([b"d", b"\x00\xff"])
_STEPS = st.sampled_from([0.000001, 0.5, 1.0, 30.0, 3600.0])


def _with(capability: Capability) -> Callable[[JobMachine], bool]:
    return lambda model: capability in model.exercise.capabilities


_LIMITS, _SCHEDULED = _with(Capability.LIMITS), _with(Capability.SCHEDULES)
_HISTORY = _with(Capability.HISTORY)


def _held_keys(model: JobMachine) -> st.SearchStrategy[str]:
    return st.sampled_from([one.key for one in model.exercise.ledger.keys.holding.values()])


def _scheduled(model: JobMachine) -> Sequence[ScheduleRecord]:
    return list(model.exercise.ledger.schedules.schedules.values())


def _tick_jobs(model: JobMachine) -> st.SearchStrategy[NewJob | None]:
    """A new job, one that was dispatched before, or none."""
    new = v.JOBS.map(lambda job: model.fresh([job])[0])
    if not model.exercise.dispatched:
        return st.none() | new | new
    return st.one_of(st.none(), new, new, again(model))


def _ticks(model: JobMachine) -> st.SearchStrategy[Sequence[Tick]]:
    """Ticks in a row of each schedule, each after the one before; some are a little wrong."""
    records = {record.id: record for record in _scheduled(model)}
    fired = list(model.exercise.ledger.schedules.fired.values())[-6:]
    aim = st.tuples(
        st.sampled_from([*records, *records, "nobody"]),
        _STEPS,
        _tick_jobs(model),
        st.sampled_from(["right", "right", "right", "right", "earlier", "revision", "again"]),
    )

    def built(aims: Sequence[tuple[str, float, NewJob | None, str]]) -> Sequence[Tick]:
        last = {id: record.last for id, record in records.items()}
        ticks: list[Tick] = []
        for id, step, job, how in aims:
            previous = last.get(id, model.exercise.now)
            tick = Tick(
                schedule_id=id,
                revision=records[id].revision if id in records else "r0",
                previous=previous,
                instant=previous + timedelta(seconds=step),
                job=job,
            )
            match how:
                case "earlier":
                    tick = replace(tick, previous=previous - timedelta(microseconds=1))
                case "revision":
                    tick = replace(tick, revision="another")
                case "again" if fired:
                    tick = replace(fired[len(ticks) % len(fired)], job=job)
                case _:
                    last[id] = tick.instant
            ticks.append(tick)
        return ticks

    return st.lists(aim, max_size=4).map(built)


class Model(JobMachine):
    """All calls of the contract that are made on the store's own connections, but for hints."""

    patient = False  # whether there is time for what takes many calls

    @initialize(
        steady=st.booleans(),
        patient=st.sampled_from([False, False, False, True]),
        limits=st.lists(v.LIMITS, max_size=3),
        schedules=st.booleans(),
    )
    def begin(self, steady: bool, patient: bool, limits: Sequence[Limit], schedules: bool) -> None:
        """Either there are periods and rates, or the clock may be set back."""
        self.exercise.steady, self.patient = steady, patient
        if _LIMITS(self):
            for limit in limits:
                self.put_limit(limit, lost=False)
        if schedules and _SCHEDULED(self):
            self.put_schedules({"s": b"d"}, lost=False)

    # --- unique keys ----------------------------------------------------------------------------

    @precondition(lambda self: self.exercise.ledger.keys.holding)
    @rule(target=JobMachine.calls, job=v.JOBS, unique=v.UNIQUES, key=of(_held_keys), lost=LOST)
    def enqueue_a_key_that_is_held(
        self, job: NewJob, unique: UniqueKey, key: str, lost: bool
    ) -> Call:
        jobs = self.fresh([replace(job, unique=replace(unique, key=key))])
        return self.make(Call("enqueue", (self.exercise.usable(jobs),)), lost)

    @precondition(lambda self: self.exercise.ledger.keys.ends(self.exercise.now))
    @rule(early=st.sampled_from([0, 1]))
    def time_comes_to_the_end_of_a_period(self, early: int) -> None:
        end = min(self.exercise.ledger.keys.ends(self.exercise.now))
        self.exercise.now = max(self.exercise.now, end - timedelta(microseconds=early))

    # --- limits ---------------------------------------------------------------------------------

    @precondition(_LIMITS)
    @rule(target=JobMachine.calls, limit=v.LIMITS, lost=LOST)
    def put_limit(self, limit: Limit, lost: bool) -> Call:
        return self.make(Call("put_limit", (self.exercise.fitting_limit(limit),)), lost)

    @precondition(_LIMITS)
    @rule(target=JobMachine.calls, key=v.LIMIT_KEYS, lost=LOST)
    def drop_limit(self, key: str, lost: bool) -> Call:
        return self.make(Call("drop_limit", (key,)), lost)

    @precondition(_LIMITS)
    @rule(
        target=JobMachine.calls,
        keys=v.KEYS_OF_JOBS,
        jobs=st.lists(v.JOBS, min_size=2, max_size=5),
        lost=LOST,
    )
    def enqueue_many_of_the_same_keys(
        self, keys: tuple[str, ...], jobs: Sequence[NewJob], lost: bool
    ) -> Call:
        alike = [replace(job, limits=keys, unique=None, delay=None, at=None) for job in jobs]
        return self.make(Call("enqueue", (self.exercise.usable(self.fresh(alike)),)), lost)

    @precondition(lambda self: self.exercise.ledger.limits.limits)
    @rule(
        jobs=st.lists(v.JOBS, min_size=3, max_size=6),
        pauses=st.lists(st.sampled_from([0.25, 0.5, 0.75, 0.999999]), min_size=3, max_size=3),
    )
    def a_worker_claims_and_ends_jobs_of_a_limit(
        self, jobs: Sequence[NewJob], pauses: Sequence[float]
    ) -> None:
        """One round after another, of which several are within a second."""
        limits = self.exercise.ledger.limits.limits
        keys = tuple(key for key in v.KEYS if governing(key, limits.values()))[:1]
        self.enqueue_many_of_the_same_keys(keys, jobs, lost=False)
        for pause in pauses:
            self.exercise.now += timedelta(seconds=pause)
            self.all_that_is_due_is_done(60.0, Completed())

    @precondition(lambda self: self.exercise.ledger.limits.claims)
    @rule(early=st.sampled_from([0, 1]))
    def time_comes_to_the_end_of_a_second(self, early: int) -> None:
        """A second after a claim that counted."""
        ends = [at + timedelta(seconds=1) for _, at in self.exercise.ledger.limits.claims]
        end = min((end for end in ends if end > self.exercise.now), default=self.exercise.now)
        self.exercise.now = max(self.exercise.now, end - timedelta(microseconds=early))

    # --- schedules ------------------------------------------------------------------------------

    @precondition(_SCHEDULED)
    @rule(new=st.dictionaries(_SCHEDULES, _DEFINITIONS, max_size=2), lost=LOST)
    def put_schedules(self, new: Mapping[str, bytes], lost: bool) -> None:
        schedules = [
            NewSchedule(id=id, revision=self.exercise.revision(), definition=definition)
            for id, definition in new.items()
        ]
        self.make(Call("put_schedules", (schedules,)), lost)

    @precondition(_SCHEDULED)
    @rule(target=JobMachine.calls, ids=st.lists(_SCHEDULES, min_size=1, max_size=2), lost=LOST)
    def drop_schedules(self, ids: Sequence[str], lost: bool) -> Call:
        return self.make(Call("drop_schedules", (ids,)), lost)

    @precondition(lambda self: self.exercise.ledger.schedules.schedules)
    @rule(id=_SCHEDULES, paused=st.booleans(), lost=LOST)
    def pause_schedule(self, id: str, paused: bool, lost: bool) -> None:
        self.make(Call("pause_schedule", (id, paused)), lost)

    @precondition(lambda self: self.exercise.ledger.schedules.schedules)
    @rule(target=JobMachine.calls, ticks=of(_ticks), lost=LOST)
    def fire(self, ticks: Sequence[Tick], lost: bool) -> Call:
        return self.make(Call("fire", (self.exercise.usable_ticks(ticks),)), lost)

    @precondition(lambda self: self.exercise.ledger.schedules.schedules)
    @rule(target=JobMachine.calls, ticks=of(_ticks), lost=LOST)
    def time_comes_to_a_tick(self, ticks: Sequence[Tick], lost: bool) -> Call:
        self.exercise.now = max([self.exercise.now, *(tick.instant for tick in ticks)])
        return self.make(Call("fire", (self.exercise.usable_ticks(ticks),)), lost)

    @invariant()
    def limits_and_schedules_are_those_that_stand(self) -> None:
        if self.exercise.ledger.limits.limits:
            self.exercise.check_limits()
        if _scheduled(self):
            self.exercise.check_schedules()

    # --- histories ------------------------------------------------------------------------------

    @precondition(_HISTORY)
    @rule(job_id=of(known_ids))
    def history(self, job_id: str) -> None:
        self.exercise.check_history(job_id)

    @precondition(lambda self: _HISTORY(self) and self.patient)
    @rule()
    def a_job_fails_more_often_than_is_kept(self) -> None:
        self.patient = False
        (job,) = self.fresh([NewJob(id="", name="work", queue="often")])
        self.make(Call("enqueue", ([job],)))
        for _ in range(103):
            request = self.exercise.request((QueueLimit("often", 1),), 1, 60.0)
            hold = self.exercise.ledger.holds.get(job.id)
            failed = [(hold, v.FAILED)] if hold else []
            self.make(Call("exchange", (failed, request)))
        self.exercise.check_history(job.id)
