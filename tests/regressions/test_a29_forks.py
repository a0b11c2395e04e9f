"""A29: the database was corrupted after processes were forked with an open connection.

The kind of fault: a connection carried across a fork. Here a child notices that its pid is another
one, leaves what it has inherited alone, and opens its own.

https://github.com/rails/solid_queue/issues/324
"""

import sqlite3

from tests.process.stage import Stage
from tests.regressions.standing import standing_checks_of_stage

# Three children and their parent dispatch five each, beside the one before the forks.
IDS = [
    "before",
    *(f"parent-{turn}" for turn in range(5)),
    *(f"child-{number}-{turn}" for number in range(3) for turn in range(5)),
]


def test_what_a_parent_and_its_children_dispatch_is_all_there(each_stage: Stage) -> None:
    """I5, and a file that is sound. One round of small numbers; nobody is killed here."""
    stage = each_stage
    forking = stage.start("forking")
    stage.wait_for("done", 1)
    assert forking.wait() == 0, forking.stderr
    assert stage.ledger.read("done")[0]["codes"] == [0, 0, 0]
    assert {job.id for job in stage.jobs(IDS)} == set(IDS)
    if stage.url.startswith("sqlite"):
        file = sqlite3.connect(stage.folder / "jobs.db")
        assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        file.close()
    worker = stage.start()
    stage.wait_completed(len(IDS))
    worker.stop()
    standing_checks_of_stage(stage, IDS)
