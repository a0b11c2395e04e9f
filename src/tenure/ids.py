"""Fresh job ids: UUID version 7 as text, which sorts by the time it was made.

Source: RFC 9562, section 5.7; 48 bits of Unix milliseconds, then 74 random bits.
"""

import os

__all__ = ["uuid7"]


def uuid7(milliseconds: int) -> str:
    """A new id for this instant of the wall clock. Safe after a fork: the kernel is asked."""
    value = int.from_bytes(os.urandom(10)) & 0x0FFF_3FFF_FFFF_FFFF_FFFF
    value |= (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | 0x7000_8000_0000_0000_0000
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
