"""In which order the queues of one worker are asked for jobs, and for how many each.

By weight unless strict: each queue has a credit that grows while others are served and shrinks when
it is itself, so that over time each gets jobs in proportion, and none starves. A queue that has
nothing to do takes nothing from the others. Pure bookkeeping, in jobs.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from tenure._runtime.settings import ServedQueue
from tenure.types import Claim, QueueLimit

__all__ = ["Lines"]


class Lines:
    """The queues of one worker. `used` counts what occupies its slots, by queue."""

    def __init__(
        self,
        queues: Sequence[ServedQueue],
        used: Callable[[], Counter[str]],
        *,
        strict: bool,
        concurrency: int,
    ) -> None:
        self._queues = queues
        self._used = used
        self._strict = strict
        self._bounded = any(queue.slots is not None for queue in queues)
        self._weights = sum(queue.weight for queue in queues)
        # More than a worker can hold at once would let a queue that was empty for long take over.
        self._most = float(concurrency)
        self._credits = {queue.name: 0.0 for queue in queues}
        self.held_back = False

    def ask(self, limit: int) -> tuple[QueueLimit, ...]:
        """What to ask for, given so many free slots; empty where every queue is at its bound.

        `held_back` says afterwards whether a queue has had less than it could take.
        """
        order = self._queues
        if not self._strict and len(order) > 1:
            order = sorted(order, key=lambda queue: -self._credits[queue.name])
        if not self._bounded:
            return tuple([QueueLimit(queue.name, limit) for queue in order])
        used = self._used()
        asked: list[QueueLimit] = []
        self.held_back = False
        for queue in order:
            free = limit if queue.slots is None else min(limit, queue.slots - used[queue.name])
            self.held_back |= free < limit
            if free > 0:
                asked.append(QueueLimit(queue.name, free))
        return tuple(asked)

    def taken(self, claims: Sequence[Claim]) -> None:
        """Note which queues the claimed jobs came from."""
        if self._strict or len(self._queues) == 1 or not claims:
            return
        served = Counter(claim.job.queue for claim in claims)
        for queue in self._queues:
            share = len(claims) * queue.weight / self._weights
            credit = self._credits[queue.name] + share - served[queue.name]
            self._credits[queue.name] = max(-self._most, min(self._most, credit))
