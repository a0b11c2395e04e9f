"""The store as a worker of a run sees it: its claims are timed, its extensions and its first look
for expired leases are noted.

It changes nothing: what the worker asks and what it is answered are the same.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeVar

import tenure
from chaos.ledger import Ledger
from tenure.driver import Driver, KeeperHandle, RecordItem
from tenure.testing.faults import PassingDriver

__all__ = ["NotingDriver"]

T = TypeVar("T")


class NotingDriver(PassingDriver):
    """Stands before a store that is open, and leaves it open."""

    def __init__(self, inner: Driver, ledger: Ledger) -> None:
        super().__init__(inner)
        self._ledger = ledger
        self._sent: dict[str, float] = {}  # by the token of the claim
        self._looked = False

    async def open(self) -> None:
        return

    async def close(self) -> None:
        return

    def sent(self, hold: tenure.Hold) -> float:
        """When the claim was asked for, the first time where it was repeated."""
        return self._sent[hold.token]

    async def claim(
        self, request: tenure.ClaimRequest, *, now: datetime | None = None
    ) -> Sequence[tenure.Claim]:
        return await self._timed(request, lambda: self.inner.claim(request, now=now))

    async def exchange(
        self,
        items: Sequence[RecordItem],
        request: tenure.ClaimRequest,
        *,
        now: datetime | None = None,
    ) -> tenure.Exchanged:
        return await self._timed(request, lambda: self.inner.exchange(items, request, now=now))

    async def _timed(self, request: tenure.ClaimRequest, call: Callable[[], Awaitable[T]]) -> T:
        self._sent.setdefault(request.token, time.monotonic())
        return await call()

    async def expired(self, limit: int, *, now: datetime | None = None) -> tenure.Expired:
        """The first answer is noted, as `blind` where it cannot tell whether a clock was set."""
        found = await self.inner.expired(limit, now=now)
        if not self._looked:
            self._looked = True
            self._ledger.note("looked", text="blind" if found.steady is None else "")
        return found

    def keeper_handle(self) -> KeeperHandle:
        return _NotingKeeper(self.inner.keeper_handle(), self._ledger)


class _NotingKeeper:
    """What the keeper's thread uses: each hold that was extended, and when that was asked for."""

    def __init__(self, inner: KeeperHandle, ledger: Ledger) -> None:
        self._inner = inner
        self._ledger = ledger

    def extend(self, holds: Sequence[tenure.Hold], lease: float) -> Sequence[tenure.Kept]:
        asked = time.monotonic()
        answers = self._inner.extend(holds, lease)
        for hold, answer in zip(holds, answers, strict=True):
            if answer is not tenure.Kept.LOST:
                self._ledger.note("extended", hold.job_id, serial=hold.serial, at=asked)
        return answers

    def close(self) -> None:
        self._inner.close()
