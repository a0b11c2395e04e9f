"""What the keeper's thread extends leases through: a connection of its own, blocking.

It needs nothing of the event loop, which may be blocked.
"""

from collections.abc import Sequence

from tenure.drivers.redis import replies, requests
from tenure.drivers.redis.client import Server
from tenure.drivers.redis.links import BlockingLink
from tenure.drivers.redis.route import Route
from tenure.drivers.redis.scripts import Keys, script
from tenure.types import Hold, Kept

__all__ = ["KeeperHandle"]

_EXTEND = script("extend")


class KeeperHandle:
    """See `tenure.driver.KeeperHandle`. Connects with the first call, and again after a loss."""

    def __init__(self, server: Server, keys: Keys, route: Route) -> None:
        self._link = BlockingLink(server, keys, route)

    def extend(self, holds: Sequence[Hold], lease: float) -> Sequence[Kept]:
        arguments = ["", requests.span(lease), *requests.holds(holds)]
        return replies.kept(self._link.run(_EXTEND, arguments))

    def close(self) -> None:
        self._link.close()
