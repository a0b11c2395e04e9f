"""From a URL to a driver: the one place that knows drivers by name, importing each on demand."""

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tenure.clock import Clock
from tenure.driver import Driver
from tenure.errors import InvalidConfiguration

__all__ = ["connect"]


def connect(url: str, options: Mapping[str, object], clock: Clock) -> Driver:
    """Build the unopened driver that `url` names; nothing is touched yet.

    `options` add to the URL's query and may not repeat it. Raises `InvalidConfiguration` for an
    unknown scheme or option and for an option's value.
    """
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except (ValueError, AttributeError, TypeError):
        raise InvalidConfiguration(
            "url", url, "must be a store URL such as 'sqlite:///jobs.db'"
        ) from None
    given: dict[str, object] = {}
    for name, value in [*query, *options.items()]:
        if name in given:
            raise InvalidConfiguration(
                name, value, "must be given once, in the URL or as a keyword"
            )
        given[name] = value
    build = _SCHEMES.get(parts.scheme)
    if build is None:
        close = get_close_matches(parts.scheme, _SCHEMES, n=1)
        hint = f"; did you mean {close[0]}://?" if close else ""
        raise InvalidConfiguration(
            "url", url, f"must start with {' or '.join(f'{s}://' for s in _SCHEMES)}{hint}"
        )
    return build(url, parts.netloc, unquote(parts.path), given, clock)


def _memory(url: str, host: str, path: str, options: dict[str, object], clock: Clock) -> Driver:
    from tenure.drivers.memory import MemoryDriver

    if host or path:
        raise InvalidConfiguration("url", url, "must be just 'memory://': each has its own store")
    return _build(MemoryDriver, (), options, clock)


def _sqlite(url: str, host: str, path: str, options: dict[str, object], clock: Clock) -> Driver:
    from tenure.drivers.sqlite import SqliteDriver

    if host or len(path) < 2:
        raise InvalidConfiguration(
            "url",
            url,
            "must be 'sqlite:///relative.db' or 'sqlite:////absolute.db'",
        )
    if "busy_timeout" in options:
        options["busy_timeout"] = _number("busy_timeout", options["busy_timeout"])
    if "migrate" in options:
        options["migrate"] = _switch("migrate", options["migrate"])
    return _build(SqliteDriver, (path[1:],), options, clock)


_SCHEMES: Mapping[str, Callable[[str, str, str, dict[str, object], Clock], Driver]] = {
    "memory": _memory,
    "sqlite": _sqlite,
}


def _build(
    driver: Callable[..., Driver], arguments: tuple[str, ...], options: dict[str, Any], clock: Clock
) -> Driver:
    parameters = inspect.signature(driver).parameters.values()
    known = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "clock"]
    for name, value in options.items():
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InvalidConfiguration(
                name,
                value,
                f"must be an option of this store ({', '.join(known) or 'it has none'}){hint}",
            )
    return driver(*arguments, clock=clock, **options)


def _number(option: str, value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # whatever a URL or a caller gave
    except (TypeError, ValueError):
        raise InvalidConfiguration(option, value, "must be a number of seconds") from None


def _switch(option: str, value: object) -> bool:
    switches = {True: True, False: False, "true": True, "false": False, "1": True, "0": False}
    if isinstance(value, bool | str) and value in switches:
        return switches[value]
    raise InvalidConfiguration(option, value, "must be true or false")
