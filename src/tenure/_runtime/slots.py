"""Who occupies the worker's slots: running attempts, prefetched claims, unanswered outcomes.

Bookkeeping only, on the event loop; the keeper's thread reads `holds` and nothing else. The map of
attempts is keyed by hold, never by job id: after a lost lease one job may be here twice.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable
from enum import Enum
from itertools import islice

from msgspec import Struct

from tenure._runtime.progress import JobProgress
from tenure._runtime.running_job import RunningJob
from tenure.handlers import HandlerSpec
from tenure.outcomes import Failure
from tenure.types import Claim, Hold

__all__ = ["Attempt", "Elsewhere", "Prefetched", "Slots", "Stop"]


class Stop(Enum):
    """Why an attempt was asked to stop; the first reason stays."""

    TIMEOUT = "timeout"
    SHUTDOWN = "shutdown"
    LEASE_LOST = "lease_lost"
    CANCEL = "cancel"


class Elsewhere(Struct, frozen=True):
    """What a handler raised in a process: what stands for it here, the failure made of it there."""

    error: BaseException
    failure: Failure


class Attempt:
    """One start of a handler, from its claim to its outcome. Times are monotonic seconds."""

    __slots__ = (
        "called",
        "check_at",
        "claim",
        "deadline",
        "elsewhere",
        "grace",
        "in_thread",
        "job",
        "keep_until",
        "overdue",
        "progress",
        "sent",
        "spec",
        "started",
        "stop",
        "task",
        "timeout",
    )

    def __init__(
        self,
        claim: Claim,
        spec: HandlerSpec,
        sent: float,
        *,
        started: float,
        timeout: float,
        grace: float,
    ) -> None:
        self.claim = claim
        self.spec = spec
        self.sent = sent  # when the claim was asked for: its lease is no older
        self.timeout = timeout
        self.grace = grace
        self.begin(started)
        self.called = False  # the handler was, so that whatever is raised is its own
        self.job: RunningJob | None = None  # where the handler wants it, and so its progress
        self.progress: JobProgress | None = None
        self.task: asyncio.Task[None] | None = None
        self.stop: Stop | None = None
        self.elsewhere: Elsewhere | None = None
        self.overdue = False
        self.in_thread = False  # now, so that it cannot be interrupted

    def begin(self, now: float) -> None:
        """Its time counts from now."""
        self.started = now
        self.deadline = self.check_at = now + self.timeout
        self.keep_until = self.deadline + self.grace

    def wait(self) -> None:
        """It has its slot and waits for a process: its hold is kept, and no time counts."""
        self.deadline = self.check_at = self.keep_until = float("inf")


class Prefetched:
    """A claim that waits here for a slot."""

    __slots__ = ("claim", "sent", "spec")

    def __init__(self, claim: Claim, spec: HandlerSpec, sent: float) -> None:
        self.claim = claim
        self.spec = spec
        self.sent = sent


class Slots:
    """Counts what is in use; `watch` is called whenever something was given back.

    Up to `replacements` overdue attempts, those that have been so for longest, are made up for by a
    slot each, until they return: never more than `concurrency` others run beside them.
    """

    def __init__(self, concurrency: int, prefetch: int, replacements: int = 0) -> None:
        self._concurrency = concurrency
        self._prefetch = prefetch
        self._replacements = replacements
        self.running: dict[Hold, Attempt] = {}
        self.overdue: dict[Hold, Attempt] = {}  # of those running; in the order of becoming so
        self.ready: deque[Prefetched] = deque()
        self.unrecorded = 0
        self.asked = 0
        self.watch: Callable[[], None] | None = None
        self._capacity = concurrency

    @property
    def free(self) -> int:
        """How many more jobs may be claimed now."""
        used = len(self.running) + len(self.ready) + self.unrecorded + self.asked
        return self._capacity + self._prefetch - used

    @property
    def may_start(self) -> bool:
        """Whether one more handler may run now; outcomes on their way still count."""
        return len(self.running) < self._capacity

    @property
    def capacity(self) -> int:
        """How many handlers may run at once now."""
        return self._capacity

    @property
    def left(self) -> int:
        """How many slots overdue attempts leave to others; with none nothing can start."""
        return self._capacity - len(self.overdue)

    def replaces(self, attempt: Attempt) -> bool:
        """Whether an overdue attempt is made up for."""
        return attempt.claim.hold in islice(self.overdue, self._replacements)

    def _count_overdue(self) -> None:
        self._capacity = self._concurrency + min(self._replacements, len(self.overdue))

    @property
    def empty(self) -> bool:
        return not (self.running or self.ready or self.unrecorded or self.asked)

    def used(self) -> Counter[str]:
        """How many running and prefetched jobs there are of each queue, but for those made up for.

        So a queue gets the replacement of its own, whatever slots it may have.
        """
        used = Counter(_queues(self.running.values())) + Counter(_queues(self.ready))
        used.subtract(_queues(islice(self.overdue.values(), self._replacements)))
        return used

    def mark_overdue(self, attempt: Attempt) -> None:
        attempt.overdue = True
        self.overdue[attempt.claim.hold] = attempt
        self._count_overdue()

    def remove(self, hold: Hold) -> Attempt | None:
        """Give back the slot of an attempt; None where it has none here."""
        if self.overdue:
            self.overdue.pop(hold, None)
            self._count_overdue()
        return self.running.pop(hold, None)

    def clear(self) -> list[Attempt]:
        """Give back the slots of all that run."""
        running = list(self.running.values())
        self.running.clear()
        self.overdue.clear()
        self._count_overdue()
        return running

    def changed(self) -> None:
        if self.watch is not None:
            self.watch()

    def holds(self, now: float) -> list[Hold]:
        """What the keeper extends: running attempts within their grace, and prefetched claims.

        Called from the keeper's thread: each copy is one step of the interpreter, so that the
        loop cannot change what is being walked.
        """
        running = [a.claim.hold for a in list(self.running.values()) if now < a.keep_until]
        return running + [waiting.claim.hold for waiting in list(self.ready)]


def _queues(items: Iterable[Attempt | Prefetched]) -> list[str]:
    return [item.claim.job.queue for item in items]
