"""The outcomes that wait to be written, and those under way, in batches.

One batch at a time, of all that there is; two where that is worthwhile for the store. A bad outcome
is found by halving. Bookkeeping only: it neither writes nor waits.
"""

import math
from collections import deque
from collections.abc import Sequence
from itertools import islice

from tenure._runtime.finished import Finished

__all__ = ["Outbox"]

_MOST = 512


class Outbox:
    """What one worker has to write. `overlap` is the driver's."""

    def __init__(self, overlap: int) -> None:
        self._enough = overlap or math.inf  # for a batch beside another
        self._pending: deque[Finished] = deque()
        self._under_way: list[list[Finished]] = []
        self._size = _MOST
        self.away = False  # the store, when it was last written to

    def __len__(self) -> int:
        """How many wait."""
        return len(self._pending)

    @property
    def unanswered(self) -> list[Finished]:
        """What waits or is under way."""
        return [item for batch in self._under_way for item in batch] + list(self._pending)

    @property
    def for_two(self) -> bool:
        """Whether another batch is to go out beside the one under way, if the store is there."""
        return len(self._pending) >= self._enough and len(self._under_way) == 1 and not self.away

    def add(self, item: Finished) -> None:
        self._pending.append(item)

    def take(self) -> list[Finished]:
        """The next batch, in order, no job twice; it is under way then. Empty where it has to wait.

        Half of what there is, where that leaves enough for another one.
        """
        if self._under_way and not self.for_two:
            return []
        size = self._size
        if not self._under_way and len(self._pending) >= 2 * self._enough:
            size = min(size, (len(self._pending) + 1) // 2)
        items = list(islice(self._pending, size))
        if len({item.claim.hold.job_id for item in items}) < len(items):
            items = _up_to_a_repeat(items)
        if len(items) == len(self._pending):
            self._pending.clear()
        else:
            for _ in items:
                self._pending.popleft()
        if items:
            self._under_way.append(items)
        return items

    def landed(self, items: list[Finished]) -> None:
        """The batch is not under way any more."""
        self._under_way = [batch for batch in self._under_way if batch is not items]

    def put_back(self, items: Sequence[Finished], *, maybe_applied: bool) -> None:
        """What was not answered comes first again."""
        for item in reversed(items):
            item.repeated = item.repeated or maybe_applied
            self._pending.appendleft(item)

    def accepted(self) -> None:
        """The store has answered a batch: the next ones may be larger."""
        self.away = False
        self._size = min(_MOST, self._size * 2)

    def refused(self, items: Sequence[Finished]) -> None:
        """The store will not take one of these: the next batches are smaller, to find it."""
        self._size = max(1, len(items) // 2)

    def clear(self) -> None:
        self._pending.clear()
        self._under_way.clear()


def _up_to_a_repeat(items: list[Finished]) -> list[Finished]:
    jobs: set[str] = set()
    for number, item in enumerate(items):
        job_id = item.claim.hold.job_id
        if job_id in jobs:
            return items[:number]
        jobs.add(job_id)
    return items
