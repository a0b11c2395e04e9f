"""`tenure schema`: looks without touching, upgrades, and prints SQL that makes the same."""

import sqlite3
from pathlib import Path
from uuid import uuid4

import pytest

from tests.edge.cli.running import call
from tests.servers.postgres import PostgresServer


def test_a_look_makes_no_file(url: str, tmp_path: Path) -> None:
    ran = call("schema", "status", "--json", url=url)
    assert ran.code == 0
    assert (ran.json["found"], ran.json["state"]) == (None, "none")
    assert list(tmp_path.iterdir()) == []


def test_a_schema_is_made_once(each_url: str) -> None:
    call("schema", "status", url=each_url)
    made = call("schema", "migrate", "--json", url=each_url)
    assert made.code == 0
    found = call("schema", "status", "--json", url=each_url).json
    assert (found["state"], found["found"]) == ("current", made.json["now"])
    assert "nothing to do" in call("schema", "migrate", url=each_url).err


def test_the_script_makes_the_schema_of_a_file(url: str, tmp_path: Path) -> None:
    ran = call("schema", "sql", url=url)
    assert ran.code == 0
    file = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
    file.executescript(ran.out)
    file.close()
    assert call("schema", "status", "--json", url=url).json["state"] == "current"
    assert call("enqueue", "quick", url=url).code == 0


def test_the_script_makes_the_schema_of_a_database(postgres_server: PostgresServer) -> None:
    url = f"{postgres_server.url}?schema=cli_{uuid4().hex}"
    assert call("schema", "status", "--json", url=url).json["state"] == "none"
    with postgres_server.client() as client:
        client.execute(call("schema", "sql", url=url).out.encode())
    assert call("schema", "status", "--json", url=url).json["state"] == "current"
    assert call("enqueue", "quick", url=url).code == 0


@pytest.mark.parametrize("url", ["redis://localhost", "memory://"])
def test_a_store_without_sql_says_so(url: str) -> None:
    ran = call("schema", "sql", url=url)
    assert ran.code == 1
    assert "no SQL" in ran.err
