"""Checks of `claim`: which jobs, how many, each exactly once."""

import asyncio

from tenure.driver import Capability, Driver
from tenure.outcomes import Retried, Snoozed
from tenure.states import State
from tenure.testing.conformance.builders import (
    LEASE,
    T0,
    after,
    claim,
    claim_one,
    counted,
    enqueue,
    failure,
    ids,
    new_job,
    record,
    request,
    started,
)
from tenure.testing.conformance.check import check, expect, expect_that
from tenure.types import QueueLimit


@check("I2")
async def a_claim_tells_of_the_attempt_that_begins(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    asked = request(lease=45.0)
    claims = await store.claim(asked, now=T0)
    expect(ids(claims), ["a"], "the claim")
    claimed = claims[0]
    expect((claimed.hold.job_id, claimed.hold.token), ("a", asked.token), "the hold's id and token")
    expect((claimed.attempt, claimed.stalls, claimed.lease), (1, 0, 45.0), "the claim")
    expect((claimed.job.state, claimed.job.attempt), (State.PROCESSING, 1), "the claimed job")
    expect(claimed.job.serial, claimed.hold.serial, "the serial of job and hold")
    expect(claimed.damage, None, "the damage")


@check("I2")
async def a_claimed_job_is_not_claimed_again(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    await claim_one(store)
    expect(ids(await claim(store)), [], "the jobs of the next claim")


@check("I2")
async def an_expired_job_is_not_claimed_before_it_was_reclaimed(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    await claim_one(store)
    later = after(LEASE * 100)
    expect(ids(await claim(store, now=later)), [], "the jobs claimed after the lease ran out")
    expect(await counted(store, later), {"processing": 1}, "the counts")


@check("I2")
async def several_workers_claiming_at_once_get_each_job_once(store: Driver) -> None:
    batch = [f"job-{n}" for n in range(60)]
    await enqueue(store, *(new_job(id) for id in batch))
    rounds = await asyncio.gather(*(claim(store, limit=7) for _ in range(12)))
    got = [id for claims in rounds for id in ids(claims)]
    expect(sorted(got), sorted(batch), "the jobs that twelve claims got between them")
    expect_that(max(map(len, rounds)) <= 7, "a claim with a limit of 7 got more jobs")


@check("I2")
async def several_workers_claiming_one_job_at_once_get_it_once(store: Driver) -> None:
    for number in range(10):
        await enqueue(store, new_job(f"job-{number}"))
        rounds = await asyncio.gather(*(claim(store) for _ in range(8)))
        expect(sum(map(len, rounds)), 1, "the number of claims that got the one job")


@check("claim()")
async def a_claim_takes_at_most_its_limit(store: Driver) -> None:
    await enqueue(store, *(new_job(id, queue=id[0]) for id in ("a1", "a2", "b1", "b2")))
    expect(ids(await claim(store, "a", "b", limit=3)), ["a1", "a2", "b1"], "a claim of three")
    expect(ids(await claim(store, "a", "b", limit=3)), ["b2"], "the next claim")


@check("claim()")
async def a_claim_takes_at_most_the_limit_of_each_queue(store: Driver) -> None:
    jobs = (new_job(f"{queue}{n}", queue=queue) for queue in "abc" for n in (1, 2, 3))
    await enqueue(store, *jobs)
    limits = QueueLimit("b", 1), QueueLimit("a", 2), QueueLimit("c", 5)
    expect(ids(await claim(store, *limits, limit=4)), ["b1", "a1", "a2", "c1"], "the claim")


@check("claim()")
async def queues_are_tried_in_the_order_of_the_request(store: Driver) -> None:
    await enqueue(store, new_job("1", queue="low"), new_job("2", queue="other", priority=50))
    await enqueue(store, new_job("3", queue="high"))
    expect(ids(await claim(store, "high", "empty", "low")), ["3", "1"], "the claim")
    expect(ids(await claim(store, "other")), ["2"], "what the queue that was not asked for has")


@check("claim()")
async def a_claim_stops_before_its_bytes_are_passed(store: Driver) -> None:
    await enqueue(store, *(new_job(id, payload=b"x" * 100) for id in "abcde"))
    await enqueue(store, new_job("z", queue="next", payload=b"x" * 100))
    expect(ids(await claim(store, "default", "next", max_bytes=250)), ["a", "b"], "250 bytes")
    expect(ids(await claim(store, "default", "next", max_bytes=200)), ["c", "d"], "200 bytes")


@check("claim()")
async def a_claim_takes_one_job_however_large(store: Driver) -> None:
    await enqueue(store, new_job("large", payload=b"x" * 5000), new_job("small", payload=b"1"))
    expect(ids(await claim(store, max_bytes=100)), ["large"], "the first claim")
    expect(ids(await claim(store, max_bytes=100)), ["small"], "the second claim")


@check("claim()", [Capability.DELAY])
async def a_job_is_claimed_from_its_due_time_on(store: Driver) -> None:
    await enqueue(store, new_job("a", delay=60.0), new_job("b", at=after(90)))
    expect(ids(await claim(store, now=after(59))), [], "the jobs due after 59 s")
    expect(ids(await claim(store, now=after(60))), ["a"], "the jobs due after 60 s")
    expect(ids(await claim(store, now=after(90))), ["b"], "the jobs due after 90 s")


@check("I11", [Capability.DELAY])
async def a_scheduled_job_of_higher_priority_does_not_block_a_due_one(store: Driver) -> None:
    await enqueue(store, *(new_job(f"far-{n}", priority=100, delay=9e7) for n in range(50)))
    await enqueue(store, new_job("due", priority=-100))
    expect(ids(await claim(store, limit=1)), ["due"], "the job that is due")


@check("I4")
async def each_start_counts_once(store: Driver) -> None:
    await enqueue(store, new_job("a"))
    for attempt in (1, 2, 3, 4):
        now = after(attempt)
        claimed = await claim_one(store, now=now)
        expect((claimed.attempt, claimed.job.attempt), (attempt, attempt), "the attempt")
        await record(store, claimed.hold, Retried(0.0, failure()), now=now)


@check("I3")
async def a_serial_grows_with_each_claim_and_is_never_given_back(store: Driver) -> None:
    first = await started(store, "a")
    await record(store, first.hold, Retried(0.0, failure()))
    second = await claim_one(store, "a")
    await record(store, second.hold, Snoozed(0.0))
    third = await claim_one(store, "a")
    serials = [second.hold.serial - first.hold.serial, third.hold.serial - second.hold.serial]
    expect(serials, [1, 1], "the growth of the serial after a retry and a snooze")


@check("I11")
async def names_of_queues_are_told_apart_exactly(store: Driver) -> None:
    precomposed, decomposed = "caf\u00e9", "cafe\u0301"
    queues = ["q", "Q", "q ", " q", "q:r", "q/r", "q%", "q_", "q*", precomposed, decomposed]
    for number, queue in enumerate(queues):
        await enqueue(store, new_job(f"job-{number}", queue=queue))
    for number, queue in enumerate(queues):
        expect(ids(await claim(store, queue)), [f"job-{number}"], f"the jobs of {queue!r}")


@check("pause()", [Capability.CONTROL])
async def a_paused_queue_is_not_claimed_until_it_is_resumed(store: Driver) -> None:
    await enqueue(store, new_job("a"), new_job("b", queue="other"))
    await store.pause("default", True)
    await enqueue(store, new_job("c"))
    expect(ids(await claim(store, "default", "other")), ["b"], "the jobs claimed meanwhile")
    await store.pause("default", False)
    expect(ids(await claim(store)), ["a", "c"], "the jobs claimed after the resume")


@check("claim()", [Capability.NAMES])
async def a_claim_with_names_takes_only_those(store: Driver) -> None:
    jobs = [new_job(f"{n}-{name}", name=name) for n in range(3) for name in ("x", "y", "z")]
    await enqueue(store, *jobs)
    got = ids(await claim(store, names=frozenset({"x", "z"}), limit=5))
    expect(got, ["0-x", "0-z", "1-x", "1-z", "2-x"], "the claim of x and z")
    expect(len(await claim(store)), 4, "the number of jobs left for a claim without names")
