"""The worker: which handlers run jobs of which queues, with which bounds.

Configuration only; what runs is in `_runtime`, and `run()` connects the two.
"""

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from secrets import token_hex
from typing import Any, TypeVar, cast

from tenure._runtime.handle import WorkerHandle
from tenure._runtime.lifecycle import Lifecycle
from tenure._runtime.settings import ServedQueue, WorkerSettings
from tenure.driver import Capability
from tenure.errors import InvalidConfiguration, InvalidJob, RuntimeUnavailable
from tenure.events import Observer
from tenure.handlers import Handler, Handlers, RetryRule, nearest
from tenure.intake import check_name, not_negative, positive, whole
from tenure.queue import Queue
from tenure.shown import shown
from tenure.types import Retention

__all__ = ["Worker"]

H = TypeVar("H", bound=Callable[..., Any])

_LEASE = 30.0
_RETENTION = Retention()


class Worker:
    """Runs the jobs of some queues, at most `concurrency` at once.

    Durations are seconds or `timedelta`.

    - `poll_interval`: how long an idle worker waits at most before it looks again (hints from the
      store usually wake it in milliseconds);
    - `job_timeout`: the time limit of an attempt where neither dispatch nor registration gave one;
    - `lease`: how long a claim is valid unless extended, which happens every third of it; None is
      30 s, or, on a store that cannot extend, twice the longest time limit;
    - `drain_timeout`: what `shutdown()` gives running handlers by default;
    - `overdue_grace`: how long the lease of a handler that cannot be interrupted is kept past its
      deadline; None is its time limit, at least one lease;
    - `queues`: the names to serve, each with the same share of the worker, or a mapping of names to
      weights: `{"mail": 5, "default": 1}` gives mail five jobs for each of default, as long as both
      have work; with `strict` the first always comes first;
    - `slots`: how many of the slots a queue may take, by name: `{"slow": 2}`;
    - `replacement_slots`: how many slots are added while as many handlers are overdue (past their
      time limit, and not to be interrupted) and keep their own: with 0 each takes one away until it
      returns; a worker all of whose slots are taken so is unhealthy, and says so;
    - `max_stalls`: leases that may run out in a row before a job is failed instead of started;
    - `prefetch`: jobs claimed beyond the free slots, to save a round trip;
    - `name`: for people; the id of each run is random;
    - `observers`: functions that are told every event;
    - `retention`: how long finished jobs of the store are kept, which each worker sees to in small
      steps; None deletes none. Give the workers of a store all the same: the shortest wins.

    Raises `InvalidConfiguration` naming the option, the value and the rule.
    """

    def __init__(
        self,
        queue: Queue,
        *,
        concurrency: int = 16,
        poll_interval: float | timedelta = 1.0,
        job_timeout: float | timedelta = 300.0,
        lease: float | timedelta | None = None,
        drain_timeout: float | timedelta = 25.0,
        overdue_grace: float | timedelta | None = None,
        queues: Sequence[str] | Mapping[str, float] = ("default",),
        max_stalls: int = 5,
        prefetch: int = 0,
        name: str | None = None,
        observers: Iterable[Observer] = (),
        strict: bool = False,
        slots: Mapping[str, int] | None = None,
        replacement_slots: int = 0,
        retention: Retention | None = _RETENTION,
    ) -> None:
        self._queue = queue
        self._concurrency = whole("concurrency", concurrency, 1, 100_000)
        self._poll_interval = positive("poll_interval", poll_interval)
        self._job_timeout = positive("job_timeout", job_timeout)
        self._lease = None if lease is None else positive("lease", lease)
        self._drain_timeout = not_negative("drain_timeout", drain_timeout)
        self._overdue_grace = (
            None if overdue_grace is None else not_negative("overdue_grace", overdue_grace)
        )
        self._queues = _served(queues, slots)
        self._strict = _switch("strict", strict)
        self._max_stalls = whole("max_stalls", max_stalls, 1, 1000)
        self._prefetch = whole("prefetch", prefetch, 0, 100_000)
        self._replacement_slots = whole("replacement_slots", replacement_slots, 0, 100_000)
        self._name = None if name is None else _name("name", name)
        self._observers = tuple(observers)
        self._retention = None if retention is None else _kept(retention)
        self._handlers = Handlers()
        self._longest = self._job_timeout
        self._check_lease()

    @property
    def queue(self) -> Queue:
        """The queue whose jobs it runs."""
        return self._queue

    @property
    def drain_timeout(self) -> float:
        """The seconds that `shutdown()` gives running handlers by default."""
        return self._drain_timeout

    def register(
        self,
        name: str,
        handler: Handler,
        *,
        retry: RetryRule | None = None,
        timeout: float | timedelta | None = None,
        executor: None = None,
        replace: bool = False,
    ) -> None:
        """Let `handler(payload)` or `handler(payload, job)` run the jobs of this name.

        An `async def` runs on the event loop, a plain `def` in a thread. `retry` says when a failed
        attempt is followed by another; without it, and without `max_attempts` at dispatch, there is
        one attempt. `timeout` limits an attempt. `executor` has no other value yet than None.
        A name that is taken is refused unless `replace`. Running workers do not change.
        """
        if executor is not None:
            raise InvalidConfiguration("executor", executor, "must be None")
        limit = None if timeout is None else positive("timeout", timeout)
        if limit is not None and limit > self._longest:
            self._check_lease(limit)
        self._handlers.add(
            _name("name", name), handler, retry=retry, timeout=limit, replace=replace
        )
        self._longest = max(self._longest, limit or 0.0)

    def handler(
        self,
        name: str,
        *,
        retry: RetryRule | None = None,
        timeout: float | timedelta | None = None,
        executor: None = None,
        replace: bool = False,
    ) -> Callable[[H], H]:
        """`register` as a decorator; the function itself is left as it is."""

        def decorate(function: H) -> H:
            self.register(
                name, function, retry=retry, timeout=timeout, executor=executor, replace=replace
            )
            return function

        return decorate

    def run(self) -> WorkerHandle:
        """Start one run on the running event loop, with the handlers registered so far.

        Several runs of one worker are independent of each other. Raises `RuntimeUnavailable`
        outside an event loop, and for a closed queue; then nothing was started.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise RuntimeUnavailable(
                "a worker runs on an event loop: call run() inside a coroutine, for example one "
                "started by asyncio.run()"
            ) from None
        if self._queue.closed:
            raise RuntimeUnavailable("the queue is closed; open it again with `await queue`")
        lifecycle = Lifecycle(
            self._settings(),
            self._handlers.snapshot(),
            self._queue.driver,
            self._queue.clock,
            self._observers,
            self._queue.waits,
        )
        self._queue.attach(lifecycle, loop)
        lifecycle.start()
        return WorkerHandle(lifecycle, loop)

    def _settings(self) -> WorkerSettings:
        return WorkerSettings(
            worker_id=token_hex(8),
            name=self._name,
            concurrency=self._concurrency,
            poll_interval=self._poll_interval,
            job_timeout=self._job_timeout,
            lease=self._effective_lease(),
            drain_timeout=self._drain_timeout,
            overdue_grace=self._overdue_grace,
            queues=self._queues,
            strict=self._strict,
            max_stalls=self._max_stalls,
            prefetch=self._prefetch,
            replacement_slots=self._replacement_slots,
            result_limit=self._queue.payload_limit,
            codec=self._queue.codec,
            retention=self._retention,
        )

    def _effective_lease(self) -> float:
        if self._lease is not None:
            return self._lease
        if Capability.EXTEND in self._queue.capabilities:
            return _LEASE
        return 2 * self._longest

    def _check_lease(self, timeout: float | None = None) -> None:
        """Where leases cannot be extended, one must outlast every job."""
        longest = timeout or self._job_timeout
        if self._lease is None or Capability.EXTEND in self._queue.capabilities:
            return
        if self._lease <= longest:
            raise InvalidConfiguration(
                "lease",
                self._lease,
                f"must be longer than every time limit (here {longest:g} s), since this store "
                "cannot extend leases",
            )


def _name(option: str, value: object) -> str:
    try:
        return check_name(option, value)
    except InvalidJob as error:
        raise InvalidConfiguration(option, value, error.rule) from None


def _switch(option: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidConfiguration(option, value, "must be True or False")
    return value


def _served(queues: object, slots: object) -> tuple[ServedQueue, ...]:
    """The queues with their weights and bounds, in the order in which they were given."""
    weights = _weights(queues)
    bounds = _bounds(slots, weights)
    return tuple(
        ServedQueue(name=name, weight=weight, slots=bounds.get(name))
        for name, weight in weights.items()
    )


def _weights(queues: object) -> dict[str, float]:
    refused = queues
    if isinstance(queues, Mapping):
        given = cast("Mapping[object, object]", queues)
        weights = {_name("queues", name): _weight(name, value) for name, value in given.items()}
    else:
        names = () if isinstance(queues, str) else _listed(queues)
        weights = {_name("queues", name): 1.0 for name in names}
        if len(weights) != len(names):
            weights.clear()
    if not weights:
        rule = (
            "must be a list of different queue names, such as ['default'], or map names to weights"
        )
        raise InvalidConfiguration("queues", refused, rule)
    return weights


def _listed(queues: object) -> tuple[object, ...]:
    try:
        return tuple(cast("Iterable[object]", queues))
    except TypeError:
        return ()


def _weight(name: object, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        rule = "must be a weight greater than 0"
        raise InvalidConfiguration(f"queues[{shown(name)}]", value, rule)
    return float(value)


def _bounds(slots: object, queues: Mapping[str, float]) -> dict[str, int]:
    if slots is None:
        return {}
    if not isinstance(slots, Mapping):
        raise InvalidConfiguration("slots", slots, "must map queue names to numbers of slots")
    bounds: dict[str, int] = {}
    for name, bound in cast("Mapping[object, object]", slots).items():
        if not isinstance(name, str) or name not in queues:
            rule = f"must name queues that are served ({', '.join(queues)})"
            raise InvalidConfiguration("slots", name, f"{rule}{nearest(str(name), queues)}")
        bounds[name] = whole(f"slots[{name!r}]", bound, 1, 100_000)
    return bounds


def _kept(retention: object) -> Retention:
    if not isinstance(retention, Retention):
        raise InvalidConfiguration("retention", retention, "must be a tenure.Retention, or None")
    for field in ("completed", "failed", "cancelled"):
        age: object = getattr(retention, field)
        if age is not None:
            not_negative(f"retention.{field}", age)
    for field in ("completed_count", "completed_bytes"):
        number: object = getattr(retention, field)
        if number is not None:
            whole(f"retention.{field}", number, 0, 2**53)
    return retention
