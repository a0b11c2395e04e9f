"""How a process of a run gets at its store: again and again, as one that is restarted would."""

import asyncio

import tenure

__all__ = ["opened"]

PAUSE = 0.2


async def opened(url: str) -> tenure.Queue:
    """The queue, open, as soon as the store can be reached; it is for the caller to close."""
    while True:
        try:
            return await tenure.connect(url)
        except tenure.StoreError:  # a server or a network that is gone, a full disk
            await asyncio.sleep(PAUSE)
