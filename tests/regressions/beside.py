"""A second way to the store of a site, which faults befall: what one worker sees of a bad network.

The site's own queue sees the store as it is.
"""

import tenure
from tenure.testing.faults import FaultyDriver
from tests.regressions.sites import Site

__all__ = ["Beside", "beside"]


class Beside(FaultyDriver):
    """Stands before a store that is open, and leaves it open."""

    async def open(self) -> None:
        return

    async def close(self) -> None:
        self.calm()


async def beside(site: Site) -> tuple[tenure.Queue, Beside]:
    """A queue on the site's store, and what to let befall it."""
    faults = Beside(await site.driver(), clock=site.clock)
    return tenure.Queue(faults, clock=site.clock), faults
