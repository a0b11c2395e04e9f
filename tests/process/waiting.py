"""The only wait of these tests: until something is so, or a deadline that says what it was."""

import time
from collections.abc import Callable

__all__ = ["wait_until"]


def wait_until(
    predicate: Callable[[], bool], describe: Callable[[], str], *, seconds: float = 30.0
) -> None:
    """Wait until the predicate holds; after `seconds`, fail with what `describe` tells."""
    deadline = time.monotonic() + seconds
    while not predicate():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {describe()}")
        time.sleep(0.02)
