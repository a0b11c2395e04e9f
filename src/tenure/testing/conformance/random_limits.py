"""Random calls with limited jobs, and the plain model that says what each claim must take.

The sequence of calls follows from the seed alone: the same on every store.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from tenure.driver import Driver, RecordItem
from tenure.outcomes import Completed, Failed, Outcome, Released, Retried, Snoozed
from tenure.standing import Limit, governing
from tenure.states import TERMINAL, State
from tenure.testing.conformance.builders import (
    T0,
    claim,
    counted,
    enqueue,
    failure,
    ids,
    new_job,
)
from tenure.testing.conformance.check import expect, expect_that
from tenure.types import Hold, ManualRetry, Move, QueueLimit, Recorded

__all__ = ["play"]

_SECOND = timedelta(seconds=1)
_LEASE = 6.0
_QUEUES = ("x", "y")
_KEYS = ("a", "b", "c-1", "c-2", "rate")
_CHANGING = ("a", "b", "c-*")
_RATE = Limit(key="rate", per_second=2)


# --- the model ----------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Job:
    id: str
    queue: str
    priority: int
    run_at: datetime
    arrival: int
    keys: tuple[str, ...]
    state: State = State.PENDING
    hold: Hold | None = None
    until: datetime = T0


@dataclass(slots=True)
class _Model:
    """All jobs, the limits, the paused queues, and when jobs of `rate` were claimed."""

    jobs: dict[str, _Job] = field(default_factory=dict[str, _Job])
    limits: dict[str, Limit] = field(default_factory=dict[str, Limit])
    paused: set[str] = field(default_factory=set[str])
    rated: list[datetime] = field(default_factory=list[datetime])

    def of(self, *states: State) -> list[_Job]:
        """The jobs in one of these states, by arrival."""
        return [job for job in self.jobs.values() if job.state in states]

    def crowded(self, key: str) -> bool:
        limit = governing(key, self.limits.values())
        if limit is None or limit.concurrent is None:
            return False
        return sum(key in job.keys for job in self.of(State.PROCESSING)) >= limit.concurrent

    def rate_free_at(self, now: datetime) -> datetime:
        """When one more claim of `rate` is within its limit: now, or later."""
        most = self.limits["rate"].per_second or 0
        recent = [at for at in self.rated if at > now - _SECOND]
        return now if len(recent) < most else recent[-most] + _SECOND

    def free_at(self, job: _Job, now: datetime) -> datetime | None:
        """When the job's keys let it be claimed; None where an end of a hold must come first."""
        if any(self.crowded(key) for key in job.keys):
            return None
        return self.rate_free_at(now) if "rate" in job.keys else now

    def take(self, queues: Sequence[QueueLimit], most: int, now: datetime) -> list[_Job]:
        """Take what a claim must take, in its order."""
        due = [job for job in self.of(State.PENDING) if job.run_at <= now]
        due.sort(key=lambda job: (-job.priority, job.run_at, job.arrival))
        taken: list[_Job] = []
        for queue in queues:
            left = queue.limit
            for job in due:
                if job.queue != queue.name or queue.name in self.paused:
                    continue
                if left and len(taken) < most and self.free_at(job, now) == now:
                    taken.append(job)
                    left -= 1
                    self._take(job, now)
        return taken

    def _take(self, job: _Job, now: datetime) -> None:
        job.state = State.PROCESSING
        job.until = now + timedelta(seconds=_LEASE)
        if "rate" in job.keys:
            self.rated.append(now)

    def next_due(self, queues: Sequence[str], now: datetime) -> datetime | None:
        """The latest instant that `next_due` may give."""
        waiting = [
            job
            for job in self.of(State.PENDING)
            if job.queue in queues and job.queue not in self.paused
        ]
        due = {(job.queue, job.priority, job.keys) for job in waiting if job.run_at <= now}
        times = [
            max(job.run_at, free)
            for job in waiting
            if job.run_at <= now or not job.keys or (job.queue, job.priority, job.keys) not in due
            if (free := self.free_at(job, now)) is not None
        ]
        return min((time for time in times if time > now), default=None)


# --- the calls ----------------------------------------------------------------------------------


class _Game:
    """One sequence of calls on a store, each answer held against the model."""

    def __init__(self, store: Driver, seed: int) -> None:
        self._store = store
        self._random = Random(seed)
        self._model = _Model()
        self._now = T0

    async def start(self) -> None:
        for limit in (_RATE, Limit(key="a", concurrent=1), Limit(key="c-*", concurrent=2)):
            await self._put(limit)

    async def step(self) -> None:
        calls = {
            self._dispatch: 5,
            self._claim: 8,
            self._record: 6,
            self._reclaim: 1,
            self._cancel: 1,
            self._delete: 1,
            self._move: 2,
            self._retry: 1,
            self._limit: 1,
            self._pause: 1,
        }
        (call,) = self._random.choices(list(calls), list(calls.values()))
        await call()
        self._now += timedelta(seconds=self._random.choice((0.0, 0.0, 0.25, 0.5, 1.0)))

    async def ask(self) -> None:
        """`next_due` is later than now, and not later than when a claim finds something."""
        queues = self._random.sample(_QUEUES, self._random.randint(1, 2))
        latest = self._model.next_due(queues, self._now)
        due = await self._store.next_due(queues, now=self._now)
        expect_that(due is None or due > self._now, f"next_due: {due}, at {self._now}")
        if latest is not None:
            late = due is None or due > latest
            expect_that(not late, f"next_due at {self._now}: {due}, and not {latest} or before")

    async def finish(self) -> None:
        """Serve all that waits, until nothing does."""
        for queue in sorted(self._model.paused):
            await self._store.pause(queue, False)
        self._model.paused.clear()
        for _ in range(len(self._model.jobs) + 20):
            running = self._model.of(State.PROCESSING)
            await self._settle([(job, Completed()) for job in running])
            if not self._model.of(State.PENDING):
                break
            await self._claim_from([QueueLimit(queue, 100) for queue in _QUEUES], 100)
            self._now += _SECOND
        counts = await counted(self._store, self._now)
        live = {name: number for name, number in counts.items() if name not in TERMINAL}
        expect(live, {}, "the counts of live jobs when all were served")

    async def _dispatch(self) -> None:
        jobs = [self._new() for _ in range(self._random.randint(1, 4))]
        batch = [
            new_job(
                job.id,
                queue=job.queue,
                priority=job.priority,
                limits=job.keys,
                at=None if job.run_at == self._now else job.run_at,
            )
            for job in jobs
        ]
        await enqueue(self._store, *batch, now=self._now)

    def _new(self) -> _Job:
        pick, number = self._random, len(self._model.jobs)
        job = _Job(
            id=f"{pick.randrange(1000):03}-{number}",  # as text in no order
            queue=pick.choice(_QUEUES),
            priority=pick.choice((0, 0, 0, 1)),
            run_at=self._now + timedelta(seconds=pick.choice((0.0, 0.0, 0.0, -1.0, 2.5))),
            arrival=number,
            keys=tuple(sorted(pick.sample(_KEYS, pick.choice((0, 1, 1, 1, 2, 2, 3))))),
        )
        self._model.jobs[job.id] = job
        return job

    async def _claim(self) -> None:
        pick = self._random
        names = pick.sample(_QUEUES, pick.randint(1, 2))
        await self._claim_from(
            [QueueLimit(name, pick.randint(1, 4)) for name in names], pick.randint(1, 6)
        )

    async def _claim_from(self, queues: Sequence[QueueLimit], most: int) -> None:
        right = self._model.take(queues, most, self._now)
        claims = await claim(self._store, *queues, limit=most, lease=_LEASE, now=self._now)
        expect(ids(claims), [job.id for job in right], f"the claim from {queues} at {self._now}")
        for job, claimed in zip(right, claims, strict=True):
            job.hold = claimed.hold

    async def _record(self) -> None:
        running = self._model.of(State.PROCESSING)
        some = self._random.sample(running, min(len(running), self._random.randint(1, 3)))
        await self._settle([(job, self._outcome()) for job in some])

    def _outcome(self) -> Outcome:
        delay = self._random.choice((0.0, 1.5))
        return self._random.choice(
            (
                Completed(),
                Completed(),
                Retried(delay, failure()),
                Snoozed(delay),
                Released("shutdown"),
                Released("unknown", delay),
                Failed(failure()),
            )
        )

    async def _settle(self, outcomes: Sequence[tuple[_Job, Outcome]]) -> None:
        items: list[RecordItem] = []
        for job, outcome in outcomes:
            if job.hold is not None:
                items.append((job.hold, outcome))
            job.hold = None
            match outcome:
                case Completed():
                    job.state = State.COMPLETED
                case Failed():
                    job.state = State.FAILED
                case Released(delay=None):
                    job.state = State.PENDING
                case Retried(delay=float(delay)) | Snoozed(delay) | Released(_, float(delay)):
                    job.state = State.PENDING
                    job.run_at = self._now + timedelta(seconds=delay)
                case _:
                    raise NotImplementedError
        answers = await self._store.record(items, now=self._now)
        expect(list(answers), [Recorded.APPLIED] * len(items), f"the answers to {items}")

    async def _reclaim(self) -> None:
        right = [job for job in self._model.of(State.PROCESSING) if job.until <= self._now]
        ended = await self._store.reclaim(100, [1.0], now=self._now)
        expect({hold.job_id for hold in ended}, {job.id for job in right}, "what was reclaimed")
        for job in right:
            job.state, job.hold, job.run_at = State.PENDING, None, self._now + _SECOND

    # --- control --------------------------------------------------------------------------------

    def _some(self, *states: State) -> list[_Job]:
        """One of those jobs, or none where there is none."""
        found = self._model.of(*states)
        return [self._random.choice(found)] if found else []

    async def _cancel(self) -> None:
        for job in self._some(State.PENDING):
            await self._store.cancel([job.id], now=self._now)
            job.state = State.CANCELLED

    async def _delete(self) -> None:
        for job in self._some(State.PENDING, State.FAILED):
            await self._store.delete([job.id], now=self._now)
            job.state = State.COMPLETED  # it is gone: neither claimed nor retried

    async def _retry(self) -> None:
        for job in self._some(State.FAILED, State.CANCELLED):
            await self._store.retry([ManualRetry(job.id)], now=self._now)
            job.state, job.run_at = State.PENDING, self._now

    async def _move(self) -> None:
        for job in self._some(State.PENDING):
            pick = self._random
            job.queue = pick.choice(_QUEUES)
            job.priority = pick.choice((0, 1))
            job.run_at = self._now + timedelta(seconds=pick.choice((-3.0, 0.0, 1.5)))
            move = Move(job_id=job.id, queue=job.queue, priority=job.priority, at=job.run_at)
            await self._store.move([move], now=self._now)

    async def _limit(self) -> None:
        key = self._random.choice((*_CHANGING, "rate"))
        if key == "rate":
            await self._put(Limit(key=key, per_second=self._random.randint(1, 3)))
        elif key in self._model.limits and self._random.random() < 0.4:
            expect(await self._store.drop_limit(key), True, f"drop_limit({key!r})")
            del self._model.limits[key]
        else:
            await self._put(Limit(key=key, concurrent=self._random.randint(1, 3)))

    async def _put(self, limit: Limit) -> None:
        await self._store.put_limit(limit)
        self._model.limits[limit.key] = limit

    async def _pause(self) -> None:
        queue = self._random.choice(_QUEUES)
        paused = queue not in self._model.paused and self._random.random() < 0.5
        await self._store.pause(queue, paused)
        (self._model.paused.add if paused else self._model.paused.discard)(queue)


async def play(store: Driver, *, seed: int, steps: int, asking: bool = False) -> None:
    """Make so many random calls and then serve what waits; with `asking`, look at `next_due`."""
    game = _Game(store, seed)
    await game.start()
    for _ in range(steps):
        await game.step()
        if asking:
            await game.ask()
    await game.finish()
