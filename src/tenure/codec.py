"""JSON for payloads, results and headers: encode what comes back equal, refuse the rest by path.

Pure. The fast path encodes, decodes again and compares, which catches every value that JSON would
change (NaN, tuples, sets, dates, non-string keys); only a refused value is walked, to name the
place. The wire format is plain JSON in UTF-8, so that other languages can dispatch.

Where a queue has a `PayloadCodec`, the JSON is stored as `SEAL` and what the codec makes of it. No
JSON begins like that, so what was stored before is still read as the plain JSON that it is.
"""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from tenure.errors import SerializationError, UnknownKey
from tenure.payload_codec import PayloadCodec
from tenure.shown import shown

__all__ = ["MAX_DEPTH", "SEAL", "decode", "encode", "opened", "sealed"]

MAX_DEPTH = 128
SEAL = b"sealed:"

_encode = msgspec.json.encode
_decode = msgspec.json.decode


def encode(value: object, *, root: str, limit: int, codec: PayloadCodec | None = None) -> bytes:
    """Encode a JSON value into at most `limit` bytes; these are sealed where there is a codec.

    Raises `SerializationError` whose `path` starts at `root` and leads to the offending value: one
    that would not come back equal, NaN and infinities, lone surrogates, NUL in a string, nesting
    deeper than 128, or too many bytes in all.
    """
    try:
        data = _encode(value)
        if (
            len(data) <= limit
            and b"\\u0000" not in data
            and data.count(b"[") + data.count(b"{") <= MAX_DEPTH
            and _decode(data) == value
        ):
            return data if codec is None else sealed(data, codec)
    except (TypeError, ValueError, RecursionError, OverflowError, msgspec.MsgspecError):
        data = None
    _explain(value, root)
    # Nothing is wrong with any part, so it is the whole.
    if data is None:
        raise SerializationError(f"{root}: cannot be encoded as JSON", path=root)
    if len(data) > limit:
        raise SerializationError(
            f"{root}: must be at most {limit:,} bytes as JSON, got {len(data):,}; store large data "
            "elsewhere and dispatch a reference",
            path=root,
        )
    if _decode(data) != value:
        raise SerializationError(f"{root}: would not come back equal from JSON", path=root)
    return data if codec is None else sealed(data, codec)


def decode(data: bytes, codec: PayloadCodec | None = None) -> Any:
    """Decode what `encode` made, with the codec or without one.

    Raises `UnknownKey` for what is sealed under a key that is not known here, which without a codec
    is any, and `SerializationError` for anything else.
    """
    if codec is not None:
        data = opened(data, codec)
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError) as error:
        if codec is None and data.startswith(SEAL):
            raise UnknownKey from None
        raise SerializationError(f"not valid JSON: {error}") from error


def sealed(data: bytes, codec: PayloadCodec) -> bytes:
    """JSON as it is stored where there is a codec."""
    return SEAL + codec.encode(data)


def opened(data: bytes, codec: PayloadCodec | None) -> bytes:
    """The JSON of what is stored; what is not sealed was stored before there was a codec.

    Raises as `decode` does.
    """
    if not data.startswith(SEAL):
        return data
    if codec is None:
        raise UnknownKey
    try:
        return codec.decode(data[len(SEAL) :])
    except SerializationError:
        raise
    except Exception as error:  # whatever a codec of the user's own meets with in damaged data
        raise SerializationError(f"not decoded by its codec: {type(error).__name__}") from error


def _explain(value: object, root: str) -> None:
    """Walk the value and raise for the first part that JSON cannot carry."""
    stack: list[tuple[str, int, Iterator[tuple[str, object]]]] = [(root, 0, iter([("", value)]))]
    while stack:
        path, depth, parts = stack[-1]
        part = next(parts, None)
        if part is None:
            stack.pop()
            continue
        place, item = path + part[0], part[1]
        inner = _inspect(place, item)
        if inner is not None:
            if depth >= MAX_DEPTH:
                raise SerializationError(
                    f"{root}: must be nested at most {MAX_DEPTH} deep", path=place
                )
            stack.append((place, depth + 1, inner))


def _inspect(path: str, item: object) -> Iterator[tuple[str, object]] | None:
    """Refuse one part, or return its own parts where it has any."""
    if isinstance(item, str):
        _check_text(path, item)
        return None
    if isinstance(item, int):
        _check_size(path, item)
        return None
    if item is None:
        return None
    if isinstance(item, float):
        if item != item or item in (float("inf"), float("-inf")):
            raise SerializationError(f"{path}: must be a finite number, got {item!r}", path=path)
        return None
    if isinstance(item, list):
        return _items(cast("list[object]", item))
    if isinstance(item, dict):
        return _entries(path, cast("dict[object, object]", item))
    advice = {
        "tuple": "a tuple comes back as a list: pass a list",
        "set": "pass a sorted list",
        "frozenset": "pass a sorted list",
        "bytes": "pass text, base64 for example",
        "datetime": "pass its isoformat()",
        "date": "pass its isoformat()",
        "Decimal": "pass it as text",
        "UUID": "pass it as text",
    }.get(type(item).__name__, "pass text, numbers, booleans, None, lists and dicts")
    raise SerializationError(
        f"{path}: must be a JSON value, got {type(item).__name__}; {advice}", path=path
    )


def _items(item: list[object]) -> Iterator[tuple[str, object]]:
    for index, inner in enumerate(item):
        yield f"[{index}]", inner


def _entries(path: str, item: dict[object, object]) -> Iterator[tuple[str, object]]:
    for key, inner in item.items():
        if not isinstance(key, str):
            raise SerializationError(f"{path}: keys must be text, got {shown(key)}", path=path)
        _check_text(f"{path} key {key!a}", key)
        yield (f".{key}" if key.isidentifier() else f"[{key!r}]"), inner


def _check_size(path: str, number: int) -> None:
    try:
        _decode(_encode(number))
    except (ValueError, OverflowError):
        raise SerializationError(
            f"{path}: must be a number of fewer than 4,300 digits; pass it as text", path=path
        ) from None


def _check_text(path: str, text: str) -> None:
    if "\0" in text:
        raise SerializationError(f"{path}: must not contain a NUL character", path=path)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise SerializationError(f"{path}: must not contain a lone surrogate", path=path) from None
