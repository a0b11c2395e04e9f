"""When a failed attempt is followed by another, and after how long. Pure.

Source of the jitter: "full jitter", a delay drawn evenly between 0 and the exponential bound,
which spreads a burst of failures best (Brooker, "Exponential Backoff and Jitter", AWS 2015).
"""

import math
from random import random
from typing import cast

from tenure.errors import InvalidConfiguration

__all__ = ["RetryPolicy"]

_TEN_YEARS = 3653 * 86400.0  # seconds; no store takes a longer delay


class RetryPolicy:
    """Exponential backoff with full jitter and a cap.

    The wait before attempt n+1 is drawn evenly from 0 to `min(cap, base * factor ** (n - 1))`
    seconds; without `jitter` it is that bound. `max_attempts` bounds the starts, crashes included.
    Only failures that are instances of `retry_on` and not of `give_up_on` are retried; a timeout
    counts as `TimeoutError`. Immutable; raises `InvalidConfiguration` for an impossible option.
    """

    __slots__ = ("base", "cap", "factor", "give_up_on", "jitter", "max_attempts", "retry_on")

    def __init__(
        self,
        *,
        max_attempts: int = 5,
        base: float = 1.0,
        factor: float = 2.0,
        cap: float = 3600.0,
        jitter: bool = True,
        retry_on: tuple[type[BaseException], ...] = (Exception,),
        give_up_on: tuple[type[BaseException], ...] = (),
    ) -> None:
        if not _is_int(max_attempts) or not 1 <= max_attempts <= 10_000:
            raise InvalidConfiguration("max_attempts", max_attempts, "must be from 1 to 10,000")
        _check("base", base, 0.0)
        _check("factor", factor, 1.0)
        _check("cap", cap, 0.0)
        if cap > _TEN_YEARS:
            raise InvalidConfiguration("cap", cap, "must be at most ten years")
        _check_classes("retry_on", retry_on)
        _check_classes("give_up_on", give_up_on)
        self.max_attempts = max_attempts
        self.base = base
        self.factor = factor
        self.cap = cap
        self.jitter = jitter
        self.retry_on = retry_on
        self.give_up_on = give_up_on

    def __repr__(self) -> str:
        return (
            f"RetryPolicy(max_attempts={self.max_attempts}, base={self.base}, "
            f"factor={self.factor}, cap={self.cap}, jitter={self.jitter})"
        )

    def retries(self, error: BaseException) -> bool:
        """Whether a failure of this kind may be retried at all."""
        return isinstance(error, self.retry_on) and not isinstance(error, self.give_up_on)

    def delay(self, attempt: int) -> float:
        """Seconds to wait after the `attempt`-th start failed (from 1); finite, 0 to `cap`."""
        bound = self.bound(attempt)
        return bound * random() if self.jitter else bound

    def bound(self, attempt: int) -> float:
        """The longest `delay` for this attempt. Never overflows."""
        if self.base == 0.0 or self.cap == 0.0:
            return 0.0
        # In logarithms, so that factor ** 2000 is never computed.
        exponent = math.log(self.base) + (attempt - 1) * math.log(self.factor)
        if exponent >= math.log(self.cap):
            return self.cap
        return min(self.cap, math.exp(exponent))


def _check(option: str, value: object, least: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidConfiguration(option, value, f"must be a number of at least {least:g}")
    if not math.isfinite(value) or value < least:
        raise InvalidConfiguration(option, value, f"must be finite and at least {least:g}")


def _check_classes(option: str, value: object) -> None:
    classes = cast("tuple[object, ...]", value if isinstance(value, tuple) else (None,))
    if not all(isinstance(item, type) and issubclass(item, BaseException) for item in classes):
        raise InvalidConfiguration(option, classes, "must be a tuple of exception classes")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
