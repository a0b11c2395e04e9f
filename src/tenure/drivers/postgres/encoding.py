"""How values are stored: states as small numbers, failures, headers and worker infos as JSON text.

Pure. What cannot be read back raises here; `rows.py` decides what stands in for it.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from tenure.history import Tried
from tenure.outcomes import Failure
from tenure.presence import WorkerInfo
from tenure.states import State

__all__ = [
    "NUMBERS",
    "STATES",
    "array_text",
    "failure_text",
    "read_failure",
    "read_headers",
    "read_tried",
    "read_worker",
    "text_of",
    "tried_text",
]

# By their number in the table, which is stored for ever: append, never reorder.
STATES = (
    State.PENDING,
    State.BLOCKED,
    State.PROCESSING,
    State.COMPLETED,
    State.FAILED,
    State.CANCELLED,
)
NUMBERS: Mapping[State, int] = {state: number for number, state in enumerate(STATES)}

_encoder = msgspec.json.Encoder()
_failures = msgspec.json.Decoder(Failure)
_tried = msgspec.json.Decoder(Tried)
_headers = msgspec.json.Decoder(dict[str, str])
_workers = msgspec.json.Decoder(WorkerInfo)

read_failure: Callable[[bytes | str], Failure] = _failures.decode
read_headers: Callable[[bytes | str], dict[str, str]] = _headers.decode
read_tried: Callable[[bytes | str], Tried] = _tried.decode
read_worker: Callable[[bytes | str], WorkerInfo] = _workers.decode


def text_of(value: object) -> str:
    """A struct or mapping as JSON text."""
    return _encoder.encode(value).decode()


def array_text(texts: Iterable[str]) -> str:
    """Texts as that of an array of the server."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"


def failure_text(failure: Failure) -> str:
    """A failure as JSON text, whatever its message holds."""
    return _whatever_it_holds(failure)


def tried_text(how: Tried) -> str:
    """How an attempt ended as JSON text, whatever its message holds."""
    return _whatever_it_holds(how)


def _whatever_it_holds(value: Failure | Tried) -> str:
    """JSON text that can be stored.

    A lone surrogate (an exception about a file name, say) is no UTF-8; it is written as an escape,
    since a failure that cannot be stored would leave its job running for ever.
    """
    try:
        return text_of(value)
    except UnicodeEncodeError:
        parts = msgspec.structs.asdict(value)
        clean = {
            name: part.encode("utf-8", "backslashreplace").decode()
            if isinstance(part, str)
            else part
            for name, part in parts.items()
        }
        return text_of(clean)
