"""How a value of somebody else's appears in a message: short, and without an error of its own."""

__all__ = ["shown"]

_LONGEST = 80


def shown(value: object) -> str:
    """The value's `repr`, cut to 80 characters; its type where it has none."""
    try:
        text = repr(value)
    except Exception:  # its own __repr__, or a number with too many digits
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
