"""The options of one worker, validated and in seconds. Values only."""

from msgspec import Struct

from tenure.types import Retention

__all__ = ["WorkerSettings"]


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
    queues: tuple[str, ...]
    max_stalls: int
    prefetch: int
    result_limit: int
    retention: Retention | None
