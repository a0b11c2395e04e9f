"""From an exception to a stored failure: bounded text, whatever the exception does. Pure."""

import dis
import traceback
from datetime import datetime
from types import TracebackType

from tenure._runtime.text import bounded, clean
from tenure.outcomes import Failure

__all__ = ["describe", "failure_of", "is_interrupt"]

_MESSAGE = 4096
_TRACE = 16 * 1024
_FRAMES = 30
_RAISE = dis.opmap["RAISE_VARARGS"]


def describe(error: BaseException) -> str:
    """`Type: message` in at most 4,096 characters; never raises, whatever `str(error)` does."""
    name = type(error).__name__
    try:
        text = str(error)[: _MESSAGE + 1]
    except BaseException as inner:  # code of the user's, as in the executor: it may even exit
        text = f"(its str() raised {type(inner).__name__})"
    text = clean(text)
    return bounded(f"{name}: {text}" if text else name, _MESSAGE)


def failure_of(error: BaseException, *, kind: str, attempt: int, at: datetime) -> Failure:
    """What is stored of an exception: its type and message, and the end of its trace."""
    return Failure(kind=kind, message=describe(error), trace=_trace(error), at=at, attempt=attempt)


def _trace(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and _is_ours(trace) and trace.tb_next is not None:
        trace = trace.tb_next
    try:
        lines = traceback.format_exception(type(error), error, trace, limit=-_FRAMES, chain=True)
        text = clean("".join(lines))
    except (Exception, RecursionError) as inner:
        return f"(no trace: formatting it raised {type(inner).__name__})"
    return text if len(text) <= _TRACE else "…" + text[-(_TRACE - 1) :]


def _is_ours(trace: TracebackType) -> bool:
    return str(trace.tb_frame.f_globals.get("__name__")).startswith("tenure._runtime")


def is_interrupt(error: BaseException) -> bool:
    """Whether a KeyboardInterrupt came from a signal and not from a `raise` in the handler.

    The signal's default handler, written in C, raises from whatever instruction was running; a
    handler's own raise leaves a raise instruction at the end of the traceback. asyncio's handler
    for a second Ctrl-C raises from its own module.
    """
    if not isinstance(error, KeyboardInterrupt):
        return False
    last: TracebackType | None = error.__traceback__
    if last is None:
        return False
    while last.tb_next is not None:
        last = last.tb_next
    code = last.tb_frame.f_code
    if last.tb_frame.f_globals.get("__name__") == "asyncio.runners":
        return True
    return code.co_code[last.tb_lasti] != _RAISE
