"""Statements reach their rows through the indexes they were written for, however large the table.

Counted by the server, not read from plans: what was really run, in a session that has planned its
statements while the table was empty, with statistics of that time.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from tenure.drivers.postgres.client import PLANNING
from tests.drivers.postgres_extras.support import fresh, opened, sql
from tests.servers.postgres import PostgresServer

MANY = 100_000
BATCH = 16

READY, ID, RUNNING, KEY = "jobs_ready", "jobs_id", "jobs_processing", "jobs_pkey"
KEPT = "jobs_kept"
IDS = sorted(f"running-{n}" for n in range(1, BATCH + 1))
HOLDS = {"p1": IDS, "p2": [1] * BATCH, "p3": ["t"] * BATCH}
OUTCOMES = {
    **HOLDS,
    "p4": [3] * BATCH,
    "p5": [0] * BATCH,
    "p6": [True] * BATCH,
    "p7": [None] * BATCH,
    "p8": [None] * BATCH,
    "p9": [None] * BATCH,
    "p10": ["done"] * BATCH,
}
OTHERS = sorted(f"running-{n}" for n in range(101, BATCH + 101))
COMPLETIONS = {**HOLDS, "p1": OTHERS, **{f"p{n}": None for n in range(4, 14)}}
NO_HEADS = dict.fromkeys(("p9", "p10", "p11", "p12"))
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
TYPES = {
    "claim": "text[] int[] int text text float8 int8 timestamptz text[] int[] timestamptz[] int8[]",
    "record": "text[] int8[] text[] int2[] int2[] bool[] float8[] text[] bytea[] text[] "
    "text[] text[] timestamptz",
    "extend": "text[] int8[] text[] float8 timestamptz",
    "reclaim": "int float8[] text[] int8[] text[] timestamptz",
    "expired": "int timestamptz",
    "next_due": "text[] timestamptz",
    "claimable": "text[]",
    "get": "text",
    "held": "text",
    "progress": "text int8 text bytea timestamptz",
    "cancel": "text[] timestamptz",
    "counts": "int timestamptz",
}

# Statement, its arguments, the indexes of the jobs that it may use, how many entries it may read
# while `MANY` jobs wait and have ended. Entries that were made stale before are read too.
CASES: list[tuple[str, dict[str, Any], set[str], int]] = [
    (
        "claim",
        {"p1": ["default"], "p2": [BATCH], "p3": BATCH, "p4": "mine", "p5": "w", "p6": 30.0,
         "p7": 1 << 20, "p8": None, **NO_HEADS},
        {READY, KEY},
        4 * BATCH,
    ),
    (
        "claim",
        {"p1": ["default"], "p2": [BATCH], "p3": BATCH, "p4": "mine", "p5": "w", "p6": 30.0,
         "p7": 1 << 20, "p8": None, "p9": ["default"] * 2, "p10": [9, 0],
         "p11": [LONG_AGO] * 2, "p12": [1, 1]},
        {READY, KEY},
        4 * BATCH,
    ),
    ("record", {**OUTCOMES, "p11": None, "p12": None, "p13": None}, {ID}, 2 * BATCH),
    ("record", COMPLETIONS, {ID}, 2 * BATCH),
    ("extend", {**HOLDS, "p4": 30.0, "p5": None}, {ID, KEY}, 4 * BATCH),
    ("get", {"p1": "running-1"}, {ID}, 1),
    ("progress", {"p1": "running-1", "p2": 1, "p3": "t", "p4": b"1", "p5": None}, {ID}, 2),
    ("cancel", {"p1": ["waiting-1", "running-1"], "p2": None}, {ID, KEY}, 8),
    ("next_due", {"p1": ["default"], "p2": None}, {READY}, 2 * BATCH),
    ("claimable", {"p1": ["default"]}, {READY}, 2 * BATCH),
    ("held", {"p1": "t"}, {RUNNING}, 300),
    ("expired", {"p1": BATCH, "p2": None}, {RUNNING}, 300),
    (
        "reclaim",
        {"p1": BATCH, "p2": [0.0], "p3": None, "p4": None, "p5": None, "p6": None},
        {RUNNING, KEY},
        300 + 2 * BATCH,
    ),
    ("counts", {"p1": 1000, "p2": None}, {READY, RUNNING, KEPT}, 300 + 2 * 1010),
]  # fmt: skip


class Session:
    """One connection, with what it made the server read."""

    def __init__(self, client: "psycopg.Connection[tuple[Any, ...]]", schema: str) -> None:
        self._client = client
        self._schema = schema

    def run(self, statement: str, arguments: Mapping[str, Any]) -> None:
        """Prepared under a name, as the client library of the driver does it."""
        if not self._client.execute(
            "SELECT 1 FROM pg_prepared_statements WHERE name = %s", [statement]
        ).fetchone():
            text = sql(statement, self._schema)
            for number in range(30, 0, -1):
                text = text.replace(f"%(p{number})s", f"${number}")
            types = ", ".join(TYPES[statement].split())
            self.sql(f"PREPARE {statement} ({types}) AS {text.replace('%%', '%')}")
        values = ", ".join(f"%({name})s" for name in arguments)
        cursor = psycopg.ClientCursor(self._client)
        cursor.execute(f"EXECUTE {statement} ({values})".encode(), arguments)

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        cursor = self._client.execute(text.replace("{s}", self._schema).encode())
        return [] if cursor.description is None else cursor.fetchall()

    def read(self) -> tuple[int, dict[str, tuple[int, int]]]:
        """Scans of the whole table of jobs so far; of each index, its scans and entries read."""
        self.sql("SELECT pg_stat_force_next_flush()")
        ((whole,),) = self.sql(
            "SELECT seq_scan FROM pg_stat_user_tables WHERE schemaname = '{s}' AND relname = 'jobs'"
        )
        rows = self.sql(
            "SELECT indexrelname, idx_scan, idx_tup_read FROM pg_stat_user_indexes "
            "WHERE schemaname = '{s}' AND relname = 'jobs'"
        )
        return whole, {name: (scans, entries) for name, scans, entries in rows}

    def fill(self, count: int) -> None:
        """So many jobs that wait and that have ended, half of the former for long; 250 that run."""
        columns = (
            "id, name, queue, payload, run_at, priority, content, created_at, updated_at, state, "
            "serial, token, lease, lease_until, finished_at"
        )
        common = "'work', 'default', 'x'::bytea"
        self.sql(
            f"INSERT INTO {{s}}.jobs ({columns}) SELECT 'waiting-' || n, {common}, "
            "now() + CASE WHEN n % 2 = 0 THEN interval '1 day' ELSE interval '-1 day' END, "
            "CASE WHEN n % 2 = 0 THEN 9 ELSE 0 END, '', now(), now(), 0, 0, NULL, NULL, NULL, NULL "
            f"FROM generate_series(1, {count}) AS n"
        )
        self.sql(
            f"INSERT INTO {{s}}.jobs ({columns}) SELECT 'ended-' || n, {common}, now(), 0, '', "
            "now(), now(), 3, 1, NULL, NULL, NULL, now() "
            f"FROM generate_series(1, {count}) AS n"
        )
        self.sql(
            f"INSERT INTO {{s}}.jobs ({columns}) SELECT 'running-' || n, {common}, now(), 0, '', "
            "now(), now(), 2, 1, 't', 30, now() - interval '1 s' * (n % 2) , NULL "
            f"FROM generate_series(1, {min(count, 250)}) AS n"
        )


@contextmanager
def session(server: PostgresServer, schema: str) -> Generator[Session]:
    with server.client() as client:
        for name, value in PLANNING.items():
            client.execute(f"SET {name} = {value}".encode())
        yield Session(client, schema)


@pytest.mark.parametrize("analyzed", [False, True], ids=["never-analyzed", "analyzed-while-small"])
async def test_each_statement_uses_the_indexes_it_was_written_for(
    own_server: PostgresServer, analyzed: bool
) -> None:
    own_server.ask("ALTER SYSTEM SET autovacuum = off")
    own_server.ask("SELECT pg_reload_conf()")
    schema = fresh()
    async with opened(own_server.url, schema):
        pass
    found: dict[str, object] = {}
    with session(own_server, schema) as client:
        client.fill(BATCH)
        if analyzed:
            client.sql("ANALYZE {s}.jobs")
        for _ in range(7):  # from the sixth on a statement is planned without its values
            for statement, arguments, _indexes, _entries in CASES:
                client.run(statement, arguments)
        client.sql("DELETE FROM {s}.jobs")
        client.fill(MANY)
        for statement, arguments, indexes, entries in CASES:
            whole, before = client.read()
            client.run(statement, arguments)
            whole_after, after = client.read()
            used = {name for name in after if after[name][0] > before[name][0]}
            read = sum(after[name][1] - before[name][1] for name in after)
            if whole_after > whole or not used <= indexes or read > entries:
                found[statement] = (whole_after - whole, used, read)
    assert found == {}
