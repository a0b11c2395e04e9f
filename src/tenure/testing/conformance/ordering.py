"""Checks of I11: within a queue priority, then due time, then arrival; never id or name.

Ids and names are chosen so that their order as text contradicts the order that is right.
"""

from collections.abc import Sequence
from itertools import count

from tenure.driver import Capability, Driver
from tenure.outcomes import Released, Retried
from tenure.testing.conformance.builders import (
    after,
    claim,
    claim_one,
    enqueue,
    failure,
    ids,
    new_job,
    record,
)
from tenure.testing.conformance.check import check, expect
from tenure.types import NewJob


def _backwards(number: int) -> Sequence[NewJob]:
    """Jobs whose ids and names sort against their order."""
    return [new_job(f"{n:04}", name=f"name-{n:04}") for n in range(number, 0, -1)]


@check("I11")
async def higher_priority_goes_first(store: Driver) -> None:
    for priority in (0, -100, 3, 100, -1, 20):
        await enqueue(store, new_job(f"{abs(priority)}/{priority}", priority=priority))
    order = [claimed.job.priority for claimed in await claim(store)]
    expect(order, [100, 20, 3, 0, -1, -100], "the priorities in the order of the claim")


@check("I11", [Capability.DELAY])
async def of_equal_priority_the_earlier_due_time_goes_first(store: Driver) -> None:
    await enqueue(
        store, new_job("a", delay=30.0), new_job("b", at=after(20)), new_job("c", delay=10.0)
    )
    expect(ids(await claim(store, now=after(60))), ["c", "b", "a"], "the claim")


@check("I11", [Capability.DELAY])
async def priority_goes_before_due_time(store: Driver) -> None:
    await enqueue(store, new_job("a"), new_job("b", delay=10.0, priority=1))
    expect(ids(await claim(store, now=after(60))), ["b", "a"], "the claim")


@check("I11")
async def jobs_of_one_batch_keep_the_order_of_the_batch(store: Driver) -> None:
    jobs = _backwards(100)
    await enqueue(store, *jobs)
    expect(ids(await claim(store)), [job.id for job in jobs], "the order of the claim")


@check("I11")
async def jobs_of_equal_due_time_keep_their_arrival(store: Driver) -> None:
    jobs = _backwards(40)
    for job in jobs:
        await enqueue(store, job)
    expect(ids(await claim(store)), [job.id for job in jobs], "the order of the claim")


@check("I11")
async def claims_of_one_follow_the_same_order_as_a_claim_of_many(store: Driver) -> None:
    jobs = [new_job(f"{9 - n}", priority=n % 3) for n in range(9)]
    await enqueue(store, *jobs)
    right = [job.id for job in sorted(jobs, key=lambda job: -job.priority)]
    got = [(await claim_one(store)).job.id for _ in jobs]
    expect(got, right, "the order of nine claims of one")


@check("I11", [Capability.DELAY])
async def a_due_scheduled_job_is_not_overtaken_by_a_later_dispatch(store: Driver) -> None:
    await enqueue(store, new_job("scheduled", delay=60.0))
    await enqueue(store, new_job("a-later-one"), now=after(61))
    expect(ids(await claim(store, now=after(62))), ["scheduled", "a-later-one"], "the claim")


@check("I11", [Capability.DELAY])
async def a_due_time_in_the_past_counts_as_it_was_given(store: Driver) -> None:
    await enqueue(store, new_job("now"))
    await enqueue(store, new_job("overdue", at=after(-3600)))
    expect(ids(await claim(store)), ["overdue", "now"], "the claim")


@check("I11", [Capability.DELAY])
async def scheduled_jobs_of_equal_due_time_keep_their_arrival(store: Driver) -> None:
    await enqueue(store, new_job("z", delay=60.0))
    await enqueue(store, new_job("y", at=after(60)), now=after(10))
    await enqueue(store, new_job("x", delay=40.0), now=after(20))
    await enqueue(store, new_job("w"), now=after(60))
    expect(ids(await claim(store, now=after(60))), ["z", "y", "x", "w"], "the claim")


@check("I11", [Capability.DELAY])
async def many_jobs_of_mixed_priority_and_due_time_are_in_order(store: Driver) -> None:
    arrival = count()
    placed: list[tuple[int, float, int, str]] = []
    for number in range(90):
        priority, delay = (number * 7) % 5 - 2, float((number * 11) % 6)
        job = new_job(f"{999 - number}", priority=priority, delay=delay)
        placed.append((-priority, delay, next(arrival), job.id))
        await enqueue(store, job)
    right = [id for _, _, _, id in sorted(placed)]
    first = ids(await claim(store, now=after(10), limit=40))
    rest = ids(await claim(store, now=after(10)))
    expect(first + rest, right, "the order of two claims")


@check("I11", [Capability.RELEASE])
async def a_released_job_keeps_its_place(store: Driver) -> None:
    await enqueue(store, new_job("c"), new_job("b"), new_job("a"))
    claimed = await claim_one(store)
    await record(store, claimed.hold, Released("shutdown"), now=after(20))
    expect(ids(await claim(store, now=after(20))), ["c", "b", "a"], "the claim after the release")


@check("I11", [Capability.RELEASE, Capability.DELAY])
async def a_job_released_with_a_delay_waits_and_goes_behind(store: Driver) -> None:
    await enqueue(store, new_job("a"), new_job("b"))
    claimed = await claim_one(store)
    await record(store, claimed.hold, Released("no handler", delay=5.0), now=after(10))
    expect(ids(await claim(store, now=after(14), limit=1)), ["b"], "the claim before its time")
    await enqueue(store, new_job("c"), now=after(14))
    await enqueue(store, new_job("d"), now=after(16))
    expect(ids(await claim(store, now=after(16))), ["c", "a", "d"], "the claim after its time")


@check("I11", [Capability.DELAY])
async def a_retried_job_takes_its_place_by_its_new_due_time(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    claimed = await claim_one(store)
    await enqueue(store, new_job("b"), now=after(5))
    await record(store, claimed.hold, Retried(0.0, failure()), now=after(10))
    await enqueue(store, new_job("c"), now=after(20))
    expect(ids(await claim(store, now=after(20))), ["b", "a", "c"], "the claim")
