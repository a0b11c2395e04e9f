"""What must hold on a store whose records somebody else has changed, whatever that was (I12)."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import count

import tenure
from tenure.driver import Driver

__all__ = ["BAD", "GOOD", "asked", "check", "check_beside", "fill", "fill_beside"]

GOOD = ("good-1", "good-2")
BAD = "bad"
_LIMIT = 10
_tokens = count()


async def fill(driver: Driver, state: str) -> None:
    """One job that is to be damaged, in one of the states, between two that are not."""
    await driver.enqueue([_job(GOOD[0]), _job(BAD, priority=1), _job(GOOD[1])])
    if state == "pending":
        return
    [claim] = await driver.claim(_request(1))
    assert claim.job.id == BAD
    outcomes: dict[str, tenure.Outcome] = {
        "completed": tenure.Completed(b"1"),
        "failed": tenure.Failed(_failure()),
        "retried": tenure.Retried(0.0, _failure()),
    }
    if state in outcomes:
        await driver.record([(claim.hold, outcomes[state])])


async def check(driver: Driver) -> None:
    """Everything can be asked; the good jobs can be done; the bad one can be acted upon, or not.

    What is asked of the damaged one may be refused with an error of ours, but by no other.
    """
    assert isinstance(await driver.counts(), tenure.Counts)
    page = await driver.list(tenure.JobFilter(), None, _LIMIT)
    assert {job.id for job in page.jobs} >= set(GOOD)
    await _allowed(lambda: driver.get(BAD))
    await driver.next_due(["default"])
    await driver.expired(_LIMIT)
    await driver.reclaim(_LIMIT, (0.0,))
    claims: list[tenure.Claim] = []
    for _ in range(3):
        claims += await driver.claim(_request(_LIMIT))
    ours = {claim.job.id: claim for claim in claims}
    assert set(ours) >= set(GOOD), set(ours)
    assert all(ours[job_id].damage is None for job_id in GOOD)
    await _allowed(
        *(
            lambda claim=claim: driver.extend([claim.hold], 30.0)
            for claim in claims
            if claim.job.id not in GOOD
        )
    )
    done = await driver.record([(ours[job_id].hold, tenure.Completed()) for job_id in GOOD])
    assert done == [tenure.Recorded.APPLIED] * len(GOOD)
    await _allowed(
        *(
            lambda claim=claim: driver.record([(claim.hold, tenure.Failed(_failure()))])
            for claim in claims
            if claim.job.id not in GOOD
        ),
        lambda: driver.history(BAD),
        lambda: driver.cancel([BAD]),
        lambda: driver.retry([tenure.ManualRetry(job_id=BAD)]),
        lambda: driver.move([tenure.Move(job_id=BAD, priority=3)]),
        lambda: driver.delete([BAD]),
    )
    await driver.prune(tenure.Retention(completed=0.0, failed=0.0, cancelled=0.0), _LIMIT)
    await driver.counts()
    assert (await driver.enqueue([_job("later")])) != []
    assert "later" in {claim.job.id for claim in await driver.claim(_request(_LIMIT))}


async def asked(driver: Driver) -> None:
    """Every call has an answer, or an error that says that the store does not take or show it."""
    retention = tenure.Retention(completed=0.0, failed=0.0, cancelled=0.0)
    await _allowed(
        lambda: driver.enqueue([_job("more")]),
        lambda: driver.claim(_request(_LIMIT)),
        lambda: driver.next_due(["default"]),
        lambda: driver.expired(_LIMIT),
        lambda: driver.reclaim(_LIMIT, (0.0,)),
        lambda: driver.counts(),
        lambda: driver.list(tenure.JobFilter(), None, _LIMIT),
        lambda: driver.get(BAD),
        lambda: driver.history(BAD),
        lambda: driver.cancel([BAD]),
        lambda: driver.retry([tenure.ManualRetry(job_id=BAD)]),
        lambda: driver.move([tenure.Move(job_id=BAD, priority=3)]),
        lambda: driver.delete([BAD]),
        lambda: driver.schedules(),
        lambda: driver.workers(),
        lambda: driver.limits(),
        lambda: driver.purge(tenure.JobFilter(), _LIMIT),
        lambda: driver.prune(retention, _LIMIT),
    )


async def _allowed(*calls: Callable[[], object]) -> None:
    for call in calls:
        try:
            await call()  # type: ignore[misc]  # each is a call of the driver
        except tenure.StoreUnavailable as error:
            raise AssertionError("it was reached") from error
        except (tenure.StoreError, tenure.SerializationError):
            continue


def _job(job_id: str, priority: int = 0) -> tenure.NewJob:
    return tenure.NewJob(id=job_id, name="work", priority=priority, headers={"a": "b"})


def _request(limit: int) -> tenure.ClaimRequest:
    queues: Sequence[tenure.QueueLimit] = (tenure.QueueLimit("default", limit),)
    return tenure.ClaimRequest(
        token=f"token-{next(_tokens)}", queues=tuple(queues), limit=limit, worker="w", lease=30.0
    )


def _failure() -> tenure.Failure:
    return tenure.Failure(kind="error", message="no", at=datetime.now(UTC), attempt=1)


async def fill_beside(driver: Driver) -> None:
    """Two schedules, two workers, and a job with a history; those called bad are to be damaged."""
    await fill(driver, "retried")
    for each in (BAD, GOOD[0]):
        definition = b'{"expression": "@daily"}'
        await driver.put_schedules(
            [tenure.NewSchedule(id=each, revision=each, definition=definition)]
        )
        now = datetime.now(UTC)
        await driver.report(
            tenure.WorkerInfo(
                id=each,
                name=None,
                host="h",
                pid=1,
                queues=("default",),
                concurrency=1,
                running=0,
                started_at=now,
                seen_at=now,
            ),
            60.0,
        )


async def check_beside(driver: Driver) -> None:
    """The good ones are shown, whatever the bad ones are."""
    schedules = await driver.schedules()
    assert GOOD[0] in {record.id for record in schedules.items}
    assert GOOD[0] in {worker.id for worker in await driver.workers()}
    await driver.history(BAD)
    assert await driver.history(GOOD[0]) == []
    await driver.prune(tenure.Retention(completed=0.0), _LIMIT)
    await _allowed(lambda: driver.pause_schedule(BAD, True), lambda: driver.drop_schedules([BAD]))
    assert await driver.drop_schedules([GOOD[0]]) == [True]
