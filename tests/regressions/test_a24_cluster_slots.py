"""A24: on a cluster a worker failed as soon as it started: one transaction had keys in two slots.

The kind of fault: what belongs together lies on several nodes. Here all keys of a store have one
hash tag, so that each script, and whatever it touches, has one slot. (The whole kit on a cluster:
tests/drivers/test_conformance_redis.py.)

https://github.com/rq/rq/issues/1942
"""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from redis.crc import key_slot
from redis.exceptions import ResponseError

import tenure
from tests.regressions.sites import live_site
from tests.regressions.standing import standing_checks
from tests.servers.redis import RedisServer, cluster_server, redis_cluster

__all__ = ["cluster_server", "redis_cluster"]

_END = "the end of what is listened to"


class Tap:
    """Writes down every command that one node is given, those from within scripts too."""

    def __init__(self, node: RedisServer) -> None:
        self.commands: list[str] = []
        self._client: Any = node.client()
        self._monitor: Any = self._client.monitor()
        self._monitor.__enter__()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        for heard in self._monitor.listen():
            if _END in heard["command"]:
                return
            self.commands.append(heard["command"])

    def close(self) -> None:
        self._client.echo(_END)
        self._thread.join(10.0)
        self._monitor.__exit__(None, None, None)
        self._client.close()


@contextmanager
def tapped(nodes: list[RedisServer]) -> Generator[list[Tap]]:
    taps = [Tap(node) for node in nodes]
    try:
        yield taps
    finally:
        for tap in taps:
            tap.close()


def keys_of(client: Any, command: str) -> list[str]:
    """The keys that the server sees in a command; none in those that have none."""
    try:
        return [str(key) for key in client.command_getkeys(*command.split(" "))]
    except ResponseError:
        return []


@pytest.mark.store("redis")
async def test_whatever_a_script_touches_has_one_slot(redis_cluster: list[RedisServer]) -> None:
    """Dispatch, delay, claim, retry, keys, limits, schedules and shutdown, on two queues."""
    commands: list[str] = []
    with tapped(redis_cluster) as taps:
        async with live_site(f"{redis_cluster[0].url}?namespace=a24") as site:
            watched = site.worker(queues=["a", "b"])
            ticked: list[str] = []

            async def work(payload: str, job: tenure.RunningJob) -> str:
                if payload == "again" and job.attempt == 1:
                    raise ValueError("not yet")
                return payload

            async def tick(payload: object, job: tenure.RunningJob) -> None:
                ticked.append(job.id)

            policy = tenure.RetryPolicy(max_attempts=2, base=0.05)
            watched.register("work", work, retry=policy)
            watched.register("tick", tick)
            queue = site.queue
            await queue.limit("k", concurrent=1)
            await queue.schedule("s", "@every 1s", "tick", queue="b")
            ids: list[str] = []
            async with watched.running():
                for line in ("a", "b"):
                    options: dict[str, Any] = {"queue": line}
                    ids += [
                        (await queue.dispatch("work", "plain", **options)).id,
                        (await queue.dispatch("work", "later", delay=0.2, **options)).id,
                        (await queue.dispatch("work", "again", **options)).id,
                        (await queue.dispatch("work", "alone", unique="u" + line, **options)).id,
                        (await queue.dispatch("work", "limited", limits=["k"], **options)).id,
                        (await queue.dispatch("work", "limited", limits=["k"], **options)).id,
                    ]
                await site.until_state("completed", *ids)
                await site.until_true(lambda: len(ticked) > 0, lambda: "no tick")
                await queue.unschedule("s")
                await standing_checks(
                    site,
                    watched,
                    ids=[job.id for job in (await queue.list(limit=100)).jobs],
                    swallowed={"JobFailed": 2},
                )
    for tap in taps:
        commands += tap.commands
    assert sum(command.startswith(("EVALSHA", "EVAL ")) for command in commands) > 20
    with redis_cluster[0].client() as client:
        keys = {key for command in set(commands) for key in keys_of(client, command)}
    assert len(keys) > 10, keys
    assert all("{a24}" in key for key in keys), keys
    assert {key_slot(key.encode()) for key in keys} == {key_slot(b"{a24}")}
