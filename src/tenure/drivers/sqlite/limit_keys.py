"""What counts against the limits on keys, as one operation reads and changes it.

The holds of every key are counted, whether or not a limit governs it: one may be put at any time.
Claims are noted where a rate governs the key, and count for a second. What is changed here is
written by `write`, once for the operation.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Transaction
from tenure.standing import Limit

__all__ = ["WINDOW", "LimitKeys"]

WINDOW = 1_000_000  # microseconds: a rate is so many claims in so long

_GET = statement("holds_get")
_SET = statement("holds_set")
_DROP = statement("holds_drop")
_RECENT = statement("claims_recent")
_NOTE = statement("claims_add")
_DROP_CLAIMS = statement("claims_drop")


class _Key(Struct, gc=False):
    """A row of tenure_holds, and the limit of its key."""

    limit: Limit | None
    holds: int
    free_at: int | None
    changed: bool = False
    claims: int = 0  # not written yet


class LimitKeys:
    """The keys that one operation has to do with."""

    def __init__(self, transaction: Transaction, now: int) -> None:
        self._transaction = transaction
        self._now = now
        self._keys: dict[str, _Key] = {}
        self._windows: dict[str, list[tuple[int, int]]] = {}

    def full(self, keys: Iterable[str]) -> str | None:
        """The first of the keys that lets no further claim through now."""
        for key in keys:
            if self.crowded(key) or self.rate_over(key) > self._now:
                return key
        return None

    def free_at(self, keys: Sequence[str]) -> int | None:
        """When the rates of all keys let a claim through; None where an end of a hold must."""
        if any(self.crowded(key) for key in keys):
            return None
        return max((self.rate_over(key) for key in keys), default=self._now)

    def crowded(self, key: str) -> bool:
        """Whether as many holds name the key as may at once."""
        known = self._key(key)
        limit = known.limit
        if limit is None or limit.concurrent is None:
            return False
        return known.holds >= limit.concurrent

    def rate_over(self, key: str) -> int:
        """When fewer claims than its rate are within the last second: now, or later."""
        limit = self._key(key).limit
        if limit is None or limit.per_second is None:
            return self._now
        count = 0
        for at, n in self._window(key):
            count += n
            if count >= limit.per_second:
                return at + WINDOW
        return self._now

    def take(self, keys: Iterable[str]) -> None:
        """Count a claim, and the hold that it makes."""
        for key in keys:
            known = self._key(key)
            known.holds += 1
            known.changed = True
            if known.limit is not None and known.limit.per_second is not None:
                known.claims += 1
                self._note(key)

    def give_back(self, keys: Iterable[str]) -> None:
        """A hold has ended."""
        for key in keys:
            known = self._key(key)
            known.holds = max(known.holds - 1, 0)
            known.changed = True

    def correct(self, key: str, holds: int) -> None:
        """Replace a count by the number of holds that there are."""
        known = self._key(key)
        known.holds = holds
        known.changed = True

    def expect(self, key: str, free_at: int | None) -> None:
        """Note when lanes that are parked on the key for its rate are to be looked at again."""
        known = self._key(key)
        if known.free_at != free_at:
            known.free_at = free_at
            known.changed = True

    def write(self) -> None:
        """Write what was changed. Rows that say nothing are removed."""
        execute = self._transaction.execute
        for key, known in self._keys.items():
            if known.changed:
                if known.holds or known.free_at is not None:
                    execute(_SET, (key, known.holds, known.free_at))
                else:
                    execute(_DROP, (key,))
                known.changed = False
            if known.claims:
                execute(_DROP_CLAIMS, (key, self._now - WINDOW))
                execute(_NOTE, (key, self._now, known.claims))
                known.claims = 0

    def _key(self, key: str) -> _Key:
        known = self._keys.get(key)
        if known is None:
            row = self._transaction.execute(_GET, (key,)).fetchone()
            holds, free_at = row or (0, None)
            limit = self._transaction.limit_of(key)
            known = self._keys[key] = _Key(limit, holds, free_at)
        return known

    def _note(self, key: str) -> None:
        window = self._window(key)
        place = next((n for n, (at, _) in enumerate(window) if at <= self._now), len(window))
        if place < len(window) and window[place][0] == self._now:
            window[place] = (self._now, window[place][1] + 1)
        else:
            window.insert(place, (self._now, 1))

    def _window(self, key: str) -> list[tuple[int, int]]:
        """The claims that count, newest first, with how many there were at each instant.

        One of the far future was made before the clock stepped back, and must not block.
        """
        window = self._windows.get(key)
        if window is None:
            span = (key, self._now - WINDOW, self._now + WINDOW)
            window = self._windows[key] = self._transaction.rows(_RECENT, span)
        return window
