"""A03: a job that ran longer than the visibility time was given to other workers, again and again.

The kind of fault: a lease that is not kept for a living job. Here the keeper extends it every third
of its length for as long as the handler runs.

https://github.com/celery/celery/issues/5935
"""

import time
from contextlib import AsyncExitStack

import pytest

from tests.process.stage import Stage
from tests.regressions.beside import Beside, beside
from tests.regressions.sites import LEASE, Opening
from tests.regressions.standing import standing_checks, standing_checks_of_stage
from tests.regressions.watched import Watched


async def test_a_lease_moves_on_while_its_job_runs_and_nobody_else_starts_it(
    open_site: Opening,
) -> None:
    """I6, W18: three workers on one store. Two leases long; five in the recipe."""
    async with open_site() as site, AsyncExitStack() as stack:
        starts: list[str] = []
        rounds = 5 if site.still else 2

        async def work(payload: object) -> None:
            starts.append("start")
            await site.clock.sleep(rounds * LEASE)

        workers: list[Watched] = []
        ways: list[Beside] = []
        for _ in range(3):
            queue, faults = await beside(site)
            await stack.enter_async_context(queue)
            watched = Watched(queue, {"lease": LEASE, "poll_interval": 0.5})
            watched.register("work", work)
            workers.append(watched)
            ways.append(faults)
        for watched in workers:
            await stack.enter_async_context(watched.running())
        job = await site.queue.dispatch("work")
        await site.until_state("completed", job.id)
        record = await site.queue.get(job.id)
        assert (record.attempt, record.stalls, record.serial) == (1, 0, 1)
        assert starts == ["start"]
        assert sum(faults.count("keeper.extend") for faults in ways) >= 4
        await standing_checks(site, *workers, ids=[job.id])


@pytest.mark.slow
def test_three_processes_start_a_job_of_five_leases_once(each_stage: Stage) -> None:
    """As in the recipe."""
    stage = each_stage
    programs = [stage.start(lease=LEASE) for _ in range(3)]
    ids = stage.dispatch("nap", [5 * LEASE])
    stage.wait_completed(1)
    time.sleep(LEASE)  # had another one taken it, it would show
    assert len(stage.ledger.read("start")) == len(stage.ledger.read("end")) == 1
    for program in programs:
        program.stop()
    standing_checks_of_stage(stage, ids)
