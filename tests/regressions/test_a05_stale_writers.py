"""A05: a slow worker was declared dead, and then finished a job that had ended without it.

The kind of fault: no fencing between who takes a job away and who ends it. Here every write names
its hold, and one that has been replaced changes nothing.

https://github.com/rails/solid_queue/issues/589
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

import tenure
from tests.regressions.beside import Beside, beside
from tests.regressions.sites import LEASE, Opening, Site
from tests.regressions.standing import standing_checks
from tests.regressions.watched import Watched

RACES = 50  # 500 in the recipe: as many on each store take longer and find the same
ENDS = ["return", "raise", "retry"]
CHANGING = ("claim", "record", "exchange", "extend", "keeper.extend", "expired", "reclaim")


class Slow:
    """A worker that is cut off from its store while it runs jobs, and then ends them."""

    def __init__(self, site: Site, queue: tenure.Queue) -> None:
        self.cut_off = Watched(queue, {"lease": LEASE, "poll_interval": 0.5})
        self.heir = site.worker()
        self.go = asyncio.Event()
        self.starts: list[tuple[str, str, int]] = []
        retry = tenure.RetryPolicy(max_attempts=5, base=0.1)
        for end in ENDS:
            self.cut_off.register(end, self._slow, retry=retry if end == "retry" else None)
            self.heir.register(end, self._quick)

    async def _slow(self, end: str, job: tenure.RunningJob) -> str:
        self.starts.append(("slow", end, job.attempt))
        while not self.go.is_set():
            with suppress(asyncio.CancelledError):  # it ends as it likes, and not as it is told
                await self.go.wait()
        if end == "return":
            return "stale"
        raise ValueError("stale")

    async def _quick(self, end: str, job: tenure.RunningJob) -> str:
        self.starts.append(("quick", end, job.attempt))
        return "fresh"

    @property
    def told(self) -> int:
        """How often the one that was cut off said that it is no longer its job."""
        reported = self.cut_off.reported
        return reported["LeaseLost"] + reported["StateTransitionError"]


async def run_over(site: Site, faults: Beside, slow: Slow) -> None:
    ids = [(await site.queue.dispatch(end, end)).id for end in ENDS]
    async with slow.cut_off.running():
        await site.until_true(lambda: len(slow.starts) == 3, lambda: f"started: {slow.starts}")
        freeze = faults.freeze(*CHANGING, times=None)
        async with slow.heir.running():
            await site.until_state("completed", *ids)
            ended = [await site.queue.get(job_id) for job_id in ids]
            freeze.thaw()
            slow.go.set()
            await site.until_true(
                lambda: slow.told >= len(ids), lambda: f"told: {slow.cut_off.reported}"
            )
            await site.end(slow.cut_off.handle, 0.0)
            assert [await site.queue.get(job_id) for job_id in ids] == ended
            assert {(job.attempt, job.result) for job in ended} == {(2, "fresh")}
            starts = [(who, end, n) for who, n in (("slow", 1), ("quick", 2)) for end in ENDS]
            assert sorted(slow.starts) == sorted(starts)
            await standing_checks(site, slow.heir, ids=ids)


async def test_who_was_cut_off_for_longer_than_its_lease_changes_nothing(
    open_site: Opening,
) -> None:
    """I3, W15, W19: its result, failure, retry and extension come too late, and it is told so."""
    async with open_site() as site:
        queue, faults = await beside(site)
        async with queue:
            await run_over(site, faults, Slow(site, queue))


async def test_of_a_completion_and_a_reclaim_exactly_one_wins(open_site: Opening) -> None:
    """I2, I3: both at the same moment, of many jobs at once."""
    async with open_site() as site:
        driver = await site.driver()
        ids = [f"job-{number}" for number in range(RACES)]
        await site.queue.dispatch_many([tenure.Call("work", id=job_id) for job_id in ids])
        holds = [claim.hold for claim in await claimed(driver)]
        assert len(holds) == RACES
        later = site.clock.now() + timedelta(seconds=2 * LEASE)

        async def complete(hold: tenure.Hold) -> tenure.Recorded:
            [answer] = await driver.record([(hold, tenure.Completed(b'"done"'))])
            return answer

        async def reclaim(hold: tenure.Hold) -> Sequence[tenure.Hold]:
            return await driver.reclaim(1, [0.0], only=[hold], now=later)

        async def race(number: int, hold: tenure.Hold) -> tuple[bool, bool]:
            if number % 2:
                recorded, reclaimed = await asyncio.gather(complete(hold), reclaim(hold))
            else:
                reclaimed, recorded = await asyncio.gather(reclaim(hold), complete(hold))
            return recorded is tenure.Recorded.APPLIED, list(reclaimed) == [hold]

        wins = await asyncio.gather(*(race(n, hold) for n, hold in enumerate(holds)))
        assert all(completed != reclaimed for completed, reclaimed in wins)
        states = [await site.state(hold.job_id) for hold in holds]
        assert states == ["completed" if completed else "pending" for completed, _ in wins]
        watched = site.worker()

        async def work(payload: object) -> None:
            return None

        watched.register("work", work)
        async with watched.running():
            await site.until_state("completed", *ids)
            await standing_checks(site, watched, ids=ids)


async def claimed(driver: tenure.Driver) -> Sequence[tenure.Claim]:
    request = tenure.ClaimRequest(
        token="slow",
        queues=(tenure.QueueLimit("default", RACES),),
        limit=RACES,
        worker="slow",
        lease=LEASE,
    )
    return await driver.claim(request)
