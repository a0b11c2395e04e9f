"""For how long the wall clock has gone on without being set, as far as whoever uses the file knows.

The time since the system's boot goes on while a wall clock is set, and is the same for all its
processes. So how far the one is ahead of the other is kept in the file, by whoever looks for
expired leases: who starts after the clock was set learns of it from those who looked before.

The holds of another boot are nobody's any more, whatever became of the clock in between.
"""

from math import inf

from msgspec.structs import replace

from tenure.clock import Clock
from tenure.drivers.sqlite.boot import boot_id
from tenure.drivers.sqlite.encoding import micros, span
from tenure.drivers.sqlite.engine import Engine
from tenure.drivers.sqlite.statements import statement
from tenure.drivers.sqlite.transaction import Operation, Transaction
from tenure.types import Expired

__all__ = ["steady"]

_SEEN = statement("clock_seen")
_NOTE = statement("clock_note")

_SECOND = 1_000_000
_TOLERANCE = _SECOND  # between two looks at both clocks, on a machine that may be busy


async def steady(found: Expired, engine: Engine, clock: Clock) -> Expired:
    """The same, with for how long the clock has not been set. Writes only where that is new."""
    boot = boot_id()
    if boot is None:
        return found
    known = await engine.read(_known(boot, clock))
    if known is None:
        known = await engine.write(_note(boot, clock))
    return replace(found, steady=known)


def _known(boot: str, clock: Clock) -> Operation[float | None]:
    """For how many seconds, inf where it was never set; None where that has to be noted first."""

    def run(transaction: Transaction) -> float | None:
        ahead, since_boot = _looked(clock)
        for known, before, set_at in transaction.rows(_SEEN):
            if known == boot and abs(ahead - before) <= _TOLERANCE:
                return inf if set_at is None else max(0, since_boot - set_at) / _SECOND
        return None

    return run


def _note(boot: str, clock: Clock) -> Operation[float]:
    """Keep that the clock was set, or that nothing is known of this boot, unless it is kept."""

    def run(transaction: Transaction) -> float:
        known = _known(boot, clock)(transaction)
        if known is not None:
            return known
        ahead, since_boot = _looked(clock)
        was_set = any(before == boot for before, _, _ in transaction.rows(_SEEN))
        transaction.execute(_NOTE, (boot, ahead, since_boot if was_set else None))
        return 0.0 if was_set else inf

    return run


def _looked(clock: Clock) -> tuple[int, int]:
    """How far the wall clock is ahead of the time since boot, and that; microseconds."""
    since_boot = span(clock.monotonic())
    return micros(clock.now()) - since_boot, since_boot
