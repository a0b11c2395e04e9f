"""A14: a timeout looked like a cancellation, and the job was started again at once.

The kind of fault: a time limit that is taken for something else. Here what the handler really did
is recorded, and one that gave way has failed as timed out, with all that follows a failure.

https://github.com/python-arq/arq/issues/247
"""

import asyncio
from contextlib import suppress

import tenure
from tests.regressions.sites import Opening
from tests.regressions.standing import standing_checks

LIMIT = 0.2
BACKOFF = 1.0


async def test_a_timeout_is_a_failure_with_a_backoff_and_its_own_error(open_site: Opening) -> None:
    """W11, W14: two attempts a second apart, two errors of the kind, and then failed."""
    async with open_site() as site:
        watched = site.worker()
        starts: list[float] = []

        async def work(payload: object) -> None:
            starts.append(site.clock.monotonic())
            await site.clock.sleep(10.0)

        policy = tenure.RetryPolicy(max_attempts=2, base=BACKOFF, jitter=False)
        watched.register("work", work, retry=policy, timeout=LIMIT)
        async with watched.running():
            job = await site.queue.dispatch("work")
            await site.until_state("failed", job.id)
            record = await site.queue.get(job.id)
            assert record.attempt == len(starts) == 2
            assert starts[1] - starts[0] >= LIMIT + BACKOFF
            assert record.error is not None
            assert record.error.kind == "timeout"
            await standing_checks(site, watched, ids=[job.id], swallowed={"JobTimedOut": 2})


async def test_what_a_handler_does_at_its_limit_is_what_is_recorded(open_site: Opening) -> None:
    """W11: it returned before, or after all; it raised an error of its own."""
    async with open_site() as site:
        watched = site.worker(job_timeout=1.0)
        early = 0.02 if site.still else 0.8  # a busy machine is not to the point

        async def early_enough(payload: object) -> str:
            await site.clock.sleep(1.0 - early)
            return "early"

        async def returns(payload: object) -> str:
            with suppress(asyncio.CancelledError):
                await site.clock.sleep(10.0)
            return "after all"

        async def raises(payload: object) -> None:
            try:
                await site.clock.sleep(10.0)
            except asyncio.CancelledError:
                raise ValueError("its own") from None

        for handler in (early_enough, returns, raises):
            watched.register(handler.__name__, handler)
        async with watched.running():
            good = [await site.queue.dispatch(name) for name in ("early_enough", "returns")]
            bad = await site.queue.dispatch("raises")
            await site.until_state("completed", *(job.id for job in good))
            await site.until_state("failed", bad.id)
            results = [(await site.queue.get(job.id)).result for job in good]
            assert results == ["early", "after all"]
            error = (await site.queue.get(bad.id)).error
            assert error is not None
            assert (error.kind, error.message) == ("error", "ValueError: its own")
            ids = [*(job.id for job in good), bad.id]
            await standing_checks(site, watched, ids=ids, swallowed={"JobFailed": 1})


async def test_a_handler_that_goes_on_keeps_its_slot_and_is_reported_once(
    open_site: Opening,
) -> None:
    """W12: it swallows its cancellation; the next job waits until it returns, with its result."""
    async with open_site() as site:
        watched = site.worker(concurrency=1, job_timeout=LIMIT, overdue_grace=60.0)
        gate = asyncio.Event()
        started: list[object] = []

        async def swallows(payload: object) -> str:
            while not gate.is_set():
                with suppress(asyncio.CancelledError):
                    await gate.wait()
            return "in the end"

        async def quick(payload: object) -> None:
            started.append(payload)

        watched.register("swallows", swallows)
        watched.register("quick", quick)
        async with watched.running():
            job = await site.queue.dispatch("swallows")
            await site.until_true(
                lambda: watched.reported["JobOverdue"] == 1, lambda: "it is not reported"
            )
            after = await site.queue.dispatch("quick")
            await site.skip(5.0)
            assert started == []
            assert await site.state(after.id) == "pending"
            gate.set()
            await site.until_state("completed", job.id, after.id)
            assert (await site.queue.get(job.id)).result == "in the end"
            ids = [job.id, after.id]
            await standing_checks(site, watched, ids=ids, swallowed={"JobOverdue": 1})
