"""One process of the pool: sets itself up, then runs one attempt after the other.

The entry point of a process that has nothing of the worker's but two pipes: orders and answers go
through one, the other closes with the worker. It must never touch a store. Whatever a handler
raises is made into a value here.
"""

import asyncio
import contextvars
import inspect
import locale
import math
from asyncio import CancelledError
from collections.abc import Awaitable
from contextlib import suppress
from datetime import timedelta
from typing import Any, cast

from tenure._runtime.current import CURRENT
from tenure._runtime.failures import describe, failure_of
from tenure._runtime.pool.child_job import ChildJob
from tenure._runtime.pool.guard import die_with, ignore_signals, lead_a_group
from tenure._runtime.pool.standin import class_names
from tenure._runtime.pool.terms import (
    Answer,
    Begun,
    End,
    Order,
    Postponed,
    Raised,
    Ready,
    Refused,
    Report,
    Returned,
    Setup,
    Unstorable,
    decode_order,
    pack,
)
from tenure._runtime.running_job import RunningJob
from tenure._runtime.text import clean
from tenure.clock import SystemClock
from tenure.codec import decode, encode
from tenure.errors import SerializationError
from tenure.process_pool import found, handler_of
from tenure.verdicts import Cancel, Retry, Snooze

__all__ = ["main"]

_LONGEST = 4096  # characters of an error's text


def main(setup: Setup, pipe: End, lifeline: End) -> None:
    """Run one process, until its worker closes the pipe."""
    group = lead_a_group()
    die_with(lifeline, group=group)
    ignore_signals()
    child = _Child(pipe)
    try:
        _set_up(setup)
    except BaseException as error:  # code of the user's, as below: it may even exit
        child.say(Refused(describe(error)))
        return
    child.say(Ready(group))
    child.serve()


def _set_up(setup: Setup) -> None:
    if setup.locale is not None:
        with suppress(locale.Error):
            locale.setlocale(locale.LC_ALL, setup.locale)
    if setup.prelude is not None:
        found(setup.prelude.function)(setup.prelude.argument)
    if setup.initializer is not None:
        found(setup.initializer)()
    for handler in setup.handlers:
        found(handler)


class _Child:
    """Takes orders, one at a time."""

    def __init__(self, pipe: End) -> None:
        self._pipe = pipe
        self._clock = SystemClock()

    def say(self, report: Report) -> None:
        self._pipe.send_bytes(pack(report))

    def serve(self) -> None:
        with suppress(EOFError, OSError):  # the worker has closed the pipe
            while True:
                order = decode_order(self._pipe.recv_bytes())
                # Nothing that a handler sets in its context leaks into the next job.
                self.say(contextvars.copy_context().run(self._answer, order))

    def _answer(self, order: Order) -> Answer:
        payload = decode(order.payload)
        job = ChildJob(order, payload, self.say)
        self.say(Begun())
        CURRENT.set(lambda: cast("RunningJob", job))
        try:
            handler = handler_of(found(order.handler))
            value = handler(payload, job) if order.wants_job else handler(payload)
            if inspect.isawaitable(value):
                value = asyncio.run(_awaited(value))
            answer = _returned(order, value)
        except BaseException as error:  # the executor's one catch, on this side of the pipe
            answer = self._raised(order, error)
        job.close()
        return answer

    def _raised(self, order: Order, error: BaseException) -> Raised:
        panic = not isinstance(error, Exception | CancelledError)
        kind, now = "panic" if panic else "error", self._clock.now()
        asked = isinstance(error, Retry)
        after = error.after if isinstance(error, Retry) else None
        return Raised(
            failure=failure_of(error, kind=kind, attempt=order.attempt, at=now),
            classes=class_names(error),
            text=_text_of(error),
            asked=asked,
            after=None if after is None else _seconds(after),
            cancel=_text_of(error.reason) if isinstance(error, Cancel) else None,
        )


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value


def _returned(order: Order, value: object) -> Answer:
    if value is None:
        return Returned(None)
    if isinstance(value, Snooze):
        return Postponed(_seconds(value.delay))
    try:
        return Returned(encode(value, root="result", limit=order.result_limit))
    except SerializationError as error:
        return Unstorable(str(error), error.path)


def _seconds(given: object) -> float:
    """Seconds, or NaN for what is none: the worker refuses that as it would the thing itself."""
    if isinstance(given, timedelta):
        return given.total_seconds()
    if isinstance(given, bool) or not isinstance(given, int | float):
        return math.nan
    try:
        return float(given)
    except OverflowError:
        return math.nan


def _text_of(value: object) -> str:
    try:
        return clean(str(value)[:_LONGEST])
    except BaseException:  # code of the user's, as in the executor: it may even exit
        return ""
