"""Where the store is: the node that the URL names, or the one that a cluster sends us to.

Pure. All keys of a store are in one slot, so one node has all of it, and a client for whole
clusters is not needed: this remembers who said what. The event loop and the keeper's thread share
one route, so that either profits from what the other learned; each attribute is replaced whole, and
whatever it holds is only where to look first.
"""

from collections.abc import Iterable

from tenure.drivers.redis.client import Address
from tenure.drivers.redis.faults import Refused

__all__ = ["Route"]


class Route:
    """The node to try first, and those to ask when it does not answer.

    `host` is that of the URL, for replies that leave it out.
    """

    def __init__(self, host: str | None = None) -> None:
        self.current: Address | None = None
        self._host = host
        self._others: tuple[Address, ...] = ()

    @property
    def clustered(self) -> bool:
        """Whether the server is known to be a node of a cluster."""
        return bool(self._others)

    def learn(self, nodes: Iterable[Address]) -> None:
        """Remember nodes of the cluster, which know who has the slot."""
        self._others = tuple(nodes)

    def follow(self, moved: Refused) -> None:
        """Go where a MOVED points: 'MOVED <slot> <host>:<port>'."""
        host, _, port = str(moved).split()[2].rpartition(":")
        if not host:  # the node that answered, on another port
            host = (self.current.host if self.current else self._host) or ""
        self.current = Address(host, int(port)) if host else None
        if self.current and not self._others:
            self._others = (self.current,)  # so it is a cluster

    def doubt(self) -> None:
        """Ask another node next: the current one is cut off from the rest of its cluster."""
        nodes = self._others
        if nodes:
            at = nodes.index(self.current) + 1 if self.current in nodes else 0
            self.current = nodes[at % len(nodes)]

    def candidates(self) -> list[Address | None]:
        """All nodes worth a connection, the current one first."""
        return list(dict.fromkeys([self.current, None, *self._others]))
