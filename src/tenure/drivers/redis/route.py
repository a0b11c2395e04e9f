"""Where the store is: the node that the URL names, or the one that a cluster sends us to.

Pure. All keys of a store are in one slot, so one node has all of it, and a client for whole
clusters is not needed: this remembers who said what.
"""

from collections.abc import Iterable

from tenure.drivers.redis.client import Address
from tenure.drivers.redis.faults import Refused

__all__ = ["Route"]


class Route:
    """The node to try first, and those to ask when it does not answer."""

    def __init__(self) -> None:
        self.current: Address | None = None
        self._others: tuple[Address, ...] = ()

    def learn(self, nodes: Iterable[Address]) -> None:
        """Remember nodes of the cluster, which know who has the slot."""
        self._others = tuple(nodes)

    def follow(self, moved: Refused) -> None:
        """Go where a MOVED points: 'MOVED <slot> <host>:<port>'."""
        host, _, port = str(moved).split()[2].rpartition(":")
        if not host:  # the node that answered, on another port
            host = self.current.host if self.current else ""
        self.current = Address(host, int(port)) if host else None

    def candidates(self) -> list[Address | None]:
        """All nodes worth a connection, the current one first."""
        return list(dict.fromkeys([self.current, None, *self._others]))
