"""How many holds and recent claims each key has, and whether its limit lets one more be claimed."""

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from tenure.standing import Limit, governing

__all__ = ["KeyLimits"]

_WINDOW = timedelta(seconds=1)


class KeyLimits:
    """The limits of one store and what counts against them.

    The holds of every key are counted, whether or not a limit governs it: one may be put at any
    time. Claims are remembered for a second, where a rate governs the key.
    """

    def __init__(self) -> None:
        self._limits: dict[str, Limit] = {}
        self._holds: Counter[str] = Counter()
        self._claims: dict[str, deque[datetime]] = {}

    def put(self, limit: Limit) -> None:
        self._limits[limit.key] = limit

    def drop(self, key: str) -> bool:
        return self._limits.pop(key, None) is not None

    def all(self) -> Sequence[Limit]:
        return [limit for _, limit in sorted(self._limits.items())]

    def full(self, keys: Iterable[str], now: datetime) -> bool:
        """Whether one of the keys lets no further claim through now."""
        return any(self._crowded(key) or self._rate_free_at(key, now) > now for key in keys)

    def free_at(self, keys: Iterable[str], now: datetime) -> datetime | None:
        """When the rates of all keys let a claim through; None where an end of a hold must."""
        keys = list(keys)
        if any(self._crowded(key) for key in keys):
            return None
        return max((self._rate_free_at(key, now) for key in keys), default=now)

    def take(self, keys: Iterable[str], now: datetime) -> None:
        """Count a claim, and the hold that it makes."""
        for key in keys:
            self._holds[key] += 1
            if self._rate(key) is not None:
                self._claims.setdefault(key, deque()).append(now)

    def give_back(self, keys: Iterable[str]) -> None:
        """A hold has ended."""
        for key in keys:
            self._holds[key] -= 1
            if not self._holds[key]:
                del self._holds[key]

    def forget(self, now: datetime) -> None:
        """Drop the claims that no longer count."""
        self._claims = {
            key: recent
            for key, claims in self._claims.items()
            if (recent := deque(at for at in claims if at > now - _WINDOW))
        }

    def _crowded(self, key: str) -> bool:
        limit = governing(key, self._limits.values())
        if limit is None or limit.concurrent is None:
            return False
        return self._holds[key] >= limit.concurrent

    def _rate(self, key: str) -> int | None:
        limit = governing(key, self._limits.values())
        return None if limit is None else limit.per_second

    def _rate_free_at(self, key: str, now: datetime) -> datetime:
        """When fewer claims than its rate are within the last second: now, or later."""
        rate = self._rate(key)
        if rate is None:
            return now
        # A claim of the far future was made before the clock stepped back: it must not block.
        recent = sorted(
            at for at in self._claims.get(key, ()) if now - _WINDOW < at <= now + _WINDOW
        )
        return now if len(recent) < rate else recent[-rate] + _WINDOW
