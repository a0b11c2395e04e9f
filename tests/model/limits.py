"""What the limits of a store let through, told from the calls and answers alone."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tenure.standing import Limit, governing

__all__ = ["LimitLedger", "Places"]

_SECOND = timedelta(seconds=1)


@dataclass(slots=True)
class Places:
    """What counts against the limits at one instant, from one claim of a job to the next."""

    limits: list[Limit]
    holds: Counter[str]
    claims: list[tuple[str, datetime]]

    def full(self, keys: Iterable[str], now: datetime) -> bool:
        """Whether a limit holds back a job with these keys."""
        free = self.free_at(keys, now)
        return free is None or free > now

    def free_at(self, keys: Iterable[str], now: datetime) -> datetime | None:
        """When no rate holds it back; None where the end of a hold must come first."""
        free = now
        for key in keys:
            limit = governing(key, self.limits)
            if limit is None:
                continue
            if limit.concurrent is not None and self.holds[key] >= limit.concurrent:
                return None
            if limit.per_second is not None:
                ends = sorted(at + _SECOND for claimed, at in self.claims if claimed == key)
                ends = [end for end in ends if end > now]
                if len(ends) >= limit.per_second:
                    free = max(free, ends[-limit.per_second])
        return free

    def take(self, keys: Iterable[str], now: datetime) -> None:
        """A job with these keys was claimed. A rate counts what was claimed under it."""
        for key in keys:
            self.holds[key] += 1
            limit = governing(key, self.limits)
            if limit is not None and limit.per_second is not None:
                self.claims.append((key, now))


@dataclass(slots=True)
class LimitLedger:
    """The limits that stand, and the claims that a rate has counted."""

    limits: dict[str, Limit] = field(default_factory=dict[str, Limit])
    were_put: bool = False  # a store may keep notes about keys when the last limit is gone
    claims: list[tuple[str, datetime]] = field(default_factory=list[tuple[str, datetime]])

    def put(self, limit: Limit) -> None:
        self.limits[limit.key] = limit
        self.were_put = True

    def places(self, held: Iterable[Iterable[str]]) -> Places:
        """What counts while jobs with these keys are held."""
        holds = Counter(key for keys in held for key in keys)
        return Places(list(self.limits.values()), holds, list(self.claims))
