"""Anything in the fields and members of a job on Redis: only that job is harmed (I12)."""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from tenure.clock import SystemClock
from tenure.drivers.redis import RedisDriver
from tests.fuzz.damaged_store import BAD, asked, check, check_beside, fill, fill_beside
from tests.fuzz.working import worked
from tests.servers.redis import RedisServer


class Damaged:
    """A store under a name of its own, emptied for each example."""

    def __init__(self, server: RedisServer) -> None:
        self._namespace = f"fuzz{uuid4().hex}"
        self._client: Any = server.client()
        self.runner = asyncio.Runner()
        self.driver = RedisDriver(server.url, namespace=self._namespace, clock=SystemClock())
        self.runner.run(self.driver.open())

    def empty(self) -> None:
        for key in self._keys():
            self._client.delete(key)

    def places(self) -> list[tuple[bytes, bytes]]:
        """Where the bad job stands: keys of hashes and sorted sets, with its name there.

        Of its history, a list, it is the places of the entries.
        """
        found: list[tuple[bytes, bytes]] = []
        for key in self._keys():
            names: list[bytes] = []
            match self._client.type(key):
                case b"hash":
                    names = self._client.hkeys(key)
                case b"zset":
                    names = self._client.zrange(key, 0, -1)
                case b"list" if key.endswith(BAD.encode()):
                    found += [(key, b"%d" % place) for place in range(self._client.llen(key))]
                case _:
                    pass
            found += [(key, name) for name in names if name.endswith(BAD.encode())]
        return found

    def retype(self, number: int, kind: str) -> None:
        """Put something of another type in the place of a key; all of them come in turn."""
        keys = self._keys()
        key = keys[number % len(keys)]
        self._client.delete(key)
        match kind:
            case "string":
                self._client.set(key, "7")
            case "list":
                self._client.rpush(key, "bad")
            case "set":
                self._client.sadd(key, "bad")
            case "hash":
                self._client.hset(key, "bad", "7")
            case "stream":
                self._client.xadd(key, {"bad": "7"})
            case _:
                self._client.zadd(key, {"bad": 7})

    def damage(self, key: bytes, name: bytes, value: bytes | float | None) -> None:
        """Remove it, write something else over it, or give it another score."""
        if self._client.type(key) == b"list":
            whole = value if isinstance(value, bytes) else str(value or "").encode()
            self._client.lset(key, int(name), whole)
            return
        hashed = self._client.type(key) == b"hash"
        if value is None:
            (self._client.hdel if hashed else self._client.zrem)(key, name)
        elif hashed:
            self._client.hset(key, name, str(value) if isinstance(value, float) else value)
        elif isinstance(value, float):
            self._client.zadd(key, {name: value})
        elif (score := self._client.zscore(key, name)) is not None:
            self._client.zrem(key, name)
            self._client.zadd(key, {value: score})

    def look(self, key: bytes, name: bytes) -> bytes:
        """What a hash has there, or the member itself."""
        kind = self._client.type(key)
        if kind == b"list":
            entry: bytes | None = self._client.lindex(key, int(name))
            return entry or b""
        if kind != b"hash":
            return name
        found: bytes | None = self._client.hget(key, name)
        return found or b""

    def _keys(self) -> list[bytes]:
        return sorted(self._client.keys(f"{{{self._namespace}}}*"))

    def close(self) -> None:
        self.runner.run(self.driver.close())
        self.runner.close()
        self._client.close()


@pytest.fixture(scope="module")
def damaged(redis_server: RedisServer) -> Iterator[Damaged]:
    store = Damaged(redis_server)
    yield store
    store.close()


class Cut(Struct, frozen=True):
    """All from there on is missing."""

    at: int

    def of(self, old: bytes) -> bytes:
        return old[: self.at % (len(old) or 1)]


class Flip(Struct, frozen=True):
    """One bit is turned over."""

    at: int
    bit: int

    def of(self, old: bytes) -> bytes:
        if not old:
            return b"\0"
        at = self.at % len(old)
        return old[:at] + bytes([old[at] ^ 1 << self.bit]) + old[at + 1 :]


# Nothing that is drawn depends on what is stored, which has other ids and times on each run.
CHANGES = (
    st.none()
    | st.binary(max_size=60)
    | st.floats(allow_nan=False)
    | st.builds(Cut, st.integers(0, 300))
    | st.builds(Flip, st.integers(0, 300), st.integers(0, 7))
)


@given(
    changes=st.lists(st.tuples(st.integers(0, 59), CHANGES), min_size=1, max_size=2),
    state=st.sampled_from(["pending", "processing", "retried", "completed", "failed"]),
)
def test_a_damaged_record_harms_only_itself(
    damaged: Damaged, changes: list[tuple[int, bytes | float | Cut | Flip | None]], state: str
) -> None:
    damaged.empty()
    damaged.runner.run(fill(damaged.driver, state))
    places = damaged.places()
    assert len(places) >= 2
    for number, change in changes:
        key, name = places[number % len(places)]
        if isinstance(change, Cut | Flip):
            damaged.damage(key, name, change.of(damaged.look(key, name)))
        else:
            damaged.damage(key, name, change)
    damaged.runner.run(check(damaged.driver))


@given(changes=st.lists(st.tuples(st.integers(0, 59), CHANGES), min_size=1, max_size=2))
def test_a_damaged_record_beside_jobs_harms_only_itself(
    damaged: Damaged, changes: list[tuple[int, bytes | float | Cut | Flip | None]]
) -> None:
    damaged.empty()
    damaged.runner.run(fill_beside(damaged.driver))
    beside = (b"sched", b"worker", b"history")
    places = [place for place in damaged.places() if any(each in place[0] for each in beside)]
    assert any(b"history" in key for key, _ in places)
    assert len(places) >= 3
    for number, change in changes:
        key, name = places[number % len(places)]
        if isinstance(change, Cut | Flip):
            damaged.damage(key, name, change.of(damaged.look(key, name)))
        else:
            damaged.damage(key, name, change)
    damaged.runner.run(check_beside(damaged.driver))


@given(
    number=st.integers(0, 39),
    kind=st.sampled_from(["string", "list", "set", "hash", "stream", "zset"]),
    state=st.sampled_from(["pending", "processing", "retried", "completed"]),
)
def test_a_key_of_another_type_is_told_and_nothing_else_is_raised(
    damaged: Damaged, number: int, kind: str, state: str
) -> None:
    """Keys are the whole store's, so that calls may fail; each with an error of ours, at once."""
    damaged.empty()
    damaged.runner.run(fill(damaged.driver, state))
    damaged.retype(number, kind)
    damaged.runner.run(asked(damaged.driver))


@settings(max_examples=max(5, settings().max_examples // 4))  # each is a run of a worker
@given(
    changes=st.lists(st.tuples(st.integers(0, 59), CHANGES), min_size=1, max_size=2),
    state=st.sampled_from(["pending", "processing", "retried", "completed"]),
)
def test_a_worker_does_all_jobs_beside_a_damaged_record(
    damaged: Damaged, changes: list[tuple[int, bytes | float | Cut | Flip | None]], state: str
) -> None:
    damaged.empty()
    damaged.runner.run(fill(damaged.driver, state))
    places = damaged.places()
    for number, change in changes:
        key, name = places[number % len(places)]
        if isinstance(change, Cut | Flip):
            damaged.damage(key, name, change.of(damaged.look(key, name)))
        else:
            damaged.damage(key, name, change)
    damaged.runner.run(worked(damaged.driver))
