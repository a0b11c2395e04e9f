"""Text as every store can hold it: no NUL, no lone surrogates, not too long. Pure.

And what a handler may say of its job: how far it is, a note, a line.
"""

from tenure.errors import InvalidConfiguration

__all__ = ["bounded", "checked_fraction", "checked_text", "clean"]

_LONGEST = 500  # characters of a note or a line


def clean(text: str) -> str:
    """Show what a store could not hold by its escape."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode("utf-8")


def bounded(text: str, longest: int) -> str:
    """At most `longest` characters of the text, with a mark where it was cut."""
    text = clean(text[: longest + 1])
    return text if len(text) <= longest else text[: longest - 1] + "…"


def checked_fraction(value: object) -> float:
    """How far a job is. Raises `InvalidConfiguration` for anything but a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidConfiguration("fraction", value, "must be a number from 0 to 1")
    return float(value)


def checked_text(option: str, value: object) -> str:
    """A note or a line, cut where it is too long. Raises `InvalidConfiguration` for no text."""
    if not isinstance(value, str):
        raise InvalidConfiguration(option, value, "must be text")
    return bounded(value, _LONGEST)
