"""Workers that are killed where the store can see it: their jobs do not wait for their leases.

Leases here are of five minutes, so that whatever starts again does so for the lifeline alone.
"""

import signal
import time

from tests.process.stage import Program, Stage
from tests.servers.postgres import PostgresServer

JOBS = 4
LEASE = 300.0
LOOKS = 3.0  # seconds, in which a worker asks a few times who is gone


def restarted(stage: Stage, ids: list[str], heir: Program) -> None:
    """Each job is started again by the heir, once, and ends."""
    stage.wait_for("start", len(ids), pid=heir.pid)
    stage.go.touch()
    stage.wait_completed(len(ids))
    starts = stage.ledger.read("start", pid=heir.pid)
    assert sorted(entry["id"] for entry in starts) == sorted(ids)
    assert {entry["attempt"] for entry in starts} == {2}
    heir.stop()
    assert stage.ledger.read("error") == []


def test_w05_jobs_of_a_killed_worker_are_restarted_long_before_their_leases_end(
    seeing_stage: Stage,
) -> None:
    """W5, I5, I7: by a worker that was there, and once more by one that comes later."""
    stage = seeing_stage
    doomed = stage.start(lease=LEASE)
    ids = stage.dispatch("gate", range(JOBS))
    stage.wait_for("start", JOBS)
    first = stage.start(lease=LEASE)
    doomed.kill()
    stage.wait_for("start", JOBS, pid=first.pid)
    first.kill()
    second = stage.start(lease=LEASE)
    # The second recovery of a job is put off a little.
    stage.wait_for("start", JOBS, pid=second.pid, attempt=3)
    stage.go.touch()
    stage.wait_completed(JOBS)
    assert {(job.state, job.attempt) for job in stage.jobs(ids)} == {("completed", 3)}
    second.stop()
    assert stage.ledger.read("error") == []
    assert not (stage.folder / "jobs.db-workers").exists()


def test_w05_a_forked_child_that_lives_on_does_not_stand_for_its_parent(
    seeing_stage: Stage,
) -> None:
    """Section 3, fork: what the child inherited keeps nothing alive."""
    stage = seeing_stage
    doomed = stage.start("parent", lease=LEASE, brief=False)
    ids = stage.dispatch("gate", range(JOBS))
    stage.wait_for("forked", 1, pid=doomed.pid)
    stage.wait_for("start", JOBS)
    stage.wait_for("child", 1)
    heir = stage.start(lease=LEASE)
    doomed.kill()
    restarted(stage, ids, heir)


def test_i6_neither_the_end_of_a_child_nor_a_stopped_process_is_taken_for_its_end(
    seeing_stage: Stage,
) -> None:
    """I6: a child that ends takes nothing from its parent; SIGSTOP is no end."""
    stage = seeing_stage
    living = stage.start("parent", lease=LEASE, brief=True)
    ids = stage.dispatch("gate", range(JOBS))
    stage.wait_for("forked", 1, pid=living.pid)
    stage.wait_for("start", JOBS)
    bystander = stage.start(lease=LEASE)
    stage.freeze(living)
    time.sleep(LOOKS)
    living.send(signal.SIGCONT)
    stage.go.touch()
    stage.wait_completed(JOBS)
    assert {entry["pid"] for entry in stage.ledger.read("start")} == {living.pid}
    assert {(job.attempt, job.serial) for job in stage.jobs(ids)} == {(1, 1)}
    living.stop()
    bystander.stop()
    assert stage.ledger.read("error") == []


def test_i6_a_worker_whose_sessions_are_ended_comes_back_before_its_leases_end(
    stage: Stage, postgres_server: PostgresServer
) -> None:
    """I6: the server ends all sessions, three times; the leases last for longer than that takes."""
    stage.url = f"{postgres_server.url}?schema={stage.folder.name.replace('-', '_')[-40:]}"
    living = stage.start(lease=LEASE)
    ids = stage.dispatch("gate", range(JOBS))
    stage.wait_for("start", JOBS)
    bystander = stage.start(lease=LEASE)
    for _ in range(3):
        postgres_server.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE %s",
            f"%{stage.url.rpartition('=')[2]}%.tie(%",
        )
        time.sleep(LOOKS)
    stage.go.touch()
    stage.wait_completed(JOBS)
    assert {entry["pid"] for entry in stage.ledger.read("start")} == {living.pid}
    assert {(job.attempt, job.serial) for job in stage.jobs(ids)} == {(1, 1)}
    living.stop()
    bystander.stop()
    assert stage.ledger.read("error") == []
