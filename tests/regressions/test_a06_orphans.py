"""A06: recovery searched through the dead worker's registration, and without it found nothing.

The kind of fault: the recovery of orphans depends on records of workers. Here it depends on leases
alone, and a worker's name is for people.

https://github.com/procrastinate-org/procrastinate/issues/1518
"""

import sqlite3

import psycopg
import redis

from tests.process.stage import Stage
from tests.regressions.sites import LEASE
from tests.regressions.standing import standing_checks_of_stage


def forget_workers(stage: Stage) -> None:
    """Delete what the store knows of workers, as somebody who prunes it would."""
    store, _, rest = stage.url.partition("://")
    address, _, query = rest.partition("?")
    name = query.partition("=")[2]
    match store:
        case "sqlite":
            with sqlite3.connect(address.removeprefix("/"), timeout=10.0) as file:
                file.execute("DELETE FROM tenure_workers")
        case "redis":
            host, _, port = address.partition(":")
            client = redis.Redis(host=host, port=int(port))
            client.delete(f"{{{name}}}:workers", f"{{{name}}}:worker_ends")
            client.close()
        case _:
            with psycopg.connect(f"postgresql://{address}", autocommit=True) as session:
                session.execute(f"DELETE FROM {name}.workers".encode())


def test_jobs_of_a_killed_worker_are_recovered_whoever_is_known(each_stage: Stage) -> None:
    """I7, W5, W20: its registration is deleted; and another one comes at once under its name."""
    stage = each_stage
    doomed = stage.start(lease=LEASE, name="w-0")
    ids = stage.dispatch("gate", range(3))
    stage.wait_for("start", 3)
    doomed.kill()
    forget_workers(stage)
    again = stage.start(lease=LEASE, name="w-0")
    stage.wait_for("start", 3, pid=again.pid)
    assert {entry["attempt"] for entry in stage.ledger.read("start", pid=again.pid)} == {2}
    again.kill()  # and now its registration is there all the while
    last = stage.start(lease=LEASE, name="w-0")
    stage.go.touch()
    stage.wait_completed(3)
    assert {job.attempt for job in stage.jobs(ids)} == {3}
    assert len(stage.ledger.read("start")) == 9
    last.stop()
    assert stage.ledger.read("error") == []
    standing_checks_of_stage(stage, ids)
