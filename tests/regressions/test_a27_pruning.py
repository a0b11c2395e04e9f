"""A27: pruners on several nodes deleted the same rows in other orders, and deadlocked every day.

The kind of fault: a deadlock or a serialization failure in maintenance. Here it is tried again
inside of the driver, and reaches nobody. (Other calls so: tests/drivers/postgres_extras.)

https://github.com/oban-bg/oban/issues/168
"""

import asyncio
from datetime import timedelta
from urllib.parse import quote

import pytest

import tenure
from tests.regressions.sites import live_site
from tests.regressions.standing import standing_checks
from tests.servers.postgres import PostgresServer

FINISHED = 1000  # 50,000 in the recipe
PRUNERS = 4
BATCH = 20


@pytest.mark.parametrize("level", ["read committed", "serializable"])
async def test_pruners_at_once_get_in_nobodys_way(
    postgres_server: PostgresServer, level: str
) -> None:
    """I16: while jobs finish, four of them delete what has ended; no live job is deleted."""
    schema = f"a27_{level.partition(' ')[0]}"
    options = f"schema={schema}&default_transaction_isolation={quote(level)}"
    async with live_site(f"{postgres_server.url}?{options}") as site:
        driver = await site.driver()
        watched = site.worker(retention=None, concurrency=50)

        async def work(payload: object) -> None:
            return None

        watched.register("work", work)
        await site.queue.dispatch_many([tenure.Call("work") for _ in range(FINISHED)])
        later = [f"later-{number}" for number in range(100)]
        await site.queue.dispatch_many(
            [tenure.Call("other", id=each, queue="other") for each in later]
        )
        pruned = 0
        later_on = site.clock.now() + timedelta(hours=1)  # ids are known for a minute at least

        async def prune() -> None:
            nonlocal pruned
            while pruned < FINISHED:
                deleted = await driver.prune(tenure.Retention(completed=0.0), BATCH, now=later_on)
                pruned += deleted

        async with watched.running():
            async with asyncio.timeout(30.0):
                await asyncio.gather(*(prune() for _ in range(PRUNERS)))
            assert pruned == FINISHED
            await standing_checks(site, watched, ids=later)
