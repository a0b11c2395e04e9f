"""Which jobs a run has, and what may become of each: values. It dispatches and runs nothing."""

import msgspec

__all__ = [
    "ALL",
    "KEYS",
    "LATE",
    "LEASE",
    "LONG",
    "MAX_STALLS",
    "MIXED",
    "ONE_AT_A_TIME",
    "POISON",
    "QUEUES",
    "RATE",
    "RATED",
    "SCHEDULES",
    "SKIP",
    "TICKING",
    "Kind",
    "known_ends",
]

LEASE = 3.0
MAX_STALLS = 2
QUEUES = ("default", "mail", "reports")
ONE_AT_A_TIME, KEYS = "one:", 5  # keys with a limit of one at a time
RATE = 10  # per second, of the key "rate"
ALL, SKIP = "every", "skipping"  # each "@every 1s"; of missed ticks it runs all, or none
SCHEDULES = (ALL, SKIP)


class Kind(msgspec.Struct, frozen=True):
    """The jobs of a name: how often it is chosen, how they are dispatched, how they must end."""

    name: str
    weight: int
    ends: str = "completed"
    max_attempts: int | None = 20
    timeout: float | None = None


MIXED = (
    Kind("async", 60),
    Kind("thread", 8),
    Kind("blocking", 5),
    Kind("flaky", 6),
    Kind("snoozing", 6),
    Kind("unique", 5),
    Kind("single", 3),
    Kind("failing", 3, "failed", 3),
    Kind("slow", 1, "failed", None, 0.2),
    Kind("overdue", 1, "completed", None, 0.2),
)
RATED = Kind("rated", 0)
LONG = Kind("long", 0)
POISON = Kind("poison", 0, "failed", None)
LATE = Kind("late", 0)  # its handler is known to workers that were started late in the run
TICKING = Kind("ticking", 0, "completed", None)


def known_ends() -> dict[str, str]:
    """The state in which the jobs of each name end, when nobody cancels them."""
    return {kind.name: kind.ends for kind in (*MIXED, RATED, LONG, POISON, LATE, TICKING)}
