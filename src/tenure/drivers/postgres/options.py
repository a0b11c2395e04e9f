"""What the driver was told: checked, and with the address taken out of the URL.

Pure; connects to nothing.
"""

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from tenure.errors import InvalidConfiguration

__all__ = ["OPTIONS", "Options"]

# What may stand in the query of a URL beside the options of the server's own client library.
OPTIONS = ("schema", "migrate", "pool_size", "timeout", "pooled")

_SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST = 48  # the channel is named after the schema, and a name has 63 bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """See `PostgresDriver`."""

    url: str
    schema: str
    migrate: bool
    pool_size: int
    timeout: float
    pooled: bool | None

    def __post_init__(self) -> None:
        scheme = urlsplit(self.url).scheme
        if scheme not in ("postgresql", "postgres"):
            raise InvalidConfiguration("url", scheme, "must start with postgresql://")
        if not (_SCHEMA.fullmatch(self.schema) and len(self.schema) <= _LONGEST):
            raise InvalidConfiguration(
                "schema",
                self.schema,
                f"must be a letter or _ and then letters, digits or _, at most {_LONGEST} in all",
            )
        if self.schema.startswith("pg_") or self.schema in ("public", "information_schema"):
            raise InvalidConfiguration("schema", self.schema, "must be a schema of tenure's own")
        if not 1 <= self.pool_size <= 100:
            raise InvalidConfiguration("pool_size", self.pool_size, "must be 1 to 100")
        if not 0 < self.timeout <= 3600:
            raise InvalidConfiguration("timeout", self.timeout, "must be 0 to 3600 seconds")

    @property
    def address(self) -> str:
        """The URL without our own options, as the client library takes it."""
        parts = urlsplit(self.url)
        query = [item for item in parse_qsl(parts.query) if item[0] not in OPTIONS]
        return urlunsplit(parts._replace(query=urlencode(query)))

    @property
    def channel(self) -> str:
        """On which channel those who share the schema wake each other."""
        return f"tenure.{self.schema}"
