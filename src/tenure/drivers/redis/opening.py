"""What is checked when a store is opened: version, schema, and settings that can lose jobs.

Reads the server's settings and never changes one.
"""

import logging
import re
from typing import Any

from tenure.drivers.redis.client import Argument
from tenure.drivers.redis.faults import Refused
from tenure.drivers.redis.links import Links, nodes_of
from tenure.drivers.redis.scripts import OLDEST, SCHEMA_VERSION, script
from tenure.errors import SchemaMismatch, StoreError

__all__ = ["check_schema", "prepare", "warn"]

_LEAST = (6, 2)
_OPEN = script("open")
_logger = logging.getLogger("tenure.redis")


async def prepare(links: Links, *, migrate: bool) -> int:
    """Make sure that the server and what is stored there suit this code; the version of the latter.

    `migrate` raises that of a namespace since `OLDEST`, of which nothing else has to be changed.
    Raises `StoreError` for a server that is too old and `SchemaMismatch`.
    """
    facts = await _facts(links)
    _judge_version(facts)
    if "cluster" in (facts.get("redis_mode"), facts.get("server_mode")):  # Redis, Valkey
        links.route.learn(nodes_of(await _asked(links, "CLUSTER", "SLOTS") or ()))
    found = await check_schema(links, migrate=migrate)
    if found < SCHEMA_VERSION:
        _logger.warning(
            "the store has schema version %d, older than this tenure's, and works; run "
            "`tenure schema migrate` when all programs have been upgraded",
            found,
        )
    return found


async def check_schema(links: Links, *, migrate: bool = False) -> int:
    """The version of what is stored. Raises `SchemaMismatch`."""
    found = int(await links.run(_OPEN, ["", SCHEMA_VERSION, OLDEST if migrate else ""]))
    if not OLDEST <= found <= SCHEMA_VERSION:
        raise SchemaMismatch(
            found=found,
            expected=SCHEMA_VERSION,
            remedy="upgrade tenure in this environment"
            if found > SCHEMA_VERSION
            else "use another namespace, or drain this one with the tenure that made it",
        )
    return found


async def warn(links: Links) -> None:
    """Say what in the server's settings may lose accepted jobs."""
    settings: dict[str, str] = {}
    for name in ("maxmemory-policy", "appendonly", "save"):
        reply = await _asked(links, "CONFIG", "GET", name)
        if reply:
            settings[reply[0].decode()] = reply[1].decode()
    # The volatile policies remove keys with an expiry only, which here are hints.
    policy = settings.get("maxmemory-policy", "")
    if policy.startswith("allkeys"):
        _logger.warning(
            "this Redis may evict jobs when its memory is full, which loses them without a trace; "
            "set maxmemory-policy to noeviction",
            extra={"maxmemory_policy": policy},
        )
    if settings.get("appendonly") == "no":
        what = (
            "this Redis only saves its data now and then: a crash loses the jobs since the last "
            "time"
            if settings.get("save")
            else "this Redis keeps nothing on disk: a restart loses all jobs"
        )
        _logger.warning(
            "%s; set appendonly yes, and appendfsync always where no accepted job may be lost", what
        )


async def _facts(links: Links) -> dict[str, str]:
    reply: bytes | None = await _asked(links, "INFO", "server")
    lines = (reply or b"").decode("utf-8", "replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


async def _asked(links: Links, *command: Argument) -> Any:
    """The answer, or None where the server does not allow to ask."""
    try:
        return await links.command(*command)
    except Refused as error:
        _logger.debug(
            "the server does not tell about itself, so it is not checked",
            extra={"command": " ".join(map(str, command)), "answer": str(error)},
        )
        return None


def _judge_version(facts: dict[str, str]) -> None:
    version = facts.get("redis_version", "")  # Valkey gives here what it is compatible with
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers and numbers < _LEAST:
        raise StoreError(
            f"this server is Redis {version}; expected Redis 6.2 or later, or Valkey: upgrade it"
        )
