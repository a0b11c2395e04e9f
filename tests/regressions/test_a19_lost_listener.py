"""A19: the notification connection dropped once and was never set up again.

The kind of fault: a listener that is lost without a word, so that each job is found a whole poll
later. Here it is set up again, and there is one of it.

https://github.com/taskforcesh/bullmq/issues/4729
"""

import asyncio
from typing import Any

import pytest

from tenure.testing.faults import Relay
from tests.regressions.sites import live_site
from tests.regressions.standing import standing_checks
from tests.servers.postgres import PostgresServer

OUTAGE = 0.5  # seconds in which connections are refused; 2 in the recipe
POLL = 30.0
LISTENING = "SELECT pid FROM pg_stat_activity WHERE query ILIKE 'LISTEN%%' AND datname = %s"


async def quick(payload: object) -> None:
    return None


@pytest.mark.parametrize("store", ["redis", "postgres"])
async def test_a_worker_is_woken_again_after_its_connections_were_cut(
    store: str, request: pytest.FixtureRequest
) -> None:
    """W8: it polls every thirty seconds, and starts what is dispatched long before that."""
    server: Any = request.getfixturevalue(f"{store}_server")
    option = "?namespace=a19" if store == "redis" else "?schema=a19"
    async with Relay("127.0.0.1", server.port) as relay:
        through = server.url.replace(f":{server.port}", f":{relay.port}")
        async with live_site(through + option) as site:
            watched = site.worker(poll_interval=POLL, lease=60.0)
            watched.register("quick", quick)
            ids: list[str] = []
            async with watched.running():
                for _ in range(2):
                    job = await site.queue.dispatch("quick")
                    ids.append(job.id)
                    await site.until_state("completed", job.id, seconds=POLL / 2)
                    relay.refuse()
                    relay.cut()
                    await asyncio.sleep(OUTAGE)
                    relay.restore()
                last = await site.queue.dispatch("quick")
                await site.until_state("completed", last.id, seconds=POLL / 2)
                if isinstance(server, PostgresServer):
                    assert len(server.ask(LISTENING, "postgres")) <= 1
                await standing_checks(
                    site, watched, ids=[*ids, last.id], swallowed={"StoreUnavailable": range(0, 20)}
                )
