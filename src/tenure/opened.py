"""What every part of a queue works with: the store behind it, and the clock.

`Queue` is made of parts, one class and file for each group of calls. A part knows the store and
nothing of the other parts; it has no state of its own.
"""

from tenure.clock import Clock
from tenure.driver import Driver
from tenure.ids import JobIds
from tenure.intake import check_codec
from tenure.payload_codec import PayloadCodec
from tenure.store import Store

__all__ = ["Opened"]


class Opened:
    """A store that opens on first use, once for each event loop.

    `payload_limit` is in bytes of JSON, for payloads and results; `codec` what they pass through on
    their way into the store and out of it.
    """

    def __init__(
        self, store: Store, clock: Clock, payload_limit: int, codec: PayloadCodec | None
    ) -> None:
        self.clock = clock
        self.payload_limit = payload_limit
        self.codec: PayloadCodec | None = None if codec is None else check_codec(codec)
        self._store = store
        self._ids = JobIds()

    async def driver(self) -> Driver:
        """The opened driver for the running event loop; the queue opens it when needed."""
        return await self._store.driver()
