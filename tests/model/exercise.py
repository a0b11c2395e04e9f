"""What is asked of both stores between the calls, and when all has ended."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from tenure.driver import Capability
from tenure.history import PastAttempt
from tenure.standing import Limit, Schedules
from tenure.states import State
from tenure.types import Enqueued, Expired, Held, NewJob, QueueLimit, Retention, UniqueKey
from tests.model.calling import Calls
from tests.model.counting import counted
from tests.model.pair import Call
from tests.model.values import KEYS, T0

__all__ = ["Exercise"]

EVERYTHING = 1000
LAST = T0 + timedelta(days=58_500)  # past every `at` that the values have


class Exercise(Calls):
    """The calls, and what must hold after each of them."""

    # --- after each step ------------------------------------------------------------------------

    def check_counts(self) -> None:
        counts = self.pair.counts(self.now)
        assert counts == counted(self.view, self.now, frozenset(self.ledger.paused)), "I1: counts"

    def check_leases(self) -> None:
        """Which leases have run out, up to a limit; and, seen from far in the future, all of them.

        Which of those that end at the same instant come within the limit is left free.
        """
        for now, limit in ((self.now, 2), (LAST, EVERYTHING)):
            found: Expired = self.pair.of_tested(Call("expired", (limit,)), now)
            right = self.ledger.run_out(now, ahead=True)
            assert found.now == now
            ends = [entry.until for entry in found.holds]
            assert ends == list(right.values())[:limit], "I6, I7: the ends of leases"
            assert {entry.hold for entry in found.holds} <= right.keys()
            assert all(self.ledger.leases[e.hold.job_id] == e.lease for e in found.holds)

    def check_keys(self) -> None:
        """I8: who holds each key, which a batch asks that is refused for a duplicate in it."""
        if not self.view or Capability.UNIQUE not in self.capabilities:
            self.settle()
            return
        asking = [
            NewJob(id=f"asks-{n}", unique=UniqueKey(key=key), name="asks")
            for n, key in enumerate(KEYS)
        ]
        known = next(iter(self.view))
        duplicate = replace(self.ledger.accepted[known], name="another content")
        answers: Sequence[Enqueued | Held] = self.pair.ask(
            Call("enqueue", ([*asking, duplicate],)), self.now
        )
        assert answers[-1] is Enqueued.DUPLICATE
        assert self.pair.view() == self.view, "I15: a refused batch left a trace"
        found = {
            key: answer if isinstance(answer, Held) else None
            for key, answer in zip(KEYS, answers, strict=False)
        }
        self.ledger.keys.check_answers(found, self.view, self.now)

    def check_histories(self) -> None:
        """Of the jobs whose history this step may have changed."""
        touched, self.ledger.histories.touched = self.ledger.histories.touched, set()
        for job_id in sorted(touched) if Capability.HISTORY in self.capabilities else []:
            self.check_history(job_id)

    def check_history(self, job_id: str) -> None:
        found: Sequence[PastAttempt] = self.pair.ask(Call("history", (job_id,)), None)
        self.ledger.histories.check(job_id, found)

    def check_limits(self) -> None:
        found: Sequence[Limit] = self.pair.ask(Call("limits"), None)
        assert list(found) == [limit for _, limit in sorted(self.ledger.limits.limits.items())]

    def check_schedules(self) -> None:
        found: Schedules = self.pair.ask(Call("schedules"), self.now)
        assert found.now == self.now
        self.ledger.schedules.check(found.items)

    def check_next_due(self, queues: Sequence[str]) -> None:
        """The earliest instant; where keys are or were, one at which there is something, or before.

        A job behind a due one of the same queue, priority and keys need not be looked at.
        """
        call = Call("next_due", (queues,))
        found: list[datetime | None] = [self.pair.of_tested(call, self.now)]
        found.append(self.pair.of_reference(call, self.now))
        waiting = [
            job
            for job in self.view.values()
            if job.queue in queues and job.queue not in self.ledger.paused
            if job.state is State.PENDING
        ]
        latest = self.ledger.next_due(waiting, self.now)
        accepted = self.ledger.accepted.values()
        if self.ledger.limits.were_put or any(job.limits for job in accepted):
            for due in found:
                assert due is None or due > self.now, f"next_due is not after now: {due}"
                early = latest is None or (due is not None and due <= latest)
                assert early, f"next_due is too late: {due}, and not {latest}"
        else:
            assert found == [latest, latest], f"next_due: {found}, and not {latest}"

    def check_oldest_due(self, queues: Sequence[str]) -> None:
        """Exact, whatever is paused or held by a limit."""
        call = Call("oldest_due", (queues,))
        due = [
            [
                job.run_at
                for job in self.view.values()
                if job.queue == queue and job.state is State.PENDING and job.run_at <= self.now
            ]
            for queue in queues
        ]
        right = [min(times, default=None) for times in due]
        assert list(self.pair.of_tested(call, self.now)) == right, "oldest_due"
        assert list(self.pair.of_reference(call, self.now)) == right, "oldest_due"

    # --- at the end -----------------------------------------------------------------------------

    def end_everything(self) -> None:
        """I16: what has ended goes when it is pruned, and nothing of it stays."""
        self.now = LAST
        self.make(Call("reclaim", (EVERYTHING, (0.0,)), {"only": None}))
        self.make(Call("cancel", (list(self.view),)))
        self.now += timedelta(minutes=2)
        self.make(Call("prune", (Retention(completed=0, failed=0, cancelled=0), EVERYTHING)))
        assert self.view == {}, "I16: a finished job outlives its retention"
        if Capability.HISTORY in self.capabilities:
            self.ledger.histories.touched |= self.dispatched.keys()
            self.check_histories()
        if Capability.SCHEDULES in self.capabilities:
            self.make(Call("drop_schedules", (list(self.ledger.schedules.schedules),)))
            self.check_schedules()
        self._end_keys()

    def _end_keys(self) -> None:
        """I16: nobody holds a key, and nobody counts against a limit."""
        if Capability.LIMITS in self.capabilities:
            for key in list(self.ledger.limits.limits):
                self.make(Call("drop_limit", (key,)))
            for key in KEYS:
                self.make(Call("put_limit", (Limit(key=key, concurrent=1, per_second=1),)))
        jobs = [
            NewJob(
                id=f"last-{n}", name="work", queue="last", unique=UniqueKey(key=key), limits=(key,)
            )
            for n, key in enumerate(KEYS)
        ]
        self.make(Call("enqueue", ([self.fitting(job) for job in jobs],)))
        assert list(self.view) == [job.id for job in jobs], "I16: a key outlives its job"
        request = self.request((QueueLimit("last", len(jobs)),), len(jobs), 60.0)
        self.make(Call("claim", (request,)))
        assert len(self.ledger.holds) == len(jobs), "I16: a place of a limit outlives its hold"
