"""Text as every store can hold it: no NUL, no lone surrogates, not too long. Pure."""

__all__ = ["bounded", "clean"]


def clean(text: str) -> str:
    """Show what a store could not hold by its escape."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode("utf-8")


def bounded(text: str, longest: int) -> str:
    """At most `longest` characters of the text, with a mark where it was cut."""
    text = clean(text[: longest + 1])
    return text if len(text) <= longest else text[: longest - 1] + "…"
