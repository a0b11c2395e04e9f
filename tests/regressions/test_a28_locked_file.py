"""A28: heartbeats failed with "database is locked".

The kind of fault: a lock that somebody else holds, met by a write that must not fail. Here every
write begins as one, so that it waits for its turn as long as the busy timeout, and is never told
"locked" in the middle; what reads cannot write (tests/drivers/sqlite_extras/test_locking.py).

https://github.com/rails/solid_queue/issues/385
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import tenure
from tests.process.stage import Stage
from tests.regressions.standing import standing_checks_of_stage

PRODUCERS = 4


def produce(url: str, name: str, number: int, count: int) -> list[str]:
    """Dispatch one by one, as a process of its own would."""

    async def main() -> list[str]:
        async with tenure.connect(url) as queue:
            return [
                (await queue.dispatch(name, 0.05, id=f"{number}-{each}")).id
                for each in range(count)
            ]

    return asyncio.run(main())


def produced(stage: Stage, name: str, count: int) -> list[str]:
    def share(number: int) -> list[str]:
        return produce(stage.url, name, number, count // PRODUCERS)

    with ThreadPoolExecutor(PRODUCERS) as threads:
        return [job_id for ids in threads.map(share, range(PRODUCERS)) for job_id in ids]


def errors_of(stage: Stage) -> set[str]:
    """By their type; that the machine is slow is no fault."""
    return {entry["kind"] for entry in stage.ledger.read("error")} - {"LoopBlocked"}


def test_a_lock_that_comes_and_goes_is_waited_for(stage: Stage) -> None:
    """Leases of 10 s, locks of 1 s (3 s in the recipe): each job starts once, nobody is told."""
    workers = [stage.start(lease=10.0, concurrency=10) for _ in range(4)]
    locking = stage.start("locking", hold=1.0, rest=0.2)
    ids = produced(stage, "nap", 400)
    stage.wait_completed(len(ids))
    assert len(stage.ledger.read("locked")) >= 2
    locking.stop()
    for worker in workers:
        worker.stop()
    assert errors_of(stage) == set()
    assert sorted(entry["id"] for entry in stage.ledger.read("start")) == sorted(ids)
    standing_checks_of_stage(stage, ids)


def test_locks_that_outlast_the_leases_lose_nothing(stage: Stage) -> None:
    """I3, I5: a lease runs out behind the lock; one completion of each job is recorded.

    A hold that was replaced in between is refused and told; nothing else is.
    """
    stage.without_lifelines()
    workers = [stage.start(lease=1.0, concurrency=10) for _ in range(4)]
    locking = stage.start("locking", hold=2.5, rest=0.1)
    ids = produced(stage, "nap", 80)
    stage.wait_completed(len(ids))
    locking.stop()
    for worker in workers:
        worker.stop()
    settled = stage.ledger.read("settled", outcome="Completed")
    assert sorted(entry["id"] for entry in settled) == sorted(ids)
    assert errors_of(stage) <= {"StateTransitionError", "LeaseLost"}
    standing_checks_of_stage(stage, ids)
