"""A33: one record that was ready but at its limit of attempts made every fetch fail, on all nodes.

The kind of fault: a record at the head of the line that breaks the claim. Here each harms only
itself: it is ended with a reason, told of once, and those behind it are done.

https://github.com/oban-bg/oban/issues/652
"""

import sqlite3
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest

import tenure
from tests.regressions.lost import lose
from tests.regressions.sites import Opening, live_site, still_site
from tests.regressions.standing import standing_checks
from tests.regressions.watched import CANARY
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer

GOOD = 30  # 100 in the recipe

# The changes that somebody else makes to records, by the ids of the jobs.
COLUMNS = {
    "negative": "attempt = -5",
    "empty": "payload = ''",
    "headers": "headers = '{broken'",
    "unknown": "state = 77",
}
# With a site on a fresh store: those changes there, and the kind of failure that each ends as.
ROWS = {"negative": "damaged", "empty": "serialization", "headers": "damaged"}
Spoiler = tuple[Opening, Mapping[str, Callable[[], object]], Mapping[str, str]]


def of_sqlite(folder: Path) -> Spoiler:
    def change(job_id: str, what: str) -> None:
        other = sqlite3.connect(folder / "jobs.db", isolation_level=None)
        blob = what.replace("payload = ''", "payload = x''")
        other.execute(f"UPDATE tenure_jobs SET {blob} WHERE id = ?", [job_id])
        other.close()

    changes = {job_id: partial(change, job_id, what) for job_id, what in COLUMNS.items()}
    return lambda: still_site("sqlite", folder), changes, ROWS


def of_postgres(server: PostgresServer) -> Spoiler:
    own = f"site_{uuid4().hex}"

    def change(job_id: str, what: str) -> None:
        server.ask(f"UPDATE {own}.jobs SET {what} WHERE id = %s", job_id)

    changes = {job_id: partial(change, job_id, what) for job_id, what in COLUMNS.items()}
    return lambda: live_site(f"{server.url}?schema={own}"), changes, ROWS


def of_redis(server: RedisServer) -> Spoiler:
    own = uuid4().hex

    def run(command: str, key: str, *rest: object) -> None:
        with server.client() as client:
            client.execute_command(command, f"{{{own}}}:{key}", *rest)

    changes: dict[str, Callable[[], object]] = {
        "negative": lambda: run("HSET", "marks", "negative", b"rubbish"),
        "empty": lambda: run("HDEL", "jobs", "empty"),
        "headers": lambda: run("HSET", "jobs", "headers", b"{no json\nnull"),
        "unknown": lambda: run("HDEL", "marks", "unknown"),
    }
    ends = dict.fromkeys(changes, "damaged")
    return lambda: live_site(f"{server.url}?namespace={own}"), changes, ends


@pytest.fixture(params=["memory", "sqlite", "redis", "postgres"])
def spoiler(request: pytest.FixtureRequest, tmp_path: Path) -> Spoiler:
    """A site on a fresh store, and what can be done to the records there."""
    match request.param:
        case "memory":
            return lambda: still_site("memory", tmp_path), {}, {}
        case "sqlite":
            return of_sqlite(tmp_path)
        case "redis":
            return of_redis(request.getfixturevalue("redis_server"))
        case _:
            return of_postgres(request.getfixturevalue("postgres_server"))


async def test_bad_records_at_the_head_harm_only_themselves(spoiler: Spoiler) -> None:
    """I12, W17, W20: ready at its limit, truncated, and whatever others do to what is stored."""
    opening, changes, ends = spoiler
    async with opening() as site:
        driver = await site.driver()
        await site.queue.dispatch("work", id="spent", max_attempts=1)
        assert await lose(site, 1) == ["spent"]
        await driver.enqueue([tenure.NewJob(id="truncated", name="work", payload=b'{"a": ')])
        for job_id in ends:
            await site.queue.dispatch("work", id=job_id)
            changes[job_id]()
        good = [f"good-{number}" for number in range(GOOD)]
        await site.queue.dispatch_many([tenure.Call("work", id=job_id) for job_id in good])
        watched = site.worker()

        async def work(payload: object) -> None:
            return None

        watched.register("work", work)
        async with watched.running():
            await site.until_state("completed", *good)
            bad = {"spent": "stalled", "truncated": "serialization", **ends}
            await site.until_state("failed", *bad)
            for job_id, kind in bad.items():
                error = (await site.queue.get(job_id)).error
                assert error is not None
                assert error.kind == kind
                assert error.message
            kinds = list(bad.values())
            unreadable = kinds.count("serialization")
            await standing_checks(
                site,
                watched,
                ids=[*good, *bad],
                swallowed={
                    "JobFailed": len(kinds) - unreadable,
                    "SerializationError": unreadable,
                },
            )


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
async def test_a_record_in_a_state_that_is_none_is_shown_and_stops_nobody(
    store: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """I12: no claim finds it; it is shown as failed, so that somebody may delete it."""
    server = request.getfixturevalue("postgres_server") if store == "postgres" else None
    opening, changes, _ = of_sqlite(tmp_path) if server is None else of_postgres(server)
    async with opening() as site:
        await site.queue.dispatch("work", id="unknown")
        changes["unknown"]()
        watched = site.worker()
        async with watched.running() as handle:
            good = await site.queue.dispatch(CANARY)
            await site.until_state("completed", good.id)
            assert await site.state("unknown") == "failed"
            assert await site.queue.delete("unknown") == "done"
            # No standing checks: a total that SQLite keeps of each state is off by this record.
            await site.end(handle, 0.0)
            assert watched.reported == {}
