"""What an examination of a store finds: values only."""

from typing import Literal

from msgspec import Struct

__all__ = ["Finding", "error", "fine", "skew", "warning"]

_SKEW = 1.0  # seconds


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that was looked at. An `error` can lose jobs or stops the work."""

    level: Literal["ok", "warning", "error"]
    about: str
    message: str
    remedy: str = ""


def fine(about: str, message: str) -> Finding:
    return Finding(level="ok", about=about, message=message)


def warning(about: str, message: str, remedy: str) -> Finding:
    return Finding(level="warning", about=about, message=message, remedy=remedy)


def error(about: str, message: str, remedy: str) -> Finding:
    return Finding(level="error", about=about, message=message, remedy=remedy)


def skew(seconds: float) -> Finding:
    """This machine's clock against the store's, by how much it is ahead."""
    if abs(seconds) < _SKEW:
        return fine("clock", f"within {_SKEW:g} s of the store's")
    where = "ahead of" if seconds > 0 else "behind"
    return warning(
        "clock",
        f"this machine is {abs(seconds):.1f} s {where} the store",
        "let both be set by NTP; delays go by the store's clock, a time given with at= by its own",
    )
