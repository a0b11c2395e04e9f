"""Fresh job ids: UUID version 7 as text, which sorts by the time it was made.

Source: RFC 9562, section 5.7; 48 bits of Unix milliseconds, then 74 random bits.
"""

import os
from random import Random

__all__ = ["JobIds"]

# The two bits of the variant, 10, before two that are random.
_VARIANTS = dict(zip("0123456789abcdef", 4 * "89ab", strict=True))


class JobIds:
    """Makes ids that no other maker makes, in this process or another.

    The random bits come from a generator of its own, seeded by the kernel: asking the kernel for
    each id costs as much as the rest of a dispatch, and a program that seeds `random` must not get
    the same ids twice. A fork is noticed, so that a child does not repeat its parent's.
    """

    def __init__(self) -> None:
        self._pid = 0
        self._random = Random()
        self._milliseconds = -1
        self._beginning = ""  # of the ids of that millisecond

    def new(self, milliseconds: int) -> str:
        """An id for this instant of the wall clock."""
        if os.getpid() != self._pid:
            self._random = Random(os.urandom(32))
            self._pid = os.getpid()
        if milliseconds != self._milliseconds:
            time = f"{milliseconds & 0xFFFF_FFFF_FFFF:012x}"
            self._milliseconds, self._beginning = milliseconds, f"{time[:8]}-{time[8:]}-7"
        chance = f"{self._random.getrandbits(76):019x}"
        variant = _VARIANTS[chance[3]]
        return f"{self._beginning}{chance[:3]}-{variant}{chance[4:7]}-{chance[7:]}"
