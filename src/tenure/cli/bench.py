"""`tenure bench`: how fast the store is on this machine, measured beside it and not in it."""

import asyncio
import os
import platform

import click
from msgspec import Struct

from tenure.cli.asked import Asked, asked, shared
from tenure.cli.complaints import Complaint
from tenure.cli.exits import Exit
from tenure.cli.measures import Measure, Mismatch, bulk, drain, one_by_one, pick_up
from tenure.cli.opening import in_time
from tenure.cli.progressing import counting
from tenure.cli.shows import document, note, table
from tenure.clock import SystemClock
from tenure.drivers.spare import spare
from tenure.queue import connect
from tenure.version import VERSION

__all__ = ["bench"]

_HERE = "sqlite:///jobs.db"  # what stands for no URL: a file in the working directory


class _Report(Struct, frozen=True, kw_only=True):
    """What was measured, and on what."""

    tenure: str
    python: str
    system: str
    cpus: int | None
    store: str
    durability: str
    measures: list[Measure]


@click.command("bench")
@click.option("--jobs", type=click.IntRange(1, 1_000_000), default=5000, show_default=True)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 10_000),
    default=16,
    show_default=True,
    help="Slots of the worker that runs them.",
)
@shared
def bench(jobs: int, concurrency: int) -> None:
    """Measure what the store does on this machine: dispatches, no-op jobs, pick-ups.

    In one process, on a store of its own that is gone afterwards: a file beside the one of the URL
    or in the working directory, a namespace or a schema on the server. Your jobs are not touched.
    """
    told = asked()
    try:
        report = asyncio.run(_measured(told, jobs, concurrency))
    except Mismatch as error:
        remedy = "there are no figures then; please report it"
        raise Complaint(str(error), remedy, Exit.FAILED) from error
    except OSError as error:
        remedy = "run it where a file can be made, or name a store with --url"
        raise Complaint(f"no file can be made: {error}", remedy, Exit.FAILED) from error
    if told.json:
        document(report)
        return
    note(
        f"tenure {report.tenure}, Python {report.python}, {report.system}, {report.cpus} CPUs, "
        f"{report.store}"
    )
    rows = [(m.name, _shown(m), m.unit, m.jobs, report.durability) for m in report.measures]
    table(("MEASURE", "FIGURE", "UNIT", "JOBS", "DURABILITY"), rows, empty="")


async def _measured(told: Asked, jobs: int, slots: int) -> _Report:
    clock = SystemClock()
    url = told.url if told.named else _HERE
    async with (
        spare(url, clock) as own,
        connect(own.url) as queue,
        connect(own.url) as other,
    ):
        await in_time(queue.driver)
        with counting("jobs dispatched one by one") as progress:
            measures = [await one_by_one(queue, jobs, progress)]
        with counting("jobs dispatched in bulk") as progress:
            measures.append(await bulk(queue, jobs, progress))
        with counting("jobs run") as progress:
            measures.append(await drain(queue, jobs, slots, progress))
        with counting("jobs picked up") as progress:
            measures += await pick_up(queue, queue if own.alone else other, progress)
    return _Report(
        tenure=VERSION,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        cpus=os.cpu_count(),
        store=own.kind,
        durability=own.durability,
        measures=measures,
    )


def _shown(measure: Measure) -> str:
    return f"{measure.figure:,.0f}" if measure.figure >= 100 else f"{measure.figure:,.2f}"
