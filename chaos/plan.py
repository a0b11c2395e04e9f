"""What the hostile hand will do, and when: a pure function of the seed. It does nothing itself."""

import random
from collections.abc import Iterator, Sequence

import msgspec

from chaos.load import LEASE

__all__ = ["OFFSETS", "PRODUCERS", "WORKERS", "Step", "kinds", "plan"]

WORKERS, PRODUCERS = 3, 2
OFFSETS = (-3600.0, -600.0, -40.0, -1.5 * LEASE, 0.0, 1.5 * LEASE, 40.0, 600.0, 3600.0)
LONG = ("freeze", "silence")
QUICK = ("kill", "clock", "worker clock")
PAUSES = (1.2, 2.6)


class Step(msgspec.Struct, frozen=True):
    """`kind` at `at` seconds, for `seconds`.

    `kill` or `freeze` a worker; a `server` that is killed and started again; a `lock` on the file,
    a `disk` that is full. Of the network of a worker or a producer: `cut` it, `drop` what the
    server answers, or let nothing through (`silence`). The `clock` of the store, or that of a
    worker or a producer (`worker clock`), is set to be `offset` ahead of the true time, and stays
    so.
    """

    at: float
    kind: str
    victim: int
    seconds: float
    offset: float = 0.0


def kinds(*, server: bool, disk: bool, clocks: bool, settable: bool = True) -> tuple[str, ...]:
    """What can be done in turn, as often as it is to be done.

    `clocks`: those of our processes can be set; `settable`: that of the server can be set then.
    """
    ours = ("kill", "server", "drop", "kill", "cut", "freeze", "kill", "silence", "kill")
    return (
        *(ours if server else ("kill", "lock", "kill", "freeze", "kill")),
        *(("disk",) if disk else ()),
        *(("clock", "kill") if clocks and settable else ()),
        *(("worker clock",) if clocks and server else ()),
    )


def plan(seed: int, seconds: float, kinds: Sequence[str]) -> tuple[Step, ...]:
    """The steps of a run, in order; the same for the same arguments.

    The pauses of a short run are so short that each kind has its turn.
    """
    dice = random.Random(seed)
    lasting = sum(0.95 * LEASE if kind in LONG else 0.75 for kind in kinds if kind not in QUICK)
    each = max(0.2, (seconds - lasting) / len(kinds))
    pauses = [min(pause, each * share) for pause, share in zip(PAUSES, (0.5, 1.3), strict=True)]
    steps: list[Step] = []
    at = dice.uniform(0.5, 1.0)
    offsets: dict[str, float] = {"clock": 0.0, "worker clock": 0.0}
    for kind in _turns(dice, kinds):
        if at >= seconds:
            break
        length = dice.uniform(0.3, 1.2)
        if kind in LONG:  # for shorter and for longer than a lease
            length = dice.choice((0.4, 1.5)) * LEASE
        if kind in offsets:
            offsets[kind] = dice.choice([each for each in OFFSETS if each != offsets[kind]])
        victim = dice.randrange(WORKERS + PRODUCERS)
        steps.append(Step(at, kind, victim, length, offsets.get(kind, 0.0)))
        at += dice.uniform(*pauses) + (length if kind not in QUICK else 0.0)
    return tuple(steps)


def _turns(dice: random.Random, kinds: Sequence[str]) -> Iterator[str]:
    """Each kind as often as any other run of the same length has it, in an order of its own."""
    yield from kinds
    while True:
        yield from dice.sample(kinds, len(kinds))
