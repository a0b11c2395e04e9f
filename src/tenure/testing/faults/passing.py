"""A driver that passes every call on to another one, through one place where to step in.

By itself it changes nothing, and it never knows what it passes on.
"""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tenure.driver import Capability, Driver, KeeperHandle, RecordItem
from tenure.types import (
    Claim,
    ClaimRequest,
    Counts,
    Enqueued,
    Held,
    Hold,
    Kept,
    NewJob,
    Recorded,
)

__all__ = ["KEEPER", "PassingDriver"]

T = TypeVar("T")
Operation = TypeVar("Operation", bound=Callable[..., Coroutine[Any, Any, Any]])

KEEPER = "keeper.extend"  # what the keeper's thread asks, as the name of an operation


def _passing(operation: Operation) -> Operation:
    """The operation of the contract, passed on: its arguments and its answer are the same."""
    name = operation.__name__

    @wraps(operation, updated=())  # not that it is abstract
    async def passed(self: "PassingDriver", /, *args: object, **kwargs: object) -> object:
        call: Callable[..., Awaitable[object]] = getattr(self.inner, name)
        return await self.around(name, lambda: call(*args, **kwargs))

    return cast(Operation, passed)


class PassingDriver(Driver):
    """Passes every operation of the contract on to `inner`, each through `around`.

    A subclass steps in by overriding `around`, for the keeper's thread `around_keeper`, or single
    operations. `capabilities` are those of `inner` unless fewer are given: then nobody asks for
    the others.
    """

    def __init__(self, inner: Driver, *, capabilities: frozenset[Capability] | None = None) -> None:
        self.inner: Driver = inner
        able = inner.capabilities if capabilities is None else capabilities
        # What a class of drivers can do, this one can as the wrapped one does.
        self.capabilities = able  # type: ignore[misc]
        self.overlap: int = inner.overlap  # type: ignore[misc]

    async def around(self, operation: str, call: Callable[[], Awaitable[T]]) -> T:
        """Give the answer to a call of the named operation; `call` makes it, each time anew."""
        return await call()

    def around_keeper(self, call: Callable[[], T]) -> T:
        """The same, blocking, for what the keeper's thread asks; called in that thread."""
        return call()

    def keeper_handle(self) -> KeeperHandle:
        return _PassingKeeper(self, self.inner.keeper_handle())

    # For type checkers each is what the contract says of it.
    if TYPE_CHECKING:

        async def open(self) -> None: ...

        async def close(self) -> None: ...

        async def enqueue(
            self, jobs: Sequence[NewJob], *, now: datetime | None = None
        ) -> Sequence[Enqueued | Held]: ...

        async def claim(
            self, request: ClaimRequest, *, now: datetime | None = None
        ) -> Sequence[Claim]: ...

        async def record(
            self, items: Sequence[RecordItem], *, now: datetime | None = None
        ) -> Sequence[Recorded]: ...

        async def counts(self, *, now: datetime | None = None) -> Counts: ...

    else:
        open = _passing(Driver.open)
        close = _passing(Driver.close)
        check = _passing(Driver.check)
        enqueue = _passing(Driver.enqueue)
        claim = _passing(Driver.claim)
        record = _passing(Driver.record)
        counts = _passing(Driver.counts)
        exchange = _passing(Driver.exchange)
        enqueue_within = _passing(Driver.enqueue_within)
        record_within = _passing(Driver.record_within)
        extend = _passing(Driver.extend)
        expired = _passing(Driver.expired)
        reclaim = _passing(Driver.reclaim)
        next_due = _passing(Driver.next_due)
        progress = _passing(Driver.progress)
        wait = _passing(Driver.wait)
        cancel = _passing(Driver.cancel)
        retry = _passing(Driver.retry)
        delete = _passing(Driver.delete)
        move = _passing(Driver.move)
        purge = _passing(Driver.purge)
        pause = _passing(Driver.pause)
        prune = _passing(Driver.prune)
        get = _passing(Driver.get)
        list = _passing(Driver.list)
        history = _passing(Driver.history)
        oldest_due = _passing(Driver.oldest_due)
        put_limit = _passing(Driver.put_limit)
        drop_limit = _passing(Driver.drop_limit)
        limits = _passing(Driver.limits)
        put_schedules = _passing(Driver.put_schedules)
        drop_schedules = _passing(Driver.drop_schedules)
        pause_schedule = _passing(Driver.pause_schedule)
        schedules = _passing(Driver.schedules)
        fire = _passing(Driver.fire)
        dump = _passing(Driver.dump)
        restore = _passing(Driver.restore)
        restore_schedules = _passing(Driver.restore_schedules)
        report = _passing(Driver.report)
        workers = _passing(Driver.workers)
        lifeline = _passing(Driver.lifeline)
        shorten = _passing(Driver.shorten)


class _PassingKeeper:
    """What the keeper's thread uses, each call through the driver's `around_keeper`."""

    def __init__(self, driver: PassingDriver, inner: KeeperHandle) -> None:
        self._driver = driver
        self._inner = inner

    def extend(self, holds: Sequence[Hold], lease: float) -> Sequence[Kept]:
        return self._driver.around_keeper(lambda: self._inner.extend(holds, lease))

    def close(self) -> None:
        self._inner.close()
