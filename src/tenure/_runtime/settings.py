"""The options of one worker, validated and in seconds. Values only."""

from msgspec import Struct

from tenure._runtime.surroundings import Surroundings
from tenure.payload_codec import PayloadCodec
from tenure.process_pool import Prelude, ProcessPool
from tenure.types import Retention

__all__ = ["ServedQueue", "WorkerSettings"]


class ServedQueue(Struct, frozen=True, kw_only=True):
    """A queue that the worker serves: its share, and how many of its slots it may take."""

    name: str
    weight: float = 1.0
    slots: int | None = None


class WorkerSettings(Struct, frozen=True, kw_only=True):
    """What the runtime needs to know; `Worker` documents and checks each option."""

    worker_id: str
    name: str | None
    concurrency: int
    poll_interval: float
    job_timeout: float
    lease: float
    drain_timeout: float
    overdue_grace: float | None
    queues: tuple[ServedQueue, ...]
    strict: bool
    max_stalls: int
    prefetch: int
    replacement_slots: int
    result_limit: int
    codec: PayloadCodec | None
    retention: Retention | None
    process_pool: ProcessPool | None
    prelude: Prelude | None
    surroundings: Surroundings

    @property
    def queue_names(self) -> tuple[str, ...]:
        return tuple([queue.name for queue in self.queues])
