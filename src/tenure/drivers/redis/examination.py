"""Looks at a server's settings and state for what may lose jobs. Reads only."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tenure.clock import Clock
from tenure.drivers.findings import Finding, error, fine, skew, warning
from tenure.drivers.redis.client import Argument
from tenure.drivers.redis.faults import Refused
from tenure.drivers.redis.links import Links
from tenure.drivers.redis.reaching import reached

__all__ = ["examine", "judged"]

_SETTINGS = ("maxmemory-policy", "appendonly", "appendfsync", "save")
_TIMEOUT = 3.0  # seconds
_FULL = 0.9


async def examine(url: str, clock: Clock) -> list[Finding]:
    """What there is to say of the server. Raises `StoreError`."""
    async with reached(url, "tenure", _TIMEOUT) as links:
        facts = _facts(await _asked(links, "INFO"))
        settings: dict[str, str] = {}
        for name in _SETTINGS:
            if reply := await _asked(links, "CONFIG", "GET", name):
                settings[reply[0].decode()] = reply[1].decode()
        told = await _asked(links, "TIME")
    found = list(judged(facts, settings))
    if told:
        there = datetime.fromtimestamp(int(told[0]), UTC) + timedelta(microseconds=int(told[1]))
        found.append(skew((clock.now() - there).total_seconds()))
    return found


def judged(facts: Mapping[str, str], settings: Mapping[str, str]) -> Iterator[Finding]:
    """What facts (INFO) and settings (CONFIG GET) say, as far as the server tells them."""
    version = facts.get("valkey_version") or facts.get("redis_version", "of unknown version")
    yield fine("server", f"{'Valkey' if 'valkey_version' in facts else 'Redis'} {version}")
    yield _persistence(settings)
    policy = settings.get("maxmemory-policy", "")
    if policy.startswith("allkeys"):
        yield error(
            "eviction",
            f"maxmemory-policy is {policy}: when its memory is full it throws jobs away",
            "set maxmemory-policy noeviction",
        )
    elif policy:
        yield fine("eviction", policy)
    used, most = int(facts.get("used_memory", 0)), int(facts.get("maxmemory", 0))
    if most and used > _FULL * most:
        yield warning("memory", f"{used / most:.0%} is used", "raise maxmemory, or keep less")
    for name in ("aof_last_write_status", "rdb_last_bgsave_status"):
        if facts.get(name, "ok") != "ok":
            yield error(
                "disk", f"{name} is {facts[name]}", "look at the disk and log of the server"
            )
    if facts.get("role", "master") != "master":
        yield error("role", "this server is a replica", "name the primary in the URL")


def _persistence(settings: Mapping[str, str]) -> Finding:
    keep = settings.get("appendonly")
    remedy = "set appendonly yes, and appendfsync always where no accepted job may be lost"
    if keep is None:
        return warning("persistence", "the server does not tell its settings", "look at them there")
    if keep == "yes":
        how = settings.get("appendfsync", "")
        if how == "always":
            return fine("persistence", "appendonly, appendfsync always")
        return warning(
            "persistence",
            f"appendfsync is {how}: a crash of its machine loses the jobs of the last moment",
            "set appendfsync always where no accepted job may be lost",
        )
    if settings.get("save"):
        return warning("persistence", "a crash loses the jobs since the last snapshot", remedy)
    return error("persistence", "nothing is kept on disk: a restart loses all jobs", remedy)


def _facts(reply: bytes | None) -> dict[str, str]:
    lines = (reply or b"").decode("utf-8", "replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


async def _asked(links: Links, *command: Argument) -> Any:
    """The answer, or None where the server does not allow to ask."""
    try:
        return await links.command(*command)
    except Refused:
        return None
