"""Lanes: which waiting jobs with limits stand in the order of claims, and which are kept back.

Jobs of one queue and one priority that name the same keys are a lane. Its head stands in the order
of claims like any other job; the others are kept back, so that a claim never walks over them. A
claim that finds a key of the head full parks the lane on that key, and then the head is kept back
too. Exposing a head is always safe: it costs one more look. What must never be is a lane that stays
parked while its key has room, so for each key with room and each queue either no lane of the queue
is parked on the key, or a lane with that key and a due head is exposed. Whatever may end that
exposes the best lane that is parked on the key; `left`, `taken`, `refuse` and `freed` are told it.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from tenure.drivers.sqlite.encoding import read_limits
from tenure.drivers.sqlite.limit_keys import LimitKeys
from tenure.drivers.sqlite.rows import readable
from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Row, Transaction

__all__ = ["Lanes"]

_AT = statement("lane_at")
_BY_HEAD = statement("lane_by_head")
_PARKED = statement("lane_parked")
_QUEUE_AFTER = statement("lane_queue_after")
_KEY_AFTER = statement("lane_key_after")
_OPEN = statement("lane_open")
_CHANGE = statement("lane_change")
_CLOSE = statement("lane_close")
_NEXT = statement("lane_next")
_KEEP = statement("lane_keep")
_JOB = statement("lane_job")


class _Lane(Struct, gc=False):
    """A row of tenure_lanes."""

    id: int
    queue: str
    priority: int
    limits: str
    head: int
    head_at: int
    parked: str | None

    @property
    def keys(self) -> tuple[str, ...]:
        return keys_of(self.limits)


def keys_of(limits: str | None) -> tuple[str, ...]:
    """The keys in the column of a job; none in one that cannot be read."""
    return () if limits is None else readable(limits, read_limits, ())


class Lanes:
    """The lanes that one operation has to do with. `finish` comes last."""

    def __init__(self, transaction: Transaction, now: int) -> None:
        self._transaction = transaction
        self._now = now
        self._lanes: dict[int, _Lane] = {}
        self._places: dict[tuple[str, int, str], _Lane] = {}
        self.keys: LimitKeys = LimitKeys(transaction, now)
        self.exposed: bool = False  # whether jobs may have become claimable

    # --- jobs begin to wait, and cease to -------------------------------------------------------

    def place(self, seq: int, queue: str, priority: int, run_at: int, limits: str) -> int | None:
        """Give a waiting job its place: the lane to keep it back in, or None to expose it.

        Of jobs that are not in the table yet, those of a lane are given in its order.
        """
        lane = self._at(queue, priority, limits)
        if lane is None:
            # A new lane may be parked at once, so that a million of them need not be looked at.
            full = self.keys.full(keys_of(limits)) if run_at <= self._now else None
            lane = self._open(queue, priority, limits, seq, run_at, full)
            return None if full is None else lane.id
        if (run_at, seq) > (lane.head_at, lane.head):
            return lane.id
        if lane.parked is None:
            self._keep(lane.head, lane.id)
        self._change(lane, seq, run_at, lane.parked)
        return None if lane.parked is None else lane.id

    def enter(self, seq: int) -> None:
        """A job has become pending, says its row, in which it is not kept back."""
        queue, priority, run_at, limits = self._transaction.rows(_JOB, (seq,))[0]
        lane = self.place(seq, queue, priority, run_at, limits)
        if lane is not None:
            self._keep(seq, lane)

    def left(self, seq: int) -> None:
        """A job no longer waits in the lane in which it was; its row says so already."""
        lane = self._find(_BY_HEAD, seq)  # one that was not the head is not missed
        if lane is not None:
            self._advance(lane)

    # --- claims and their ends ------------------------------------------------------------------

    def taken(self, seq: int, keys: Iterable[str]) -> None:
        """An exposed job was claimed; its row says so already."""
        self.keys.take(keys)
        self.left(seq)

    def refuse(self, seq: int, full: str) -> None:
        """An exposed job cannot be claimed, since one of its keys is full: park its lane."""
        lane = self._find(_BY_HEAD, seq)
        if lane is None:  # other hands have been at it
            queue, priority, run_at, limits = self._transaction.rows(_JOB, (seq,))[0]
            lane = self._at(queue, priority, limits)
            lane = lane or self._open(queue, priority, limits, seq, run_at, None)
        self._keep(seq, lane.id)
        if lane.head == seq:
            self._change(lane, seq, lane.head_at, full)
            self._offer(lane)

    def ended(self, holds: Iterable[str | None]) -> set[str]:
        """Holds have ended, of jobs with these limits; the keys are then to be `freed`."""
        ended: set[str] = set()
        for limits in holds:
            keys = keys_of(limits)
            self.keys.give_back(keys)
            ended.update(keys)
        return ended

    def freed(self, keys: Iterable[str]) -> None:
        """These keys may have room: expose a lane of each queue, now or when a rate is over."""
        for key in keys:
            if self._has_room(key):
                self.keys.expect(key, None)
                queue = self._queue_after(key, "")
                while queue is not None:
                    self._expose_parked(key, queue)
                    queue = self._queue_after(key, queue)

    def changed(self, limited: str) -> None:
        """A limit was put or dropped, on a key or on keys with a beginning."""
        beginning = limited.removesuffix("*")
        self.freed([limited, beginning])
        if limited != beginning:
            key = self._key_after(beginning)
            while key is not None and key.startswith(beginning):
                self.freed([key])
                key = self._key_after(key)

    def correct(self, counted: Mapping[str, int], holds: Mapping[str, int]) -> None:
        """Replace counts of holds by what there is, where they differ."""
        wrong = [key for key in {**counted, **holds} if counted.get(key, 0) != holds.get(key, 0)]
        for key in wrong:
            self.keys.correct(key, holds.get(key, 0))
        self.freed(wrong)

    def finish(self) -> None:
        """Write what has been counted."""
        self.keys.write()

    # --- lanes ----------------------------------------------------------------------------------

    def _advance(self, lane: _Lane) -> None:
        """The head has gone: the next job of the lane takes its place."""
        was_exposed = lane.parked is None
        row = self._transaction.execute(_NEXT, (lane.id,)).fetchone()
        if row is None:
            self._close(lane)
        else:
            seq, run_at = row
            full = self.keys.full(lane.keys) if run_at <= self._now else None
            self._change(lane, seq, run_at, full)
            if full is None:
                self._show(lane)
        if was_exposed:
            self._offer(lane)

    def _offer(self, lane: _Lane) -> None:
        """An exposed head has gone: let those come that wait for its keys, where there is room."""
        for key in lane.keys:
            if self._has_room(key):
                self._expose_parked(key, lane.queue)

    def _has_room(self, key: str) -> bool:
        """Whether a key has room; where its rate is all that is in the way, note until when."""
        if self.keys.crowded(key):
            self.keys.expect(key, None)  # an end of a hold comes first, and looks again
            return False
        over = self.keys.rate_over(key)
        if over > self._now:
            self.keys.expect(key, None if self._queue_after(key, "") is None else over)
        return over <= self._now

    def _expose_parked(self, key: str, queue: str) -> None:
        """Expose the best lane of a queue that is parked on a key, up to the first with a due head.

        Only a clock that stepped back leaves one parked whose head is not due.
        """
        while (lane := self._find(_PARKED, key, queue)) is not None:
            self._change(lane, lane.head, lane.head_at, None)
            self._show(lane)
            if lane.head_at <= self._now:
                return

    def _show(self, lane: _Lane) -> None:
        """Let the head of a lane that is not parked into the order of claims."""
        self._keep(lane.head, None)
        self.exposed = True

    def _expect(self, full: str) -> None:
        """A lane is parked on a key: if for its rate alone, note when that is over."""
        if not self.keys.crowded(full):
            self.keys.expect(full, self.keys.rate_over(full))

    def _keep(self, seq: int, lane_id: int | None) -> None:
        self._transaction.execute(_KEEP, (lane_id, seq))

    # --- rows -----------------------------------------------------------------------------------

    def _at(self, queue: str, priority: int, limits: str) -> _Lane | None:
        known = self._places.get((queue, priority, limits))
        return known or self._find(_AT, queue, priority, limits)

    def _find(self, sql: str, *given: object) -> _Lane | None:
        rows = self._transaction.rows(sql, given)
        return self._known(rows[0]) if rows else None

    def _known(self, row: Row) -> _Lane:
        lane = self._lanes.get(row[0])
        if lane is None:
            lane = self._lanes[row[0]] = _Lane(*row)
            self._places[lane.queue, lane.priority, lane.limits] = lane
        return lane

    def _open(
        self,
        queue: str,
        priority: int,
        limits: str,
        head: int,
        head_at: int,
        parked: str | None,
    ) -> _Lane:
        row = (queue, priority, limits, head, head_at, parked)
        ((lane_id,),) = self._transaction.rows(_OPEN, row)
        if parked is not None:
            self._expect(parked)
        return self._known((lane_id, *row))

    def _change(self, lane: _Lane, head: int, head_at: int, parked: str | None) -> None:
        if (lane.head, lane.head_at, lane.parked) != (head, head_at, parked):
            lane.head, lane.head_at, lane.parked = head, head_at, parked
            self._transaction.execute(_CHANGE, (head, head_at, parked, lane.id))
            if parked is not None:
                self._expect(parked)

    def _close(self, lane: _Lane) -> None:
        self._transaction.execute(_CLOSE, (lane.id,))
        del self._lanes[lane.id]
        del self._places[lane.queue, lane.priority, lane.limits]

    def _queue_after(self, key: str, queue: str) -> str | None:
        ((following,),) = self._transaction.rows(_QUEUE_AFTER, (key, queue))
        return following if isinstance(following, str) else None

    def _key_after(self, key: str) -> str | None:
        ((following,),) = self._transaction.rows(_KEY_AFTER, (key,))
        return following if isinstance(following, str) else None
