"""From a URL to a driver: the one place that knows drivers by name, importing each on demand."""

import inspect
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from tenure.clock import Clock
from tenure.driver import Driver
from tenure.errors import InvalidConfiguration

__all__ = ["connect", "migrating"]


def connect(url: str, options: Mapping[str, object], clock: Clock) -> Callable[[], Driver]:
    """What builds unopened drivers of the store that `url` names; nothing is touched yet.

    `options` add to the URL's query and may not repeat it. Raises `InvalidConfiguration` for an
    unknown scheme and for a store whose package is not installed; an unknown option, or one with a
    value that cannot be, is refused when a driver is built.
    """
    _check_text(url)
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise InvalidConfiguration(
            "url", _without_secrets(url), "must be a store URL such as 'sqlite:///jobs.db'"
        ) from None
    names = [name for name, _ in query]
    for name, value in [*query, *options.items()]:
        if names.count(name) + (name in options) > 1:
            raise InvalidConfiguration(
                name, value, "must be given once, in the URL or as a keyword"
            )
    find = _SCHEMES.get(parts.scheme)
    if find is None:
        close = get_close_matches(parts.scheme, _SCHEMES, n=1)
        hint = f"; did you mean {close[0]}://?" if close else ""
        raise InvalidConfiguration(
            "url",
            _without_secrets(url),
            f"must start with {' or '.join(f'{s}://' for s in _SCHEMES)}{hint}",
        )
    return find(parts, dict(query), options, clock)


def migrating(url: str, options: Mapping[str, object], clock: Clock) -> Callable[[], Driver]:
    """As `connect`, for drivers that upgrade an older store when they open.

    That the URL says `migrate`, in whatever sense, is for the programs that open it otherwise.
    """
    _check_text(url)
    address, mark, query = url.partition("?")
    kept = [item for item in query.split("&") if item.partition("=")[0] != "migrate"]
    return connect(
        f"{address}{mark if kept else ''}{'&'.join(kept)}", {**options, "migrate": True}, clock
    )


_Query = Mapping[str, str]
_Options = Mapping[str, object]


def _memory(
    parts: SplitResult, query: _Query, options: _Options, clock: Clock
) -> Callable[[], Driver]:
    from tenure.drivers.memory import MemoryDriver

    if parts.netloc or parts.path:
        raise InvalidConfiguration(
            "url",
            _shown(parts),
            "must be just 'memory://': each has its own store",
        )
    return _builder(MemoryDriver, (), _never_upgraded({**query, **options}), clock)


def _sqlite(
    parts: SplitResult, query: _Query, options: _Options, clock: Clock
) -> Callable[[], Driver]:
    from tenure.drivers.sqlite import SqliteDriver

    path = unquote(parts.path)
    if parts.netloc or len(path) < 2:
        raise InvalidConfiguration(
            "url",
            _shown(parts),
            "must be 'sqlite:///relative.db' or 'sqlite:////absolute.db'",
        )
    return _builder(SqliteDriver, (path[1:],), {**query, **options}, clock)


def _redis(
    parts: SplitResult, query: _Query, options: _Options, clock: Clock
) -> Callable[[], Driver]:
    with _extra("redis", parts):
        from tenure.drivers.redis import RedisDriver

    address = urlunsplit(parts._replace(query=""))
    return _builder(RedisDriver, (address,), {**query, **options}, clock)


def _postgres(
    parts: SplitResult, query: _Query, options: _Options, clock: Clock
) -> Callable[[], Driver]:
    with _extra("postgres", parts):
        from tenure.drivers.postgres import PostgresDriver

    ours = set(_options_of(PostgresDriver))
    address = urlunsplit(
        parts._replace(query=urlencode([item for item in query.items() if item[0] not in ours]))
    )
    own = {name: value for name, value in query.items() if name in ours}
    return _builder(PostgresDriver, (address,), {**own, **options}, clock)


_SCHEMES: Mapping[str, Callable[[SplitResult, _Query, _Options, Clock], Callable[[], Driver]]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "redis": _redis,
    "rediss": _redis,
    "unix": _redis,
    "postgresql": _postgres,
    "postgres": _postgres,
}


def _check_text(url: object) -> None:
    if not isinstance(url, str):
        raise InvalidConfiguration("url", url, "must be a store URL such as 'sqlite:///jobs.db'")


@contextmanager
def _extra(name: str, parts: SplitResult) -> Generator[None]:
    """Import what an optional package is for; say which extra brings it where it is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "tenure"):
            raise
        raise InvalidConfiguration(
            "url",
            _shown(parts),
            f"needs the package {package}, which is not installed: pip install 'tenure[{name}]'",
        ) from error


def _never_upgraded(options: _Options) -> _Options:
    """The options without `migrate`, which every store takes: this one has only one version."""
    if "migrate" in options:
        _switch("migrate", options["migrate"])
    return {name: value for name, value in options.items() if name != "migrate"}


def _without_secrets(url: str) -> str:
    """A URL for a message: no password in it."""
    scheme, sep, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{sep}{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}"


def _shown(parts: SplitResult) -> str:
    """The same of its parts, as it was written: `geturl` drops slashes behind an empty host."""
    return _without_secrets(f"{parts.scheme}://{parts.netloc}{parts.path}")


def _options_of(driver: Callable[..., Driver]) -> list[str]:
    parameters = inspect.signature(driver).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "clock"]


def _builder(
    driver: Callable[..., Driver],
    arguments: tuple[str, ...],
    options: Mapping[str, Any],
    clock: Clock,
) -> Callable[[], Driver]:
    known = _options_of(driver)
    for name, value in options.items():
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InvalidConfiguration(
                name,
                value,
                f"must be an option of this store ({', '.join(known) or 'it has none'}){hint}",
            )
    given = {
        name: _READ[name](name, value) if name in _READ else value
        for name, value in options.items()
    }
    return lambda: driver(*arguments, clock=clock, **given)


def _number(option: str, value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # whatever a URL or a caller gave
    except (TypeError, ValueError):
        raise InvalidConfiguration(option, value, "must be a number of seconds") from None


def _whole(option: str, value: object) -> int:
    try:
        if not isinstance(value, bool | float):
            return int(value)  # type: ignore[call-overload,no-any-return]  # as above
    except (TypeError, ValueError):
        pass
    raise InvalidConfiguration(option, value, "must be a whole number")


def _switch(option: str, value: object) -> bool:
    switches = {True: True, False: False, "true": True, "false": False, "1": True, "0": False}
    if isinstance(value, bool | str) and value in switches:
        return switches[value]
    raise InvalidConfiguration(option, value, "must be true or false")


# A URL gives every option as text.
_READ: Mapping[str, Callable[[str, object], object]] = {
    "busy_timeout": _number,
    "connect_timeout": _number,
    "timeout": _number,
    "pool_size": _whole,
    "migrate": _switch,
    "pooled": _switch,
}
