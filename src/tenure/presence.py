"""What a worker says of itself while it is there. A value; nothing depends on it."""

from datetime import datetime

from msgspec import Struct

__all__ = ["WorkerInfo"]


class WorkerInfo(Struct, frozen=True, kw_only=True):
    """What a worker says of itself, for display only; nothing depends on it.

    `id` is random, so that no two runs share one, whatever their host and pid. `concurrency` is the
    number of its slots; `running` counts its handlers, `jobs` names up to 20 of their jobs;
    `claimed_at` is when the store last answered a claim of it, with jobs or without; `version` is
    that of tenure.
    """

    id: str
    name: str | None
    host: str
    pid: int
    queues: tuple[str, ...]
    concurrency: int
    running: int
    started_at: datetime
    seen_at: datetime
    jobs: tuple[str, ...] = ()
    version: str = ""
    python: str = ""
    claimed_at: datetime | None = None
