"""Workers that are lost: what a store sees of one whose process was killed, without the process."""

from secrets import token_hex

import tenure
from tests.regressions.sites import Site

__all__ = ["SHORT", "lose"]

SHORT = 0.2  # seconds; the lease of a worker that is lost


async def lose(site: Site, count: int, queue: str = "default") -> list[str]:
    """Let that many jobs be started by a worker that never answers again; they are due once more.

    The ids of the jobs, which have been reclaimed when this returns.
    """
    driver = await site.driver()
    request = tenure.ClaimRequest(
        token=token_hex(8),
        queues=(tenure.QueueLimit(queue, count),),
        limit=count,
        worker="lost",
        lease=SHORT,
    )
    claims = await driver.claim(request)
    back: set[str] = set()

    async def reclaimed() -> bool:
        back.update(hold.job_id for hold in await driver.reclaim(count, [0.0]))
        return len(back) == len(claims)

    await site.until(reclaimed, lambda: f"reclaimed: {back}")
    return [claim.job.id for claim in claims]
