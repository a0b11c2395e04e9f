"""Removes a namespace with all jobs in it. For stores that were made for a while only."""

import re

from tenure.drivers.redis.faults import Refused
from tenure.drivers.redis.links import Links
from tenure.drivers.redis.reaching import reached
from tenure.errors import StoreError

__all__ = ["remove"]

_TIMEOUT = 10.0
_AT_ONCE = 1000  # keys


async def remove(url: str, namespace: str) -> None:
    """Delete every key of the namespace. Raises `StoreError`."""
    pattern = re.sub(r"([\\*?\[\]^])", r"\\\1", f"{{{namespace}}}:") + "*"
    async with reached(url, namespace, _TIMEOUT) as links:
        try:
            # In a cluster this leads to the node that has them all, which SCAN would not.
            await links.command("EXISTS", f"{{{namespace}}}:schema")
            await _remove(links, pattern)
        except Refused as refusal:
            raise StoreError(f"the server refused to remove {namespace!r}: {refusal}") from refusal


async def _remove(links: Links, pattern: str) -> None:
    cursor = b"0"
    while True:
        cursor, keys = await links.command("SCAN", cursor, "MATCH", pattern, "COUNT", _AT_ONCE)
        if keys:
            await links.command("DEL", *keys)
        if cursor == b"0":
            return
