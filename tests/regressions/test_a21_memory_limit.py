"""A21: the server was at its memory limit and refused the write of a failed job, which was gone.

The kind of fault: a change of state of which a refusal leaves a half. Here a script is done wholly
or not at all, and what was refused is written again until there is room.

https://github.com/sidekiq/sidekiq/issues/5558
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

import tenure
from tests.regressions.sites import live_site
from tests.regressions.standing import Told, standing_checks
from tests.servers.redis import running

# Two attempts fail, each once; what the server refuses is told at each try, and what it is.
TOLD: Mapping[str, Told] = {
    "JobFailed": 2,
    "StoreError": range(0, 60),
    "StoreUnavailable": range(0, 60),
}


@pytest.mark.store("redis")
async def test_what_a_full_server_refuses_is_done_when_there_is_room(tmp_path: Path) -> None:
    """I15, W16: one job fails, one succeeds, one is due for its retry meanwhile."""
    with running(tmp_path, "--maxmemory-policy", "noeviction") as server:
        async with live_site(server.url) as site:
            watched = site.worker(lease=10.0)
            gate = asyncio.Event()

            async def work(kind: str, job: tenure.RunningJob) -> str:
                if kind == "retry":
                    if job.attempt == 1:
                        raise ValueError("not yet")
                else:
                    await gate.wait()
                    if kind == "fail":
                        raise ValueError("no")
                return kind

            policy = tenure.RetryPolicy(max_attempts=2, base=0.5, jitter=False)
            watched.register("work", work)
            watched.register("again", work, retry=policy)
            async with watched.running() as handle:
                good = await site.queue.dispatch("work", "succeed")
                bad = await site.queue.dispatch("work", "fail")
                again = await site.queue.dispatch("again", "retry")

                async def arranged() -> bool:
                    states = [await site.state(job.id) for job in (good, bad, again)]
                    return states == ["processing", "processing", "pending"]

                await site.until(arranged, lambda: "they have not begun")
                with server.client() as client:
                    client.config_set("maxmemory", client.info("memory")["used_memory"] - 1_000_000)
                    with pytest.raises(tenure.StoreError, match="maxmemory"):
                        await asyncio.wait_for(site.queue.dispatch("work", "more"), 40.0)
                    gate.set()
                    await site.until_true(
                        lambda: (
                            watched.reported["StoreUnavailable"] + watched.reported["StoreError"]
                            > 0
                        ),
                        lambda: f"{watched.reported}",
                    )
                    held = [await site.state(job.id) for job in (good, bad)]
                    assert held == ["processing", "processing"]
                    assert handle.healthy
                    client.config_set("maxmemory", 0)
                await site.until_state("completed", good.id, again.id)
                await site.until_state("failed", bad.id)
                attempts = [(await site.queue.get(j.id)).attempt for j in (good, bad, again)]
                assert attempts == [1, 1, 2]
                ids = [good.id, bad.id, again.id]
                await standing_checks(site, watched, ids=ids, swallowed=TOLD)
