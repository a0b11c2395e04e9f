"""Schedules over several processes: no leader, and each instant once."""

import time
from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import tenure
from tests.process.stage import Stage

TICKS = 30


def test_five_workers_fire_each_of_thirty_ticks_once(each_stage: Stage) -> None:
    """I13, FAULTS A39: clocks apart by 300 ms, one worker killed in a tick, another one joins."""
    stage = each_stage
    options: dict[str, Any] = {"lease": 5.0, "poll_interval": 0.5}
    shifts = [-0.3, -0.15, 0.0, 0.15, 0.3]
    workers = [stage.start(shift=shift, **options) for shift in shifts]

    async def begin(queue: tenure.Queue) -> datetime:
        schedule = await queue.schedule("s", "@every 1s", "nap", 0.3)
        return schedule.created_at

    began = stage.run(begin)
    stage.wait_for("start", TICKS // 3)
    stage.wait_for("start", len(stage.ledger.read("start")) + 1)
    at_work = stage.ledger.read("start")[-1]["pid"]
    for victim in [worker for worker in workers if worker.pid == at_work]:
        victim.kill()
        workers.remove(victim)
    workers.append(stage.start(shift=0.2, **options))
    stage.wait_for("start", TICKS, seconds=60.0)

    async def end(queue: tenure.Queue) -> datetime:
        await queue.pause_schedule("s")
        (schedule,) = await queue.schedules()
        return schedule.last

    last = stage.run(end)
    passed = round((last - began) / timedelta(seconds=1))
    assert passed >= TICKS - 1  # the killed worker's job may have been started twice
    stage.wait_completed(passed)
    time.sleep(1.0)  # were there more to come, they would
    starts = Counter(entry["id"] for entry in stage.ledger.read("start"))
    jobs = stage.jobs(list(starts))
    ticks = sorted(datetime.fromisoformat(job.headers["tick"]) for job in jobs)
    assert len(ticks) == passed
    assert {later - earlier for earlier, later in pairwise([began, *ticks])} == {
        timedelta(seconds=1)
    }
    assert stage.counts().completed == passed
    # Started again only where its worker was killed in it.
    again = [job for job in jobs if starts[job.id] > 1]
    assert [job.attempt for job in again] in ([], [2])
    for worker in workers:
        worker.stop()
