"""Hears from other processes that something may have become claimable.

One connection of its own, begun with the first waiter. When it is lost the waiters poll, until it
has been set up again; it never stops trying, and never hurries.
"""

import asyncio
import logging
import random
from collections.abc import Callable

from tenure.clock import Clock
from tenure.drivers.postgres.client import Connection, Refusal, connect
from tenure.drivers.postgres.options import Options
from tenure.drivers.postgres.wake import Wakes
from tenure.errors import StoreError

__all__ = ["Listener"]

_SHORTEST = 0.2  # seconds between tries, doubled up to the longest
_LONGEST = 2.0
# A listener only receives, so that a cut network shows to it only when it asks.
_CHECK = 15.0
_CHECK_TIMEOUT = 5.0
_logger = logging.getLogger("tenure.postgres")


class Listener:
    """The listening connection of one event loop."""

    def __init__(
        self, options: Options, wakes: Wakes, own: Callable[[], frozenset[int]], clock: Clock
    ) -> None:
        """`own` gives the server processes of this driver: its commits have told the waiters."""
        self._options = options
        self._wakes = wakes
        self._own = own
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._ended: asyncio.Future[object] | None = None

    def start(self) -> None:
        """Begin to listen, where it was not begun."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def renew(self) -> None:
        """Connect anew: another connection has found that this server will not do any more."""
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _run(self) -> None:
        pause = _SHORTEST
        while True:
            try:
                connection = await connect(self._options.address, self._clock, prepare=False)
            except StoreError as error:
                _logger.debug("cannot listen for jobs", extra={"reason": str(error)})
            else:
                if await self._listen(connection):
                    pause = _SHORTEST
            await self._clock.sleep(random.uniform(pause / 2, pause))
            pause = min(pause * 2, _LONGEST)

    async def _listen(self, connection: Connection) -> bool:
        """Listen until the connection is lost; whether it held for a while."""
        ended: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._ended = ended
        held = False
        try:
            await connection.listen(self._options.channel, self._heard, self.renew)
            self._wakes.listening = True
            # What was committed before this moment was not heard.
            self._wakes.wake()
            while not await self._clock.wait(ended, _CHECK):
                await connection.fetch("SELECT", (), _CHECK_TIMEOUT)
                held = True
        except (StoreError, Refusal) as error:
            _logger.debug("the listener failed", extra={"reason": str(error)})
        finally:
            self._ended = None
            listened, self._wakes.listening = self._wakes.listening, False
            self._wakes.wake()
            await connection.close()
        if listened:
            _logger.warning("lost the connection that listens for jobs; polling until it is back")
        return held

    def _heard(self, sender: int) -> None:
        if sender not in self._own():
            self._wakes.wake()
