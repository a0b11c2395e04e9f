"""A20: with the broker offline the receiver tried again at full speed, at 100 % CPU.

The kind of fault: a loop without a wait where something fails. Here every loop of a worker waits
between its tries, ever longer and with jitter, up to a cap within which it resumes.

https://github.com/taskiq-python/taskiq/issues/480
"""

import asyncio
from collections import Counter
from typing import Any

import pytest

import tenure
from tenure.testing.faults import Relay
from tests.regressions.beside import beside
from tests.regressions.sites import Opening, live_site
from tests.regressions.standing import standing_checks
from tests.regressions.watched import Watched

OUTAGE = 10.0  # seconds; where the clock is not ours, a part of it
CAP = 6.0  # seconds within which it resumes
TRIES = 25  # calls of one loop that failed; the recipe has 20 of a whole connection


def quick(payload: object) -> None:
    return None


@pytest.mark.parametrize("poll", [0.5, 60.0])
async def test_every_loop_waits_between_calls_that_fail(open_site: Opening, poll: float) -> None:
    """W8, W16: nothing answers; each operation is tried a few times, and all is well afterwards."""
    async with open_site() as site:
        queue, faults = await beside(site)
        async with queue:
            gate = asyncio.Event()

            async def wait(payload: object) -> None:
                await gate.wait()

            # However long its polls are, it resumes within the cap.
            watched = Watched(queue, {"lease": 60.0, "poll_interval": poll})
            watched.register("wait", wait)
            jobs = await site.queue.dispatch_many([tenure.Call("wait") for _ in range(3)])

            async def started() -> bool:
                return (await site.queue.counts()).processing == len(jobs)

            async with watched.running() as handle:
                await site.until(started, lambda: "they are not started")
                operations = ["claim", "exchange", "record", "extend", "expired", "reclaim"]
                operations += ["next_due", "wait", "prune", "report", "fire", "schedules"]
                plan = faults.fail(*operations, times=None)
                before = len(faults.calls)
                gate.set()  # so that there is something to record
                begun = site.clock.monotonic()
                outage = OUTAGE if site.still else OUTAGE / 4
                await site.until_true(
                    lambda: site.clock.monotonic() - begun >= outage, lambda: "time stands still"
                )
                tries = Counter(faults.calls[before:])
                assert max(tries.values()) <= TRIES, tries
                assert handle.running
                plan.lift()
                after = await site.queue.dispatch("wait")
                ids = [*(job.id for job in jobs), after.id]
                await site.until_state("completed", *ids, seconds=CAP)
                assert set(watched.reported) <= {"StoreUnavailable", "LoopBlocked"}, (
                    watched.reported
                )
                await standing_checks(site, watched, ids=ids, swallowed=None)


@pytest.mark.parametrize("how", ["refuse", "turn away"])
@pytest.mark.parametrize("store", ["redis", "postgres"])
async def test_a_port_that_is_closed_or_hangs_up_is_asked_ever_less_often(
    store: str, how: str, request: pytest.FixtureRequest
) -> None:
    """The drivers neither connect in a loop of their own."""
    server: Any = request.getfixturevalue(f"{store}_server")
    name = f"a20_{how.replace(' ', '_')}"
    option = f"?namespace={name}" if store == "redis" else f"?schema={name}"
    async with Relay("127.0.0.1", server.port) as relay:
        through = server.url.replace(f":{server.port}", f":{relay.port}")
        async with live_site(through + option) as site:
            watched = site.worker(lease=30.0)
            watched.register("quick", quick)
            async with watched.running():
                first = await site.queue.dispatch("quick")
                await site.until_state("completed", first.id)
                before = relay.accepted
                relay.refuse() if how == "refuse" else relay.turn_away()
                relay.cut()
                await site.clock.sleep(OUTAGE / 4)
                tries = relay.accepted - before
                assert tries <= 25, "connections were tried all the time"
                relay.restore()
                last = await site.queue.dispatch("quick")
                await site.until_state("completed", last.id, seconds=CAP)
                assert watched.reported.total() <= 50
                await standing_checks(site, watched, ids=[first.id, last.id], swallowed=None)
