"""`tenure schedules`: list schedules, show their next instants, run, pause and resume them."""

from collections.abc import Sequence
from datetime import datetime

import click

from tenure.cli.asked import asked, shared
from tenure.cli.families import Family
from tenure.cli.opening import Patience, on_store
from tenure.cli.shows import document, note, table
from tenure.cron import parse
from tenure.errors import ScheduleNotFound
from tenure.queue import Queue
from tenure.schedules import Schedule

__all__ = ["schedules"]


@click.group("schedules", cls=Family)
@shared
def schedules() -> None:
    """List schedules, show their next instants, run, pause and resume them."""


@schedules.command("list")
@shared
def list_schedules() -> None:
    """List the schedules of the store."""
    found = on_store(asked(), lambda store, _: store.schedules())
    if asked().json:
        document(found)
        return
    columns = ("ID", "WHEN", "ZONE", "NAME", "QUEUE", "PAUSED", "LAST", "NEXT", "DAMAGE")
    rows = [
        (s.id, s.expression, s.zone, s.name, s.queue, s.paused, s.last, s.next, s.damage)
        for s in found
    ]
    table(columns, rows, empty="the store has no schedule")


@schedules.command("next")
@click.argument("schedule_id", metavar="[ID]", required=False)
@click.option("--count", type=click.IntRange(1, 1000), default=5, show_default=True)
@shared
def upcoming(schedule_id: str | None, count: int) -> None:
    """Show the next instants of one schedule, or of all, in order."""
    found = on_store(asked(), lambda store, _: store.schedules())
    chosen = [s for s in found if schedule_id is None or s.id == schedule_id]
    if schedule_id is not None and not chosen:
        raise ScheduleNotFound(schedule_id)
    instants = sorted((at, s.id) for s in chosen for at in _next(s, count))[:count]
    names = {s.id: s.name for s in chosen}
    if asked().json:
        document([{"at": at, "schedule": each, "name": names[each]} for at, each in instants])
        return
    rows = [(at, each, names[each]) for at, each in instants]
    table(("AT", "SCHEDULE", "NAME"), rows, empty="no instant is to come")


def _next(schedule: Schedule, count: int) -> Sequence[datetime]:
    if schedule.paused or schedule.damage is not None:
        return ()
    after = max(schedule.last, schedule.seen_at)
    rule = parse(schedule.expression, schedule.zone)
    return rule.upcoming(after, schedule.created_at, count)


@schedules.command("run")
@click.argument("schedule_id", metavar="ID")
@shared
def run(schedule_id: str) -> None:
    """Dispatch the job of a schedule now, beside its instants; prints the id of the job."""
    handle = on_store(asked(), lambda store, _: store.run_schedule(schedule_id))
    if asked().json:
        document({"id": handle.id, "created": handle.created})
    else:
        click.echo(handle.id)


@schedules.command("pause")
@click.argument("schedule_id", metavar="ID")
@shared
def pause(schedule_id: str) -> None:
    """Let a schedule fire nothing until it is resumed."""
    _switch(schedule_id, paused=True)


@schedules.command("resume")
@click.argument("schedule_id", metavar="ID")
@shared
def resume(schedule_id: str) -> None:
    """Let a schedule fire again, from its next instant on."""
    _switch(schedule_id, paused=False)


def _switch(schedule_id: str, *, paused: bool) -> None:
    async def work(store: Queue, _: Patience) -> None:
        await (store.pause_schedule if paused else store.resume_schedule)(schedule_id)

    on_store(asked(), work)
    if asked().json:
        document({"schedule": schedule_id, "paused": paused})
    else:
        note(f"{schedule_id} is {'paused' if paused else 'not paused'} now")
