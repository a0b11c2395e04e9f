"""Fresh job ids: UUID version 7 as text, which sorts by the time it was made.

Source: RFC 9562, section 5.7; 48 bits of Unix milliseconds, then 74 random bits.
"""

import os
from random import Random

__all__ = ["JobIds"]


class JobIds:
    """Makes ids that no other maker makes, in this process or another.

    The random bits come from a generator of its own, seeded by the kernel: asking the kernel for
    each id costs as much as the rest of a dispatch, and a program that seeds `random` must not get
    the same ids twice. A fork is noticed, so that a child does not repeat its parent's.
    """

    def __init__(self) -> None:
        self._pid = 0
        self._random = Random()

    def new(self, milliseconds: int) -> str:
        """An id for this instant of the wall clock."""
        if os.getpid() != self._pid:
            self._random = Random(os.urandom(32))
            self._pid = os.getpid()
        value = self._random.getrandbits(76) & 0xFFF_3FFF_FFFF_FFFF_FFFF
        value |= (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | 0x7000_8000_0000_0000_0000
        text = f"{value:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
