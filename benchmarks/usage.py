"""What a process and its children use, from outside. Linux only: elsewhere there is no figure."""

import sys
import time
from pathlib import Path

__all__ = ["KNOWN", "cpu_seconds", "peak_memory", "resident_memory", "waiting_seconds"]

KNOWN = sys.platform == "linux"

_MIB = 1024.0


def cpu_seconds(pid: int) -> float:
    """CPU time of the process and its living descendants.

    A process's clock has nanoseconds, where /proc has hundredths of a second; its number is made
    as clock_getcpuclockid(3) makes it.
    """
    return sum(_clock(each) for each in _family(pid))


def waiting_seconds(pid: int) -> float:
    """How long the main thread of the process has been ready to run while others had the CPUs."""
    _, waiting, _ = _text(Path(f"/proc/{pid}/task/{pid}/schedstat")).split()
    return int(waiting) / 1e9


def resident_memory(pid: int) -> float:
    """MiB in memory now, summed over the process and its descendants."""
    return sum(_status(each, "VmRSS") for each in _family(pid)) / _MIB


def peak_memory(pid: int) -> float:
    """The most MiB that each of them ever had in memory, summed."""
    return sum(_status(each, "VmHWM") for each in _family(pid)) / _MIB


def _family(pid: int) -> list[int]:
    family = [pid]
    for each in family:  # grows
        for path in Path(f"/proc/{each}/task").glob("*/children"):
            family += [int(child) for child in _text(path).split()]
    return family


def _clock(pid: int) -> float:
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:  # a child that has just ended
        return 0.0


def _status(pid: int, field: str) -> float:
    for line in _text(Path(f"/proc/{pid}/status")).splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return float(value.split()[0])
    return 0.0  # a child that has just ended


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # a child that has just ended
        return ""
