"""A short chaos run on each store: everything that can happen to it, and no violation."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from redis import Redis

from chaos.plan import OFFSETS, kinds, plan
from chaos.stores import STORES, running_server, settable
from tests.servers import postgres, redis
from tests.servers.faketime import WallClock, required, wall_clocks
from tests.servers.places import account, own_folder
from tests.servers.postgres import missing

ROOT = Path(__file__).parents[2]
MINUTES = 0.35
CLOSE = 0.001  # seconds by which an offset in the file of a clock is rounded
PATIENCE = 5.0
FAR = 1.5  # half the smallest step between offsets is more


@pytest.mark.parametrize("store", STORES)
def test_a_short_run_has_no_violation(store: str) -> None:
    """I1 to I8, I10, I13 to I15: a third of a minute of accidents, and an account of every job."""
    if store == "redis":
        redis.binary()  # skips or fails where there is none
    if store == "postgres":
        postgres.binaries()
    command = [sys.executable, "-m", "chaos", "--store", store, "--minutes", str(MINUTES)]
    run = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=400, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "workers killed" in run.stdout


def test_a_short_run_has_every_kind_of_accident() -> None:
    for server in (False, True):
        known = kinds(server=server, disk=True, clocks=True)
        steps = plan(1, 60 * MINUTES, known)
        assert {step.kind for step in steps} == set(known)


CLOCK = """
import sys, time
for line in sys.stdin:
    print(time.time(), time.monotonic(), flush=True)
"""


def test_the_clocks_of_processes_can_be_set() -> None:
    """The wall clock alone; skipped, or failed, where there is no libfaketime."""
    with wall_clocks(required(), 1) as [clock]:
        process = subprocess.Popen(
            [sys.executable, "-c", CLOCK],
            env={**os.environ, **clock.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with process:
            for offset in OFFSETS:
                clock.set(offset)
                before = time.time(), time.monotonic()
                print(file=process.stdin, flush=True)
                wall, monotonic = map(float, process.stdout.readline().split())
                assert before[0] <= wall - offset + CLOSE
                assert wall - offset <= time.time() + CLOSE
                assert before[1] <= monotonic <= time.monotonic()
            process.stdin.close()


def test_the_clock_of_postgres_can_be_set() -> None:
    postgres.binaries()  # skips or fails where there is none
    with (
        wall_clocks(required(), 1) as [clock],
        own_folder("chaos", account()) as folder,
        running_server("postgres", folder, clock.environment) as server,
        psycopg.connect(server.url, autocommit=True) as client,
    ):
        for offset in OFFSETS:
            clock.set(offset)
            row = client.execute(
                "SELECT extract(epoch FROM clock_timestamp()), extract(epoch FROM now())"
            ).fetchone()
            assert row is not None
            assert [abs(float(each) - offset - time.time()) < FAR for each in row] == [True] * 2


def server_time(client: Redis) -> float:
    """As scripts see it, in whole seconds."""
    asked: Any = client.eval("return redis.call('TIME')[1]", 0)
    return int(asked)


def test_the_clock_of_redis_can_be_set() -> None:
    redis.binary()  # skips or fails where there is none
    with wall_clocks(required(), 1) as [clock], own_folder("chaos", account()) as folder:
        if not settable("redis", clock.environment):
            missing(f"none of these starts with libfaketime: {', '.join(redis.binaries())}")
        set_and_look(clock, folder)


def set_and_look(clock: WallClock, folder: Path) -> None:
    with (
        running_server("redis", folder, clock.environment) as server,
        Redis(host="127.0.0.1", port=server.port) as client,
    ):
        for offset in OFFSETS:
            clock.set(offset)
            end = time.monotonic() + PATIENCE
            # It looks at the clock once in a turn of its loop: the next call may be early.
            while abs(server_time(client) - offset - time.time()) >= FAR:
                assert time.monotonic() < end, "the server's clock was not set"
