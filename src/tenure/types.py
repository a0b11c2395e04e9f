"""The values that pass between the layers: jobs, claims, holds, answers.

Frozen structs and enums only; no behaviour beyond small derivations of their own fields. Times
are aware UTC datetimes, durations are seconds, payloads and results are bytes in a driver's hands.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum, StrEnum
from functools import lru_cache
from hashlib import blake2b
from typing import Generic, Literal, TypeVar

from msgspec import Struct, field

from tenure.outcomes import Failure
from tenure.states import State

__all__ = [
    "Answer",
    "Claim",
    "ClaimRequest",
    "Counts",
    "Damaged",
    "Enqueued",
    "Exchanged",
    "Expired",
    "ExpiredHold",
    "Held",
    "Hold",
    "Job",
    "JobFilter",
    "Kept",
    "Move",
    "NewJob",
    "Page",
    "QueueLimit",
    "Recorded",
    "Retention",
    "ManualRetry",
    "UniqueKey",
    "content_digest",
]

P = TypeVar("P")

NO_HEADERS: Mapping[str, str] = {}


class Damaged(Struct, frozen=True):
    """Stands where stored bytes (a payload, a result) could not be decoded; `raw` keeps them."""

    raw: bytes


# --- jobs ---------------------------------------------------------------------------------------


class UniqueKey(Struct, frozen=True, kw_only=True):
    """What may exist once, and what a dispatch does that finds it held by another job.

    The job holds `key` until it is `done` (ended, however), or until it is first `started`; with
    `period`, for at most so many seconds from its dispatch. A `throttle` holds it for its period,
    whatever becomes of the job.

    A dispatch that finds the key held stores nothing. `keep` and `throttle` leave the holder as it
    is. Where the holder waits and has the same name, `replace` gives it the payload and due time of
    the new dispatch, and `debounce` moves its due time to the new one where that is later. Either
    moves it to `max_wait` seconds after the holder's dispatch at most.
    """

    key: str
    until: Literal["done", "started"] = "done"
    period: float | None = None
    mode: Literal["keep", "replace", "debounce", "throttle"] = "keep"
    max_wait: float | None = None


class NewJob(Struct, frozen=True, gc=False, kw_only=True):
    """A job as it is handed to `enqueue`; already validated, its payload already encoded.

    Due at `at`, or `delay` seconds after the store's now, or now. `max_attempts` and `timeout`
    (seconds) are None where the dispatch did not give them. `limits` are the keys it counts
    against, sorted, each once. `content` is its `content_digest` where the payload is encrypted,
    which differs each time; None where that is made from these fields.
    """

    id: str
    name: str
    queue: str = "default"
    payload: bytes = b"null"
    delay: float | None = None
    at: datetime | None = None
    priority: int = 0
    max_attempts: int | None = None
    timeout: float | None = None
    unique: UniqueKey | None = None
    limits: tuple[str, ...] = ()
    headers: Mapping[str, str] = NO_HEADERS
    content: bytes | None = None


class Job(Struct, Generic[P], frozen=True, gc=False, kw_only=True):
    """One stored job, as it was at the moment of the read.

    Drivers deal in `Job[bytes]`; `Queue.get` and `Queue.list` give the decoded view. `attempt`
    counts starts of the handler, `stalls` the leases in a row that ran out, `serial` the claims and
    reclaims so far. `error` is the newest failure, kept while a retry waits.
    """

    id: str
    name: str
    queue: str
    payload: P
    priority: int
    max_attempts: int | None
    timeout: float | None
    headers: Mapping[str, str]
    state: State
    attempt: int
    stalls: int
    serial: int
    run_at: datetime
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    error: Failure | None
    result: P | None
    progress: P | None
    cancel_requested: bool
    unique: UniqueKey | None = None
    limits: tuple[str, ...] = ()


class JobFilter(Struct, frozen=True, kw_only=True):
    """Which jobs to list or purge; a field that is None does not restrict."""

    state: State | None = None
    queue: str | None = None
    name: str | None = None


class Page(Struct, Generic[P], frozen=True, kw_only=True):
    """Jobs, newest arrival first, and the cursor that continues after them (None at the end)."""

    jobs: tuple[Job[P], ...]
    cursor: str | None


class Counts(Struct, frozen=True, kw_only=True):
    """How many jobs are where; the fields are disjoint.

    `pending` are due now, `scheduled` wait for their time. Both are exact up to 100,000 a queue;
    when one was cut there, `capped` says so. `by_queue` has the same numbers for every queue known
    to the store, itself with an empty `by_queue`; `paused` names the paused queues.
    """

    pending: int = 0
    scheduled: int = 0
    blocked: int = 0
    processing: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    capped: bool = False
    by_queue: "Mapping[str, Counts]" = field(default_factory=dict[str, "Counts"])
    paused: frozenset[str] = frozenset()


# --- claims -------------------------------------------------------------------------------------


class Hold(Struct, frozen=True, gc=False):
    """Proof of one claim. A write is applied only where both parts are the current ones.

    `serial` counts the claims and reclaims of the job and is never given back or reset; `token`
    is random, one for each claim request.
    """

    job_id: str
    serial: int
    token: str


class QueueLimit(Struct, frozen=True, gc=False):
    """A queue to claim from and how many jobs of it at most."""

    name: str
    limit: int


class ClaimRequest(Struct, frozen=True, kw_only=True):
    """A request for up to `limit` jobs in all, tried queue by queue in the order of `queues`.

    Stops before `max_bytes` of payload are passed, after at least one job. `lease` is in seconds.
    `names` restricts to those names and is given only to drivers with `Capability.NAMES`. With
    `again` it repeats a request whose answer was lost: the jobs its token already holds are
    returned first, and count against the limits.
    """

    token: str
    queues: tuple[QueueLimit, ...]
    limit: int
    worker: str
    lease: float
    max_bytes: int = 8 * 1024 * 1024
    names: frozenset[str] | None = None
    again: bool = False


class Claim(Struct, frozen=True, gc=False, kw_only=True):
    """A job taken for one attempt. `attempt` and `stalls` are as of this claim.

    `damage` tells what of the stored record could not be read; the job then carries stand-ins and
    must not be started.
    """

    job: Job[bytes]
    hold: Hold
    attempt: int
    stalls: int
    lease: float
    damage: str | None = None


class ExpiredHold(Struct, frozen=True, kw_only=True):
    """A current hold whose lease has run out: until when it ran, and how long (seconds) it was."""

    hold: Hold
    until: datetime
    lease: float


class Expired(Struct, frozen=True, kw_only=True):
    """Holds whose lease has run out, with the store's time of the look.

    `steady`: for how many seconds that time has gone on without being set, as far as the store
    knows (inf where it knows of no time at which it was set); None where it cannot tell.
    """

    now: datetime
    holds: tuple[ExpiredHold, ...]
    steady: float | None = None


# --- answers of extend and record -----------------------------------------------------------------


class Kept(Enum):
    """The answer of `extend` for one hold."""

    KEPT = "kept"
    LOST = "lost"
    CANCEL_REQUESTED = "cancel_requested"


class Recorded(Enum):
    """The answer of `record` for one item.

    `REPEATED`: this hold was settled with this very outcome before. `FENCED`: the hold is not
    current, nothing changed. `UNKNOWN`: there is no such job.
    """

    APPLIED = "applied"
    REPEATED = "repeated"
    FENCED = "fenced"
    UNKNOWN = "unknown"


class Exchanged(Struct, frozen=True, kw_only=True):
    """The answers of an exchange; `error` is why the claim half failed, after the outcomes."""

    recorded: tuple[Recorded, ...]
    claims: tuple[Claim, ...]
    error: Exception | None = None


# --- answers of enqueue and control -------------------------------------------------------------


class Enqueued(StrEnum):
    """The answer of `enqueue` for one job.

    `CREATED` also for a repeat of the same id with the same content: it is the first answer given
    again. `DUPLICATE`: the id is stored, or still known, with other content.
    """

    CREATED = "created"
    DUPLICATE = "duplicate"


class Held(Struct, frozen=True):
    """The answer of `enqueue` where the unique key is held: not stored, and who holds it."""

    holder: str


class Answer(StrEnum):
    """What a control verb did about one job; each verb's docstring says which it can give.

    `done`: as asked. `requested`: stored as a wish, the running attempt decides. `finished`: too
    late, the job has ended. `running`: refused, the job is being processed. `live`: refused, the
    job has not ended. `held`: refused, its unique key belongs to another job. `unknown`: no such
    job.
    """

    DONE = "done"
    REQUESTED = "requested"
    FINISHED = "finished"
    RUNNING = "running"
    LIVE = "live"
    HELD = "held"
    UNKNOWN = "unknown"


class ManualRetry(Struct, frozen=True):
    """A manual retry. With `serial` it applies only while the job still has that serial."""

    job_id: str
    serial: int | None = None


class Move(Struct, frozen=True, kw_only=True):
    """A move of a waiting job; what is None stays. `serial` as in `ManualRetry`."""

    job_id: str
    queue: str | None = None
    at: datetime | None = None
    priority: int | None = None
    serial: int | None = None


class Retention(Struct, frozen=True, kw_only=True):
    """How long finished jobs are kept: ages in seconds, and how much the completed ones may be.

    `completed` 24 hours, the newest `completed_count` of each queue, or the newest of each queue
    that have no more than `completed_bytes` (1 GiB) of payload and result in all, as stored:
    whichever is least. `failed` and `cancelled` 14 days. None keeps without that bound. Nothing
    that ended within the last minute is deleted.
    """

    completed: float | None = 24 * 3600.0
    completed_count: int | None = 100_000
    completed_bytes: int | None = 1024**3
    failed: float | None = 14 * 24 * 3600.0
    cancelled: float | None = 14 * 24 * 3600.0


def content_digest(job: NewJob, key: bytes = b"") -> bytes:
    """Name the content of a dispatch in eight bytes: all of it but its id; `job.content` if given.

    A store keeps it beside the id, so that a repeated dispatch is told from another job under the
    same id even after the job was moved, retried or deleted. Eight bytes do not hold a payload, but
    who guesses one can confirm the guess by them, and sees which jobs are alike. So where payloads
    are encrypted it is made with a secret `key`: then it shows only which are alike.
    """
    if job.content is not None:
        return job.content
    rest = _circumstances(
        job.name, job.queue, job.delay, job.at, job.priority, job.max_attempts, job.timeout
    )
    if job.headers or job.unique is not None or job.limits:
        headers = sorted(job.headers.items()) if job.headers else ""
        more = f"\0{headers}\0{job.unique}\0{job.limits}"
        rest += more.encode("utf-8", "backslashreplace")
    return blake2b(job.payload + rest, digest_size=8, key=key).digest()


@lru_cache(maxsize=256, typed=True)  # most jobs of a program share a few
def _circumstances(*values: object) -> bytes:
    # No name or queue holds a control character, so the separator is unambiguous.
    return "".join([f"\0{value}" for value in values]).encode("utf-8", "backslashreplace")
