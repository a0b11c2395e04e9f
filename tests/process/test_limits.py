"""Limits over several processes, one of which dies: never two at once, and none is forgotten."""

from collections import defaultdict
from itertools import pairwise
from typing import Any

import tenure
from tests.process.stage import Stage

KEYS = 100
JOBS = 4  # of each key
LEASE = 5.0  # a third of it is longer than a loaded machine makes a loop wait


def test_no_key_ever_has_two_holds_and_none_is_forgotten(each_stage: Stage) -> None:
    """Twenty slots, a hundred keys of one job at a time, a worker killed in the middle."""
    stage = each_stage
    options: dict[str, Any] = {"lease": LEASE, "poll_interval": 0.5}
    keys: dict[str, str] = {}

    async def dispatch(queue: tenure.Queue) -> None:
        await queue.limit("customer:*", concurrent=1)
        calls = [
            # All of one customer in a row: a busy key at the head must not keep others waiting.
            tenure.Call("nap", 0.02, limits=[f"customer:{n // JOBS}"])
            for n in range(KEYS * JOBS)
        ]
        for call, job in zip(calls, await queue.dispatch_many(calls), strict=True):
            keys[job.id] = next(iter(call.limits))

    stage.run(dispatch)
    workers = [stage.start(concurrency=slots, **options) for slots in (7, 7, 6)]
    stage.wait_for("start", KEYS * JOBS // 4)
    doomed = workers.pop(0)
    doomed.kill()
    workers.append(stage.start(concurrency=7, **options))
    stage.wait_completed(KEYS * JOBS, seconds=90.0)

    killed = {entry["id"] for entry in stage.ledger.read("start", pid=doomed.pid)}
    killed -= {entry["id"] for entry in stage.ledger.read("end", pid=doomed.pid)}
    ends = {(e["id"], e["pid"]): e["at"] for e in stage.ledger.read("end")}
    runs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for start in stage.ledger.read("start"):
        # A handler of the killed process ended with it, some time before anyone else began.
        end = ends.get((start["id"], start["pid"]), start["at"])
        runs[keys[start["id"]]].append((start["at"], end))
    for key, spans in runs.items():
        spans.sort()
        for (_, ended), (began, _) in pairwise(spans):
            assert ended <= began, f"two holds of {key} at once"
    assert len(runs) == KEYS
    # Restarted are those of the killed worker, also those whose outcome it had not yet written.
    starts = stage.ledger.read("start")
    again = [entry["id"] for entry in starts if entry["attempt"] > 1]
    assert set(again) >= killed
    assert {job.state for job in stage.jobs(list(keys))} == {"completed"}
    for worker in workers:
        worker.stop()
    assert stage.ledger.read("error") == []
