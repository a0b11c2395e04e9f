"""A02: a job was handed to a connection that was dead already, and existed nowhere afterwards.

The kind of fault: a job that is lost with the answer to a claim. Here the store keeps it under its
hold, and the lease of a claim that nobody heard of runs out like any other.

https://github.com/ModelsLab/modelq/pull/17
"""

from typing import Any

import pytest

import tenure
from tenure.testing.faults import Relay
from tests.regressions.sites import LEASE, live_site
from tests.regressions.standing import standing_checks
from tests.regressions.watched import Watched


@pytest.mark.parametrize("store", ["redis", "postgres"])
async def test_a_job_whose_claim_was_never_heard_of_runs_elsewhere(
    store: str, request: pytest.FixtureRequest
) -> None:
    """I5, I7: at every look the store has it, once; another worker runs it after its lease."""
    server: Any = request.getfixturevalue(f"{store}_server")
    option = "?namespace=a02" if store == "redis" else "?schema=a02"
    async with Relay("127.0.0.1", server.port) as relay, live_site(server.url + option) as site:
        through = server.url.replace(f":{server.port}", f":{relay.port}")
        starts: list[str] = []
        async with tenure.connect(through + option) as queue:
            cut_off = Watched(queue, {"lease": LEASE, "poll_interval": 0.2})

            async def at_first(payload: object) -> None:
                starts.append("first")

            async def at_second(payload: object) -> None:
                starts.append("second")

            cut_off.register("work", at_first)
            second = site.worker()
            second.register("work", at_second)
            handle = cut_off.worker.run()
            warm = await site.queue.dispatch("work")
            await site.until_state("completed", warm.id)
            relay.delay(1.0, "replies")  # the answer to the claim is on its way when it is cut off
            job = await site.queue.dispatch("work")
            await site.until_state("processing", job.id, seconds=10.0)
            relay.refuse()
            relay.cut()
            async with second.running():
                await site.until_state("completed", job.id)
                assert starts == ["first", "second"]
                assert (await site.queue.get(job.id)).attempt == 2
                handle.abort()
                await handle.wait()
                await standing_checks(site, second, ids=[warm.id, job.id])
