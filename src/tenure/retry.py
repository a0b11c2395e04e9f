"""When a failed attempt is followed by another, and after how long. Pure.

Source of the jitter: "full jitter", a delay drawn evenly between 0 and its bound, which spreads a
burst of failures best (Brooker, "Exponential Backoff and Jitter", AWS 2015).
"""

import inspect
import math
from collections.abc import Callable, Iterable
from datetime import timedelta
from itertools import islice
from random import random
from typing import TypedDict, Unpack, cast

from tenure.errors import InvalidConfiguration

__all__ = ["RetryPolicy"]

_TEN_YEARS = 3653 * 86400.0  # seconds; no store takes a longer delay

Errors = tuple[type[BaseException], ...]
Wait = Callable[[int, BaseException], float | timedelta | None]


class Common(TypedDict):
    """The options that all policies have."""

    max_attempts: int
    cap: float | timedelta
    jitter: bool
    retry_on: Errors
    give_up_on: Errors


class RetryPolicy:
    """Exponential backoff with full jitter and a cap.

    The wait before attempt n+1 is drawn evenly from 0 to `min(cap, base * factor ** (n - 1))`
    seconds; without `jitter` it is that bound. `max_attempts` bounds the starts, crashes included.
    Only failures that are instances of `retry_on` and not of `give_up_on` are retried; a timeout
    counts as `TimeoutError`. Durations are seconds or `timedelta`. Immutable; raises
    `InvalidConfiguration` for an impossible option.

    Other waits: `RetryPolicy.linear(step=10)`, `RetryPolicy.delays([1, 5, 30])`, and
    `RetryPolicy.of(function)`, each with the same options beside its own.
    """

    __slots__ = ("base", "cap", "factor", "give_up_on", "jitter", "max_attempts", "retry_on")

    def __init__(
        self,
        *,
        max_attempts: int = 5,
        base: float | timedelta = 1.0,
        factor: float = 2.0,
        cap: float | timedelta = 3600.0,
        jitter: bool = True,
        retry_on: Errors = (Exception,),
        give_up_on: Errors = (),
    ) -> None:
        if not _is_int(max_attempts) or not 1 <= max_attempts <= 10_000:
            raise InvalidConfiguration("max_attempts", max_attempts, "must be from 1 to 10,000")
        self.max_attempts: int = max_attempts
        self.base: float = _duration("base", base)
        self.factor: float = _number("factor", factor, 1.0)
        self.cap: float = _duration("cap", cap)
        if self.cap > _TEN_YEARS:
            raise InvalidConfiguration("cap", cap, "must be at most ten years")
        self.jitter: bool = jitter
        self.retry_on: Errors = _classes("retry_on", retry_on)
        self.give_up_on: Errors = _classes("give_up_on", give_up_on)

    @staticmethod
    def linear(
        *,
        step: float | timedelta = 1.0,
        max_attempts: int = 5,
        cap: float | timedelta = 3600.0,
        jitter: bool = True,
        retry_on: Errors = (Exception,),
        give_up_on: Errors = (),
    ) -> "RetryPolicy":
        """Waits that grow by `step`: n steps after the n-th start, at most `cap`.

        As a bound that the wait is drawn below, or without `jitter` the wait itself.
        """
        return LinearRetry(
            _duration("step", step),
            max_attempts=max_attempts,
            cap=cap,
            jitter=jitter,
            retry_on=retry_on,
            give_up_on=give_up_on,
        )

    @staticmethod
    def delays(
        delays: Iterable[float | timedelta],
        *,
        max_attempts: int | None = None,
        cap: float | timedelta | None = None,
        jitter: bool = False,
        retry_on: Errors = (Exception,),
        give_up_on: Errors = (),
    ) -> "RetryPolicy":
        """These waits, one after the other; the last repeats.

        `max_attempts` is one more than there are delays unless given. With `jitter` each is a bound
        that the wait is drawn below. `cap` shortens what is longer; None leaves all as they are.
        """
        listed = _listed(delays)
        return ListedRetry(
            listed,
            max_attempts=len(listed) + 1 if max_attempts is None else max_attempts,
            cap=_TEN_YEARS if cap is None else cap,
            jitter=jitter,
            retry_on=retry_on,
            give_up_on=give_up_on,
        )

    @staticmethod
    def of(
        function: Wait,
        *,
        max_attempts: int = 5,
        cap: float | timedelta | None = None,
        jitter: bool = False,
        retry_on: Errors = (Exception,),
        give_up_on: Errors = (),
    ) -> "RetryPolicy":
        """Waits that `function(attempt, error)` gives: seconds or `timedelta`; None gives up.

        `attempt` is the start that failed, from 1, `error` what the handler raised, a
        `TimeoutError` for one that ran out of time. It is asked on the worker's event loop, so let
        it be quick, and only while `max_attempts` and the error's class allow another attempt.
        After `raise tenure.Retry()`, which asks for another in any case, None leaves the wait to
        the default policy. `cap` shortens what is longer; None allows ten years. With `jitter` the
        wait is drawn below what the function gives.

        Where it raises, or gives anything but a finite time that is not negative, the job fails for
        good with the handler's own failure, and the worker reports `InvalidConfiguration` with the
        handler's name: `queue.retry(job_id)` brings the job back once the function is mended.
        """
        return FunctionRetry(
            _function(function),
            max_attempts=max_attempts,
            cap=_TEN_YEARS if cap is None else cap,
            jitter=jitter,
            retry_on=retry_on,
            give_up_on=give_up_on,
        )

    def __repr__(self) -> str:
        return f"RetryPolicy({self._common()}, base={self.base}, factor={self.factor})"

    def _common(self) -> str:
        return f"max_attempts={self.max_attempts}, cap={self.cap}, jitter={self.jitter}"

    def retries(self, error: BaseException) -> bool:
        """Whether a failure of this kind may be retried at all."""
        return isinstance(error, self.retry_on) and not isinstance(error, self.give_up_on)

    def delay(self, attempt: int) -> float:
        """Seconds to wait after the `attempt`-th start failed (from 1); finite, 0 to `cap`."""
        return self._drawn(self.bound(attempt))

    def delay_after(self, attempt: int, error: BaseException) -> float | None:
        """As `delay`, for this very error; None gives up. Only the policy of a function looks."""
        return self.delay(attempt)

    def bound(self, attempt: int) -> float:
        """The longest `delay` for this attempt. Never overflows."""
        if self.base == 0.0 or self.cap == 0.0:
            return 0.0
        # In logarithms, so that factor ** 2000 is never computed.
        exponent = math.log(self.base) + (attempt - 1) * math.log(self.factor)
        if exponent >= math.log(self.cap):
            return self.cap
        return min(self.cap, math.exp(exponent))

    def _drawn(self, bound: float) -> float:
        return bound * random() if self.jitter else bound


class LinearRetry(RetryPolicy):
    """Made by `RetryPolicy.linear`. Its `base` is the step."""

    __slots__ = ()

    def __init__(self, step: float, **options: Unpack[Common]) -> None:
        super().__init__(base=step, factor=1.0, **options)

    def bound(self, attempt: int) -> float:
        return min(self.cap, self.base * attempt)  # a product too large for a float is infinite

    def __repr__(self) -> str:
        return f"RetryPolicy.linear(step={self.base}, {self._common()})"


class ListedRetry(RetryPolicy):
    """Made by `RetryPolicy.delays`. Its `base` is the first of them."""

    __slots__ = ("_listed",)

    def __init__(self, listed: tuple[float, ...], **options: Unpack[Common]) -> None:
        super().__init__(base=listed[0], factor=1.0, **options)
        self._listed = listed

    def bound(self, attempt: int) -> float:
        return min(self.cap, self._listed[min(attempt, len(self._listed)) - 1])

    def __repr__(self) -> str:
        return f"RetryPolicy.delays({list(self._listed)}, {self._common()})"


class FunctionRetry(RetryPolicy):
    """Made by `RetryPolicy.of`. Only `delay_after` asks the function; `bound` is the cap."""

    __slots__ = ("_function",)

    def __init__(self, function: Wait, **options: Unpack[Common]) -> None:
        super().__init__(base=0.0, factor=1.0, **options)
        self._function = function

    def delay_after(self, attempt: int, error: BaseException) -> float | None:
        """What the function gives. Raises what it raises, `InvalidConfiguration` for nonsense."""
        given = self._function(attempt, error)
        if given is None:
            return None
        return self._drawn(min(self.cap, _duration(f"the delay after attempt {attempt}", given)))

    def bound(self, attempt: int) -> float:
        return self.cap

    def __repr__(self) -> str:
        name = getattr(self._function, "__name__", None) or repr(self._function)
        return f"RetryPolicy.of({name}, {self._common()})"


def _duration(option: str, value: object) -> float:
    if isinstance(value, timedelta):
        return _number(option, value.total_seconds(), 0.0)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidConfiguration(option, value, "must be seconds or a timedelta")
    return _number(option, value, 0.0)


def _number(option: str, value: object, least: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidConfiguration(option, value, f"must be a number of at least {least:g}")
    try:
        number = float(value)
    except OverflowError:  # a whole number that no float can hold
        number = math.inf
    if not math.isfinite(number) or number < least:
        raise InvalidConfiguration(option, value, f"must be finite and at least {least:g}")
    return number


def _function(function: object) -> Wait:
    if not callable(function) or inspect.iscoroutinefunction(function):
        raise InvalidConfiguration(
            "function", function, "must be a plain function of (attempt, error)"
        )
    return cast("Wait", function)


def _listed(delays: object) -> tuple[float, ...]:
    rule = "must be a list of 1 to 9,999 delays, such as [1, 5, 30]"
    if isinstance(delays, str | bytes) or not isinstance(delays, Iterable):
        raise InvalidConfiguration("delays", delays, rule)
    given = list(islice(cast("Iterable[object]", delays), 10_000))
    if not 1 <= len(given) <= 9_999:
        raise InvalidConfiguration("delays", given, rule)
    listed = tuple(_duration(f"delays[{index}]", delay) for index, delay in enumerate(given))
    for index, delay in enumerate(listed):
        if delay > _TEN_YEARS:
            raise InvalidConfiguration(f"delays[{index}]", delay, "must be at most ten years")
    return listed


def _classes(option: str, value: object) -> Errors:
    classes = cast("tuple[object, ...]", value if isinstance(value, tuple) else (None,))
    if not all(isinstance(item, type) and issubclass(item, BaseException) for item in classes):
        raise InvalidConfiguration(option, classes, "must be a tuple of exception classes")
    return cast("Errors", classes)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
