"""Witnesses of who is taken for gone, and what that does to leases."""

from datetime import datetime, timedelta

from tenure.beside import Lifeline
from tenure.types import Claim, ClaimRequest
from tests.drivers.witnesses import Witness


class _GivingUp:
    """A lifeline of which `close` is the same as `cut`."""

    def __init__(self, inner: Lifeline) -> None:
        self._inner = inner

    async def close(self) -> None:
        await self._inner.cut()

    async def cut(self) -> None:
        await self._inner.cut()


class GivenUpIsGone(Witness):
    """A worker that ends in order, or goes on without a lifeline, is taken for gone."""

    async def lifeline(self, worker: str) -> Lifeline | None:
        inner = await super().lifeline(worker)
        return None if inner is None else _GivingUp(inner)


class NobodyIsEverGone(Witness):
    """`shorten` does nothing."""

    async def shorten(self, *, now: datetime | None = None) -> float | None:
        return None


class OneGoneAllGone(Witness):
    """`shorten` ends the leases of everybody as soon as one worker is gone."""

    async def shorten(self, *, now: datetime | None = None) -> float | None:
        if self._gone_workers:
            self._gone_workers |= {record.worker for record in self._records.values()}
        return await super().shorten(now=now)


class StrangersAreGone(Witness):
    """A worker that claims without a lifeline is taken for one whose lifeline is cut."""

    def __init__(self, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]  # the clock
        self._tied: set[str] = set()

    async def lifeline(self, worker: str) -> Lifeline | None:
        self._tied.add(worker)
        return await super().lifeline(worker)

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> list[Claim]:
        if request.worker not in self._tied:
            self._gone_workers.add(request.worker)
        return list(await super().claim(request, now=now))


class ShortenedLater(Witness):
    """`shorten` gives each lease of the gone some seconds from now, however little was left."""

    async def shorten(self, *, now: datetime | None = None) -> float | None:
        now = now or self._clock.now()
        gone = set(self._gone_workers)
        answer = await super().shorten(now=now)
        for record in self._records.values():
            if record.hold is not None and record.worker in gone:
                record.until = now + timedelta(seconds=5)
        return None if answer is None else 5.0


class ShortenEndsTheHold(Witness):
    """`shorten` does not leave the end of a hold to `reclaim`."""

    async def shorten(self, *, now: datetime | None = None) -> float | None:
        answer = await super().shorten(now=now)
        if answer is not None:
            await self.reclaim(100, [0.0], now=now)
        return answer


class ShortenTellsNothing(Witness):
    """Nobody learns that there is something to reclaim."""

    async def shorten(self, *, now: datetime | None = None) -> float | None:
        await super().shorten(now=now)
        return None
