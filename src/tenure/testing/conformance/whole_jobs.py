"""Whole jobs as checks of dump and restore use them, and both calls in short."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypedDict, Unpack

from msgspec.structs import replace

from tenure.driver import Capability, Driver
from tenure.history import PastAttempt
from tenure.moved import KeyHold, Restored, StoredJob
from tenure.outcomes import Failure
from tenure.states import State
from tenure.testing.conformance.builders import (
    T0,
    after,
    failure,
)
from tenure.testing.conformance.check import expect, expect_that
from tenure.types import (
    Job,
    UniqueKey,
)

__all__ = [
    "CONTENT",
    "NEEDS",
    "SEEN",
    "dumped",
    "in_each_state",
    "over",
    "past_attempt",
    "restore",
    "restored",
    "whole",
]

NEEDS = (Capability.RESTORE,)
SEEN = (Capability.RESTORE, Capability.INSPECT)
CONTENT = b"\x00content"


class WholeFields(TypedDict, total=False):
    """The fields of a whole job that a check may give."""

    name: str
    queue: str
    payload: bytes
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
    result: bytes | None
    progress: bytes | None
    cancel_requested: bool
    unique: UniqueKey | None
    limits: tuple[str, ...]


def whole(
    id: str,
    *,
    content: bytes = CONTENT,
    key: KeyHold | None = None,
    history: tuple[PastAttempt, ...] = (),
    **fields: Unpack[WholeFields],
) -> StoredJob:
    """A job as another store may have given it: it waits since `T0`, unless the fields say more."""
    job = Job(
        id=id,
        name="work",
        queue="default",
        payload=b"null",
        priority=0,
        max_attempts=None,
        timeout=None,
        headers={},
        state=State.PENDING,
        attempt=0,
        stalls=0,
        serial=0,
        run_at=T0,
        created_at=T0,
        updated_at=T0,
        finished_at=None,
        error=None,
        result=None,
        progress=None,
        cancel_requested=False,
    )
    return StoredJob(job=replace(job, **fields), content=content, key=key, history=history)


async def restore(store: Driver, *jobs: StoredJob, now: datetime = T0) -> Sequence[object]:
    """The answers for one batch."""
    return list(await store.restore(jobs, now=now))


async def restored(store: Driver, *jobs: StoredJob, now: datetime = T0) -> None:
    """All of the batch must be stored."""
    answers = await restore(store, *jobs, now=now)
    expect(answers, [Restored.STORED] * len(jobs), "the answers of restore")


async def dumped(store: Driver, limit: int = 100, now: datetime = T0) -> list[StoredJob]:
    """All pages of a dump."""
    found: list[StoredJob] = []
    cursor: str | None = None
    while True:
        page = await store.dump(cursor, limit, now=now)
        expect_that(len(page.jobs) <= limit, f"a page of {len(page.jobs)} jobs for {limit}")
        expect(page.unreadable, (), "the unreadable jobs of a dump")
        found += page.jobs
        cursor = page.cursor
        if cursor is None:
            return found


def past_attempt(
    attempt: int = 1, serial: int = 1, message: str = "broke \u00e9\u65e5\x00"
) -> PastAttempt:
    return PastAttempt(
        attempt=attempt,
        serial=serial,
        outcome="retried",
        started_at=after(1.000001),
        ended_at=after(2.5),
        worker="a worker",
        kind="error",
        message=message,
    )


def in_each_state() -> list[StoredJob]:
    """One or more in each state, with what is hard to carry."""
    return [
        whole("pending", payload=b"\x00\xff\xfe", run_at=after(0.000001), created_at=after(-5.5)),
        whole("scheduled", run_at=after(1e6), priority=-100, max_attempts=3, timeout=0.25),
        whole("retrying", attempt=1, serial=2, error=failure("broke \ud55c"), stalls=2),
        whole("blocked", state=State.BLOCKED, headers={"a": "b", "\u00e9": "\u65e5"}),
        whole("processing", state=State.PROCESSING, attempt=3, serial=7, stalls=1, priority=100),
        over("completed", state=State.COMPLETED, result=b'\xff{"a":1e2}', progress=b""),
        over("empty", state=State.COMPLETED, payload=b"", result=b""),
        over("failed", state=State.FAILED, error=failure("x" * 5000, kind="panic")),
        over("cancelled", state=State.CANCELLED, progress=b"[1]", name="\u65e5"),
    ]


def over(id: str, *, content: bytes = CONTENT, **fields: Unpack[WholeFields]) -> StoredJob:
    """A job that had a past, and has ended."""
    fields.setdefault("finished_at", after(9.000003))
    fields.setdefault("updated_at", after(10))
    fields.setdefault("serial", 4)
    fields.setdefault("attempt", 2)
    return whole(id, content=content, **fields)
