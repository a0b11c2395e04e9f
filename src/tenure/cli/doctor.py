"""`tenure doctor`: what is wrong with a store and its workers, or soon will be. Changes nothing."""

import asyncio
from collections.abc import Iterator, Sequence

import click
from msgspec import Struct

from tenure.cli.apps import worker_of
from tenure.cli.asked import asked, shared
from tenure.cli.complaints import Complaint
from tenure.cli.exits import Exit
from tenure.cli.opening import Patience, in_time, on_store
from tenure.cli.shows import amount, document, table
from tenure.clock import SystemClock
from tenure.driver import Capability
from tenure.drivers.examinations import examined
from tenure.drivers.findings import Finding, error, fine, warning
from tenure.drivers.schemas import SchemaState, schema_state
from tenure.presence import WorkerInfo
from tenure.queue import Queue
from tenure.schedules import Schedule
from tenure.states import State
from tenure.types import Counts
from tenure.version import VERSION

__all__ = ["doctor"]

_LOOKED_AT = 5000  # jobs
_PAGE = 500
_OLD = 3600.0  # seconds that a due job waits


class _Seen(Struct, frozen=True, kw_only=True):
    """What the store told of its jobs and workers."""

    counts: Counts
    workers: Sequence[WorkerInfo] | None
    schedules: Sequence[Schedule]
    names: frozenset[str]  # of the waiting jobs that were looked at
    waited: float | None  # seconds, by the job that has been due for longest; None: none is due


@click.command("doctor")
@click.option("--app", metavar="APP", help="Also look for jobs that this app has no handler for.")
@shared
def doctor(app: str | None) -> None:
    """Look for what is wrong with the store and its workers.

    Changes nothing. Warnings end with 0, errors with 7.
    """
    told, clock = asked(), SystemClock()
    url = told.url
    known = None if app is None else frozenset(worker_of(app).handlers)
    findings = [*asyncio.run(in_time(lambda: examined(url, clock)))]
    schema = None if url.startswith("memory:") else _schema(url)
    if schema is not None and schema.found is not None:
        seen = on_store(told, _look)  # refuses a schema that this tenure cannot work with
        findings += [_of_schema(schema), *_of_jobs(seen, known)]
    errors = [finding for finding in findings if finding.level == "error"]
    if told.json:
        document({"healthy": not errors, "findings": findings})
    else:
        rows = [(f.level, f.about, f.message, f.remedy or None) for f in findings]
        table(("LEVEL", "ABOUT", "FOUND", "REMEDY"), rows, empty="", widest=200)
    if errors:
        raise Complaint(
            "; ".join(finding.message for finding in errors), errors[0].remedy, Exit.UNHEALTHY
        )


def _schema(url: str) -> SchemaState:
    """Whether there is a store to be opened, and of which version: a look makes none."""
    return asyncio.run(in_time(lambda: schema_state(url, SystemClock())))


def _of_schema(state: SchemaState) -> Finding:
    if state.found == state.expected:
        return fine("schema", f"version {state.found}")
    return warning(
        "schema",
        f"version {state.found}, older than that of this tenure ({state.expected}), and works",
        "`tenure schema migrate` when all programs have been upgraded",
    )


async def _look(store: Queue, patience: Patience) -> _Seen:
    counts = await store.counts()
    workers = await store.workers() if Capability.PRESENCE in store.capabilities else None
    schedules = await store.schedules() if Capability.SCHEDULES in store.capabilities else ()
    names: set[str] = set()
    cursor: str | None = None
    for _ in range(_LOOKED_AT // _PAGE):
        page = await store.list(state=State.PENDING, limit=_PAGE, cursor=cursor)
        patience.renew()
        names.update(job.name for job in page.jobs)
        cursor = page.cursor
        if cursor is None:
            break
    return _Seen(
        counts=counts,
        workers=workers,
        schedules=schedules,
        names=frozenset(names),
        waited=await _waited(store, counts),
    )


async def _waited(store: Queue, counts: Counts) -> float | None:
    due = [name for name, each in counts.by_queue.items() if each.pending]
    if not due or Capability.OLDEST_DUE not in store.capabilities:
        return None
    return max((await store.waiting(due)).values())


def _of_jobs(seen: _Seen, known: frozenset[str] | None) -> Iterator[Finding]:
    if known is not None:
        for name in sorted(seen.names - known):
            yield warning(
                "handlers",
                f"jobs named {name!r} wait, and the app has no handler for them",
                "register one, or an alias, or delete them",
            )
    if seen.workers is not None:
        yield from _of_workers(seen.workers)
        served = {name for worker in seen.workers for name in worker.queues}
        for name, counts in sorted(seen.counts.by_queue.items()):
            if counts.pending and name not in served and name not in seen.counts.paused:
                yield warning(
                    "queues",
                    f"{amount(counts.pending)} of {name} are due, and no worker serves it",
                    "start a worker with it among its queues",
                )
    for name in sorted(seen.counts.paused):
        yield warning(
            "queues", f"{name} is paused", f"`tenure queues resume {name}` when it may go on"
        )
    for schedule in seen.schedules:
        if schedule.damage is not None:
            yield error(
                "schedules",
                f"{schedule.id} cannot be read: {schedule.damage}",
                "store it anew with Queue.schedule",
            )
    yield _of_waiting(seen)


def _of_workers(workers: Sequence[WorkerInfo]) -> Iterator[Finding]:
    versions = sorted({worker.version for worker in workers})
    if len(versions) > 1:
        yield warning(
            "workers",
            f"workers of different versions: {', '.join(versions)}",
            "let all run the same one when the deployment is over",
        )
    elif versions and versions[0] != VERSION:
        yield warning(
            "workers", f"workers run tenure {versions[0]}, this is {VERSION}", "upgrade the older"
        )
    else:
        yield fine("workers", amount(len(workers), "worker"))


def _of_waiting(seen: _Seen) -> Finding:
    seconds = seen.waited
    if seconds is None:
        return fine("waiting", "no job is due and waits")
    if seconds >= _OLD:
        return warning(
            "waiting",
            f"a job has been due for {seconds / 3600:,.1f} h",
            "look whether workers are busy, lack its handler, or keep to a limit",
        )
    return fine("waiting", f"the oldest due job has waited {seconds:,.1f} s")
