"""A server reached for a moment, by what is no driver: examinations, removal."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl

from tenure.drivers.redis.client import Server
from tenure.drivers.redis.links import Links
from tenure.drivers.redis.scripts import Keys

__all__ = ["reached"]


@asynccontextmanager
async def reached(url: str, namespace: str, timeout: float) -> AsyncGenerator[Links]:
    """Connections to the server of a URL, for calls that take `timeout` seconds at most."""
    bare, _, query = url.partition("?")
    trusted = dict(parse_qsl(query)).get("tls_ca")
    links = Links(
        Server(url=bare, timeout=timeout, connect_timeout=timeout, tls_ca=trusted), Keys(namespace)
    )
    links.open()
    try:
        yield links
    finally:
        await links.end()
