"""How long to put back jobs that cannot run here, for want of a handler or of a key.

Pure bookkeeping, bounded.
"""

from msgspec import Struct

__all__ = ["UnhandledNames"]

_FIRST = 5.0
_LONGEST = 60.0
_REPORT_EVERY = 60.0
# A round is over a little before its delay is: that is counted by the store's clock, which need not
# run as ours does, and a job that came back a microsecond early would wait as long once more.
_ROUND = 0.9
_MOST_NAMES = 1000


class _Round(Struct):
    delay: float
    ends: float
    reported: float


class UnhandledNames:
    """Delays by name: 5 s, doubled up to 60 s once in a round.

    A round is over when the delay that it gave has passed, that is when a job of the name comes
    back; all jobs of the name within one round wait equally long.
    """

    def __init__(self) -> None:
        self._rounds: dict[str, _Round] = {}

    def delay(self, name: str, now: float) -> float:
        """Seconds until a job of this name is worth another look; `now` is monotonic."""
        found = self._rounds.get(name)
        if found is None:
            if len(self._rounds) >= _MOST_NAMES:
                del self._rounds[min(self._rounds, key=lambda key: self._rounds[key].ends)]
            ends = now + _FIRST * _ROUND
            found = _Round(delay=_FIRST, ends=ends, reported=float("-inf"))
            self._rounds[name] = found
        elif now >= found.ends:
            found.delay = min(_LONGEST, found.delay * 2)
            found.ends = now + found.delay * _ROUND
        return found.delay

    def should_report(self, name: str, now: float) -> bool:
        """Whether it is time to tell of this name again: once a minute."""
        found = self._rounds[name]
        if now - found.reported < _REPORT_EVERY:
            return False
        found.reported = now
        return True
