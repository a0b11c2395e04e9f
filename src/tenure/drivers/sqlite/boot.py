"""Which run of the system this is. Reads one file of it, and knows of no database."""

import sys
from pathlib import Path

__all__ = ["boot_id"]

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str | None:
    """What tells this run of the system from all others; None where nothing does."""
    if sys.platform != "linux":
        return None
    try:
        return _BOOT.read_text("ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
