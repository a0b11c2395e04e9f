"""A08: a restarted container had the host name and pid of the dead one, and seemed to own its jobs.

The kind of fault: an identity that is built from host and pid. Here that of each run is random, and
a job belongs to a claim.

https://github.com/sidekiq/sidekiq/issues/2920
"""

import asyncio
import os
import socket

import pytest

import tenure
from tests.regressions.beside import Beside, beside
from tests.regressions.sites import LEASE, Opening
from tests.regressions.standing import standing_checks
from tests.regressions.watched import Watched

ALL = ("claim", "record", "exchange", "extend", "keeper.extend", "reclaim", "expired", "report")


@pytest.fixture(autouse=True)
def one_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every worker has the same host name and the same pid."""
    monkeypatch.setattr(os, "getpid", lambda: 1)
    monkeypatch.setattr(socket, "gethostname", lambda: "host-a")


def end_of(faults: Beside, doomed: Watched) -> None:
    """What a SIGKILL does: nothing that it had yet to say reaches the store."""
    faults.fail(*ALL, times=None)
    doomed.handle.abort()


async def test_workers_of_one_host_and_pid_do_not_take_each_other_for_themselves(
    open_site: Opening,
) -> None:
    """I6, I7: the dead one's job is recovered, once; that of a living one is left alone."""
    async with open_site() as site:
        queue, faults = await beside(site)
        starts: list[tuple[str, str, int]] = []
        gate = asyncio.Event()

        def worker(name: str, on: tenure.Queue) -> Watched:
            async def work(payload: str, job: tenure.RunningJob) -> None:
                starts.append((name, payload, job.attempt))
                await gate.wait()

            options = {"lease": LEASE, "poll_interval": 0.2, "concurrency": 1, "name": "w"}
            watched = Watched(on, options)
            watched.register("work", work)
            return watched

        async with queue:
            doomed, third = worker("doomed", queue), worker("third", site.queue)
            next_one = worker("next", site.queue)
            lost = await site.queue.dispatch("work", "lost")
            async with doomed.running():
                await site.until_true(lambda: len(starts) == 1, lambda: f"{starts}")
                kept = await site.queue.dispatch("work", "kept")
                async with third.running():
                    await site.until_true(lambda: len(starts) == 2, lambda: f"{starts}")
                    end_of(faults, doomed)
                    async with next_one.running():
                        await site.until_true(lambda: len(starts) == 3, lambda: f"{starts}")
                        living = {info.id for info in await site.queue.workers()}
                        assert len(living) >= 2
                        assert starts[1:] == [("third", "kept", 1), ("next", "lost", 2)]
                        gate.set()
                        ids = [lost.id, kept.id]
                        await site.until_state("completed", *ids)
                        assert len(starts) == 3
                        await standing_checks(site, next_one, third, ids=ids)
