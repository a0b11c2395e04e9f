"""From a function's parameters to a payload and back: what a task stores of its arguments.

The payload is one JSON object by parameter name, or the object itself where the one parameter is an
object. Types are msgspec's, and pydantic's models where they are used. Nothing is called here.
"""

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin

import msgspec

from tenure.binding import Need
from tenure.codec import encode
from tenure.dependencies import INJECTED, Parameter, need_of, parameters_of
from tenure.errors import InvalidConfiguration, InvalidJob, SerializationError

__all__ = ["TaskSignature"]

_ROOT = "payload"
_NO_LIMIT = 2**62
_PLACE = re.compile(r" - at `\$(?P<path>.*)`$", re.DOTALL)


class _Missing:
    """Stands for an argument that was not stored: the function's own default is taken."""


_MISSING = _Missing()


class TaskSignature:
    """The parameters of one task. `what` names it in errors.

    Raises `InvalidConfiguration` for a parameter that cannot be stored as JSON.
    """

    def __init__(self, function: Callable[..., Any], what: str) -> None:
        self._what = what
        self._signature = inspect.signature(function)
        parameters = parameters_of(function, what)
        self.injected: frozenset[str] = frozenset(
            p.name for p in parameters if p.is_job or p.depends is not None
        )
        self._stored = [p for p in parameters if p.name not in self.injected]
        self.job: str | None = next((p.name for p in parameters if p.is_job), None)
        self.needs: Mapping[str, Need] = {
            p.name: need_of(p.depends.function, p.depends.scope) for p in parameters if p.depends
        }
        for parameter in self._stored:
            self._check(parameter)
        self.whole: bool = self._is_whole()
        self._type = self._stored[0].annotation if self.whole else self._arguments_type()
        self._decoder = msgspec.json.Decoder(self._type, dec_hook=_decode_model)
        self._loose = [p for p in self._stored if _holds_any(p.annotation)]
        self._result = self._result_type(function)

    def _is_whole(self) -> bool:
        """Whether the one parameter is an object of its own, and so the whole payload."""
        return len(self._stored) == 1 and _is_object(self._stored[0].annotation)

    def _arguments_type(self) -> Any:
        fields: list[tuple[str, Any, Any]] = []
        for parameter in self._stored:
            given = parameter.default is inspect.Parameter.empty
            default = msgspec.NODEFAULT if given else msgspec.field(default_factory=_missing)
            fields.append((parameter.name, parameter.annotation, default))
        return msgspec.defstruct("Arguments", fields, kw_only=True)

    def _check(self, parameter: Parameter) -> None:
        try:
            msgspec.json.schema(parameter.annotation, schema_hook=_schema_of_model)
        except TypeError:
            raise InvalidConfiguration(
                f"{self._what}: {parameter.name}",
                parameter.annotation,
                "must have a type that can be stored as JSON, such as a dataclass",
            ) from None

    def _result_type(self, function: Callable[..., Any]) -> "msgspec.json.Decoder[Any] | None":
        """How a stored result is read; None where it is taken as it is."""
        try:
            hint = typing.get_type_hints(function, include_extras=True).get("return", Any)
            msgspec.json.schema(hint, schema_hook=_schema_of_model)
            return None if hint is Any else msgspec.json.Decoder(hint, dec_hook=_decode_model)
        except (TypeError, NameError, AttributeError):
            return None  # such as NoReturn, or a verdict beside a value

    # --- at dispatch ----------------------------------------------------------------------------

    def payload(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The payload of a call, as a JSON value.

        Raises `TypeError` where the arguments do not fit, as a call would, and `InvalidJob` with
        the path where one has not the type of its parameter or would not come back equal.
        """
        given = self._bound(args, kwargs)
        for parameter in self._loose:
            if parameter.name in given:
                _check_plain(given[parameter.name], self._place(parameter.name))
        try:
            value = given[self._stored[0].name] if self.whole else given
            data = msgspec.json.encode(value, enc_hook=_encode_model)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InvalidJob(self._culprit(given), f"cannot be stored as JSON: {error}") from None
        try:
            self._decoder.decode(data)
        except (msgspec.ValidationError, RecursionError) as error:
            place, rule = _explained(error)
            raise InvalidJob(place, rule) from None
        return msgspec.json.decode(data)

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name, without those that the worker fills in."""
        bound = self._signature.bind_partial(*args, **kwargs)
        given = {k: v for k, v in bound.arguments.items() if v is not INJECTED}
        for name in given:
            if name in self.injected:
                raise TypeError(f"{self._what}: {name} is filled in by the worker, and not stored")
        for parameter in self._stored:
            if parameter.name not in given and parameter.default is inspect.Parameter.empty:
                raise TypeError(f"{self._what}: missing the argument {parameter.name!r}")
        if self.whole and not given:
            return {self._stored[0].name: self._stored[0].default}
        return given

    def _place(self, name: str) -> str:
        return _ROOT if self.whole else f"{_ROOT}.{name}"

    def _culprit(self, given: dict[str, Any]) -> str:
        """Which argument cannot be encoded."""
        for name, value in given.items():
            try:
                msgspec.json.encode(value, enc_hook=_encode_model)
            except (TypeError, ValueError, OverflowError, RecursionError):
                return self._place(name)
        return _ROOT

    # --- at run ---------------------------------------------------------------------------------

    def arguments(self, payload: Any) -> dict[str, Any]:
        """The arguments by name; keys that are not known are ignored, defaults are left out.

        Raises `SerializationError` with the path where the payload is not for this function.
        """
        try:
            read = msgspec.convert(payload, self._type, dec_hook=_decode_model, str_keys=True)
        except (msgspec.ValidationError, RecursionError) as error:
            place, rule = _explained(error)
            message = f"{place}: {rule}, as {self._what} takes it"
            raise SerializationError(message, path=place) from None
        if self.whole:
            return {self._stored[0].name: read}
        values = {p.name: getattr(read, p.name) for p in self._stored}
        return {name: value for name, value in values.items() if value is not _MISSING}

    def result(self, value: Any) -> Any:
        """What the function returned, as a JSON value. Raises `SerializationError`."""
        try:
            return msgspec.to_builtins(value, enc_hook=_encode_model, str_keys=True)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise SerializationError(f"result: {error}", path="result") from None

    def read_result(self, value: Any) -> Any:
        """A stored result as the type that the function returns. Raises `SerializationError`."""
        if self._result is None:
            return value
        try:
            return self._result.decode(msgspec.json.encode(value))
        except (msgspec.ValidationError, RecursionError) as error:
            place, rule = _explained(error, "result")
            raise SerializationError(f"{place}: {rule}", path=place) from None

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the payload."""
        if self.whole:
            return _hoisted(msgspec.json.schema(self._type, schema_hook=_schema_of_model))
        fields = [(p.name, p.annotation, _schema_default(p)) for p in self._stored]
        shown = msgspec.defstruct("Arguments", fields, kw_only=True)
        return _hoisted(msgspec.json.schema(shown, schema_hook=_schema_of_model))


def _missing() -> _Missing:
    return _MISSING


def _schema_default(parameter: Parameter) -> Any:
    default = parameter.default
    if default is inspect.Parameter.empty:
        return msgspec.NODEFAULT
    try:
        msgspec.json.encode(default, enc_hook=_encode_model)
    except (TypeError, ValueError):
        return msgspec.field(default_factory=_missing)
    copied = any(default.__class__ is kind for kind in (list, dict, set))
    return msgspec.field(default_factory=lambda: default) if copied else default


def _check_plain(value: Any, place: str) -> None:
    """What has no type of its own is stored as it is, so that it must be a JSON value."""
    try:
        encode(value, root=place, limit=_NO_LIMIT)
    except SerializationError as error:
        where = error.path or place
        raise InvalidJob(where, str(error).removeprefix(f"{where}: ")) from None


def _holds_any(annotation: Any) -> bool:
    if annotation is Any or annotation is object:
        return True
    return any(_holds_any(part) for part in get_args(annotation) if not isinstance(part, str))


def _is_object(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _is_object(get_args(annotation)[0])
    kind: Any = get_origin(annotation) or annotation
    return inspect.isclass(kind) and (
        issubclass(kind, msgspec.Struct)
        or dataclasses.is_dataclass(kind)
        or typing.is_typeddict(kind)
        or _is_model(kind)
    )


# --- pydantic, where it is used: it is never imported -------------------------------------------


def _is_model(kind: object) -> bool:
    return isinstance(kind, type) and hasattr(kind, "__pydantic_validator__")


def _encode_model(value: Any) -> Any:
    kind: type[Any] = value.__class__
    if _is_model(kind):
        return value.model_dump(mode="json")
    raise TypeError(f"{kind.__name__} cannot be stored as JSON")


def _decode_model(kind: type, value: Any) -> Any:
    if _is_model(kind):
        model: Any = kind
        return model.model_validate(value)
    raise TypeError(f"{kind.__name__} cannot be read from JSON")


def _schema_of_model(kind: type) -> dict[str, Any]:
    if _is_model(kind):
        model: Any = kind
        schema: dict[str, Any] = model.model_json_schema()
        return schema
    raise TypeError(f"{kind.__name__} has no schema")


def _hoisted(schema: dict[str, Any]) -> dict[str, Any]:
    """The definitions of models, which they bring along, to where the references look."""
    definitions: dict[str, Any] = {}

    def without(part: Any) -> Any:
        kind = part.__class__
        if kind is list:
            return [without(item) for item in part]
        if kind is not dict:
            return part
        known: dict[str, Any] = part
        for name, definition in known.get("$defs", {}).items():
            definitions[name] = without(definition)
        return {key: without(value) for key, value in known.items() if key != "$defs"}

    flat: dict[str, Any] = without(schema)
    return {**flat, "$defs": definitions} if definitions else flat


def _explained(error: Exception, root: str = _ROOT) -> tuple[str, str]:
    """Where it is wrong, and what holds there."""
    text = str(error)
    place = _PLACE.search(text)
    rule = text[: place.start()] if place else text
    where = root + (place["path"] if place else "")
    return where, _rule(rule)


def _rule(text: str) -> str:
    """msgspec's "Expected `str`, got `int`" as the end of a sentence; other texts as they are."""
    return text[0].lower() + text[1:] if text.startswith(("Expected ", "Object ")) else text
