"""Workers that are lost: what a store sees of one whose process was killed, without the process."""

from secrets import token_hex

import tenure
from tests.regressions.sites import Site

__all__ = ["SHORT", "abandon", "lose"]

SHORT = 0.2  # seconds; the lease of a worker that is lost


async def abandon(site: Site, count: int, queue: str = "default") -> list[str]:
    """Let that many jobs be started by a worker that never answers again; the ids of the jobs.

    Their leases run out soon. They are for somebody else to reclaim.
    """
    driver = await site.driver()
    request = tenure.ClaimRequest(
        token=token_hex(8),
        queues=(tenure.QueueLimit(queue, count),),
        limit=count,
        worker="lost",
        lease=SHORT,
    )
    return [claim.job.id for claim in await driver.claim(request)]


async def lose(site: Site, count: int, queue: str = "default") -> list[str]:
    """As `abandon`; they have been reclaimed when this returns, and are due once more."""
    driver = await site.driver()
    abandoned = await abandon(site, count, queue)
    back: set[str] = set()

    async def reclaimed() -> bool:
        back.update(hold.job_id for hold in await driver.reclaim(count, [0.0]))
        return len(back) == len(abandoned)

    await site.until(reclaimed, lambda: f"reclaimed: {back}")
    return abandoned
