"""Metrics for Prometheus (extra `[metrics]`): an observer for workers, a middleware for dispatches.

    metrics = Metrics()
    queue = tenure.connect(url, middleware=[metrics.dispatching])
    worker = tenure.Worker(queue, observers=[metrics])
    handle = worker.run()
    metrics.watch(handle)
    prometheus_client.start_http_server(9000)

Counts what happens in this process; a store is asked by `look` alone. The number of series is
bounded, whatever names jobs have.
"""

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, assert_never

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from tenure._runtime.handle import WorkerHandle
from tenure._runtime.vitals import Vitals
from tenure.call import Call
from tenure.clock import Clock, SystemClock
from tenure.driver import Capability
from tenure.events import (
    ErrorReported,
    Event,
    JobClaimed,
    JobFenced,
    JobSettled,
    JobsReclaimed,
    JobStarted,
    LeaseEnded,
    ScheduleFired,
    TicksSkipped,
)
from tenure.intake import whole
from tenure.job_handle import JobHandle
from tenure.queue import Queue
from tenure.types import Job

__all__ = ["Metrics"]

_OTHER = "other"
# Seconds: from what an idle worker takes to pick a job up, to a day of waiting or running.
_BUCKETS = (0.005, 0.02, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14_400, 86_400)
_JOB = ("queue", "name")
_LOOK_EVERY = 5.0  # seconds between two questions to a store, at least


class Metrics:
    """The metrics of one program; `metrics(event)` is told what happens, as any observer.

    `registry` is Prometheus's usual one unless another is given. `series` bounds how many pairs of
    queue and name have series of their own, the first that are met; the rest are counted together,
    as queue "other" and name "other". All times are in seconds:

    - `tenure_jobs_dispatched_total`, `..._claimed_total`, `..._started_total` by queue and name;
    - `tenure_jobs_settled_total`, also by `outcome`: completed, retried, snoozed, released, failed,
      cancelled;
    - `tenure_job_duration_seconds`: how long handlers ran;
    - `tenure_job_wait_seconds`: from the instant at which a job was due to its start;
    - `tenure_jobs_fenced_total` (by `operation`) and `tenure_leases_lost_total`: what a lost hold
      cost; `tenure_jobs_reclaimed_total`: jobs whose lease had run out, whosever;
    - `tenure_schedule_ticks_total`, `tenure_schedule_ticks_skipped_total`, and
      `tenure_schedule_lag_seconds`: from a tick to its job;
    - `tenure_errors_total` by `kind`, the name of the error's class, and
      `tenure_errors_dropped_total`, those that nobody has read;
    - `tenure_worker_slots`, `..._slots_used` and `..._handlers_overdue`, of the workers that
      `watch` was told of;
    - `tenure_queue_oldest_waiting_seconds` by queue, and `tenure_schedules_overdue_seconds`: as of
      the last `look`.
    """

    def __init__(
        self,
        registry: CollectorRegistry = REGISTRY,
        *,
        series: int = 200,
        clock: Clock | None = None,
    ) -> None:
        self.registry: CollectorRegistry = registry
        self._series = whole("series", series, 1, 100_000)
        self._clock = clock or SystemClock()
        self._known: set[tuple[str, str]] = set()
        self._handles = weakref.WeakSet[WorkerHandle]()
        self._looked = float("-inf")
        self._looking = asyncio.Lock()

        def counter(name: str, text: str, labels: Sequence[str] = ()) -> Counter:
            return Counter(f"tenure_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str, labels: Sequence[str] = ()) -> Histogram:
            return Histogram(f"tenure_{name}", text, labels, registry=registry, buckets=_BUCKETS)

        self._dispatched = counter("jobs_dispatched", "Jobs that were dispatched here", _JOB)

        def gauge(name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
            return Gauge(f"tenure_{name}", text, labels, registry=registry)

        self._claimed = counter("jobs_claimed", "Jobs that were claimed", _JOB)
        self._started = counter("jobs_started", "Attempts that were started", _JOB)
        self._settled = counter("jobs_settled", "Outcomes that were recorded", (*_JOB, "outcome"))
        self._fenced = counter("jobs_fenced", "Writes under a lost hold", (*_JOB, "operation"))
        self._lost = counter("leases_lost", "Attempts that lost their lease", _JOB)
        self._reclaimed = counter("jobs_reclaimed", "Jobs whose lease had run out")
        self._ticks = counter("schedule_ticks", "Instants of schedules that were fired")
        self._skipped = counter("schedule_ticks_skipped", "Missed instants that were dropped")
        self._errors = counter("errors", "Errors that were reported", ("kind",))
        self._dropped = counter("errors_dropped", "Errors that nobody has read")
        self._duration = histogram("job_duration_seconds", "How long handlers ran", _JOB)
        self._wait = histogram("job_wait_seconds", "From due to started", _JOB)
        self._lag = histogram("schedule_lag_seconds", "From a tick to its job")
        slots = gauge("worker_slots", "How many handlers may run at once")
        slots.set_function(lambda: sum(v.slots for v in self._vitals()))
        used = gauge("worker_slots_used", "How many handlers run")
        used.set_function(lambda: sum(v.used for v in self._vitals()))
        overdue = gauge("worker_handlers_overdue", "Handlers that run beyond their time limit")
        overdue.set_function(lambda: sum(v.overdue for v in self._vitals()))
        self._oldest = gauge(
            "queue_oldest_waiting_seconds", "How long the oldest due job has waited", ("queue",)
        )
        self._overdue = gauge("schedules_overdue_seconds", "How late the latest tick is")

    def __call__(self, event: Event) -> None:
        """Count one event."""
        match event:
            case JobClaimed(job=job):
                self._claimed.labels(*self._of(job)).inc()
            case JobStarted(job=job):
                labels = self._of(job)
                self._started.labels(*labels).inc()
                waited = (self._clock.now() - job.run_at).total_seconds()
                self._wait.labels(*labels).observe(max(0.0, waited))
            case JobSettled(job=job, outcome=outcome, seconds=seconds):
                labels = self._of(job)
                self._settled.labels(*labels, type(outcome).__name__.lower()).inc()
                if seconds > 0:  # else it was not started
                    self._duration.labels(*labels).observe(seconds)
            case JobFenced(job=job, operation=operation):
                self._fenced.labels(*self._of(job), operation).inc()
            case LeaseEnded(job=job):
                self._lost.labels(*self._of(job)).inc()
            case JobsReclaimed(job_ids=job_ids):
                self._reclaimed.inc(len(job_ids))
            case ScheduleFired(instant=instant):
                self._ticks.inc()
                self._lag.observe(max(0.0, (self._clock.now() - instant).total_seconds()))
            case TicksSkipped(skipped=skipped):
                self._skipped.inc(skipped)
            case ErrorReported(error=error, dropped=dropped):
                self._errors.labels(type(error).__name__).inc()
                if dropped:
                    self._dropped.inc()
            case _:
                assert_never(event)

    async def dispatching(
        self,
        calls: Sequence[Call],
        store: Callable[[Sequence[Call]], Awaitable[Sequence[JobHandle[Any]]]],
    ) -> Sequence[JobHandle[Any]]:
        """Middleware for `connect`: count the jobs that a dispatch has stored."""
        handles = await store(calls)
        for call, handle in zip(calls, handles, strict=True):
            if handle.created:
                self._dispatched.labels(*self._pair(call.queue, call.name)).inc()
        return handles

    def watch(self, handle: WorkerHandle) -> None:
        """Show the slots of a running worker, together with those of others that are watched."""
        self._handles.add(handle)

    def _vitals(self) -> Iterable[Vitals]:
        return [handle.vitals() for handle in self._handles if handle.running]

    async def look(self, queue: Queue, queues: Iterable[str]) -> None:
        """Ask the store how long the oldest due jobs of these queues have waited, and the ticks.

        The gauges for these are as old as the last look, so that an exposition is to be preceded by
        one; a look within five seconds of another does nothing, however often it is called. A tick
        is overdue when it has passed and no worker has let it; paused schedules have none. What a
        store cannot tell is not shown. Raises `StoreError`, and then the gauges stay as they were.
        """
        async with self._looking:
            now = self._clock.monotonic()
            if now - self._looked < _LOOK_EVERY:
                return
            self._looked = now
            if Capability.OLDEST_DUE in queue.capabilities:
                for name, seconds in (await queue.waiting(queues)).items():
                    self._oldest.labels(name).set(seconds)
            if Capability.SCHEDULES in queue.capabilities:
                schedules = await queue.schedules()
                self._overdue.set(max((s.overdue for s in schedules), default=0.0))

    def _of(self, job: Job[bytes]) -> tuple[str, str]:
        return self._pair(job.queue, job.name)

    def _pair(self, queue: str, name: str) -> tuple[str, str]:
        pair = (queue, name)
        if pair in self._known:
            return pair
        if len(self._known) < self._series:
            self._known.add(pair)
            return pair
        return (_OTHER, _OTHER)
