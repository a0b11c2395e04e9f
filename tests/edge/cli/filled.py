"""A store with something of everything, and all that its ordinary calls show of it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

import tenure
from tenure.driver import Driver
from tenure.history import PastAttempt
from tenure.outcomes import (
    Cancelled,
    Completed,
    Failed,
    Failure,
    Outcome,
    Released,
    Retried,
)
from tenure.types import Claim, ClaimRequest, QueueLimit

__all__ = ["Seen", "after_a_move", "fill", "see"]

_ODD: dict[str, Any] = {"text": "é\u65e5\U0001f600 \x7f", "n": [1, 2.5, 1e300, None, True], "": {}}


class Seen:
    """What is shown of a store: jobs newest first, and what stands beside them."""

    def __init__(self) -> None:
        self.jobs: list[tenure.Job[Any]] = []
        self.histories: dict[str, Sequence[PastAttempt]] = {}
        self.limits: Sequence[Any] = ()
        self.schedules: list[Any] = []
        self.paused: frozenset[str] = frozenset()


async def fill(queue: tenure.Queue) -> None:
    """Jobs in every state, with all that a job can have; limits, schedules, a paused queue."""
    await queue.limit("api", concurrent=2)
    await queue.limit("customer:*", per_second=1000)
    await queue.schedule("nightly", "0 3 * * *", "report", {"kind": "é"}, zone="Europe/Berlin")
    await queue.schedule("often", "@every 90s", "ping", missed="all", unique="ping")
    await queue.pause_schedule("often")
    await queue.pause("slow")
    driver = await queue.driver()
    outcomes: dict[str, Sequence[Outcome]] = {
        "completed": [Retried(0.0, _failure("once")), Completed(b'{"a":1e2}')],
        "without-result": [Completed()],
        "failed": [Retried(0.0, _failure("first")), Failed(_failure("x" * 3000, "panic"))],
        "cancelled": [Cancelled("no longer needed")],
        "released": [Released("shutdown")],
        "retrying": [Retried(3600.0, _failure("later"))],
    }
    for name, ended in outcomes.items():
        await queue.dispatch(name, _ODD, queue=name, id=name, headers={"trace": name})
        for outcome in ended:
            claimed = await _claimed(driver, name)
            await driver.record([(claimed.hold, outcome)])
    await queue.dispatch("work", None, id="waits", priority=7, max_attempts=3, timeout=1.5)
    await queue.dispatch("work", "x" * 70_000, id="large", queue="slow", limits=["api"])
    await queue.dispatch("work", 1, id="limited", limits=["api", "customer:1"])
    await queue.dispatch("work", 2, id="limited-too", limits=["api", "customer:1"])
    await queue.dispatch("work", 3, id="scheduled", delay=86_400, unique="only one")
    throttle = tenure.Unique("rate", mode="throttle", period=3600)
    await queue.dispatch("work", 4, id="throttled", queue="throttled", unique=throttle)
    await driver.record([((await _claimed(driver, "throttled")).hold, Completed())])
    await queue.dispatch("work", 5, id="stalled", queue="stalled")
    await _claimed(driver, "stalled", lease=0.000001)
    later = tenure.SystemClock().now() + timedelta(seconds=1)
    assert await driver.reclaim(1, [0.0], now=later)
    await queue.dispatch("work", 6, id="running", queue="running", unique="running")
    await driver.progress((await _claimed(driver, "running")).hold, b'{"done":1}')
    await queue.dispatch("work", 7, id="unwanted", queue="unwanted")
    await _claimed(driver, "unwanted")
    await queue.cancel("unwanted")


async def _claimed(driver: Driver, queue: str, lease: float = 60.0) -> Claim:
    request = ClaimRequest(
        token=f"token of {queue}",
        queues=(QueueLimit(queue, 1),),
        limit=1,
        worker="the worker",
        lease=lease,
    )
    (claimed,) = await driver.claim(request)
    return claimed


def _failure(message: str, kind: str = "error") -> Failure:
    at = tenure.SystemClock().now()
    return Failure(kind=kind, message=message, trace="Traceback: é", at=at, attempt=1)


async def see(queue: tenure.Queue) -> Seen:
    """All that a queue shows, by its ordinary calls."""
    seen = Seen()
    cursor: str | None = None
    while True:
        page = await queue.list(limit=100, cursor=cursor)
        seen.jobs += page.jobs
        cursor = page.cursor
        if cursor is None:
            break
    seen.histories = {job.id: list(await queue.history(job.id)) for job in seen.jobs}
    seen.limits = list(await queue.limits())
    seen.schedules = [
        replace(each, seen_at=each.created_at, next=None) for each in await queue.schedules()
    ]
    seen.paused = (await queue.counts()).paused
    return seen


def after_a_move(seen: Seen) -> Seen:
    """What another store is to show: what was being processed there waits to be started."""
    for place, job in enumerate(seen.jobs):
        if job.state is tenure.State.PROCESSING:
            seen.jobs[place] = replace(
                job,
                state=tenure.State.PENDING,
                serial=job.serial + 1,
                attempt=job.attempt - 1,
            )
    return seen
