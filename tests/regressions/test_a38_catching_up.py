"""A38: after an outage every missed tick fired, and catching up took very long.

The kind of fault: what a schedule does that nobody looked at for hours. Of the ticks that were
missed as many run as the schedule says, once in all however many workers come back, what was
skipped is told, and then it goes on in its rhythm.

https://github.com/FoundatioFx/Foundatio/issues/317
"""

from datetime import datetime, timedelta

import pytest

import tenure
from tenure.schedules import Definition, written_definition
from tenure.standing import NewSchedule
from tests.regressions.sites import Opening, Site
from tests.regressions.standing import standing_checks

EVERY = timedelta(minutes=5)
OUTAGE = timedelta(hours=6)
MISSED = OUTAGE // EVERY


async def outage(site: Site, missed: str) -> datetime:
    """A schedule whose last tick was six hours ago; the newest one of those that were missed.

    That is two minutes old, so that none falls due while the workers come back.
    """
    now = site.clock.now()
    minute = now.replace(second=0, microsecond=0)
    newest = minute - timedelta(minutes=2)
    definition = Definition(
        expression=f"{newest.minute % 5}-59/5 * * * *",
        zone="UTC",
        missed=tenure.Missed(missed),
        name="tick",
        queue="default",
        payload=b"null",
    )
    driver = await site.driver()
    new = NewSchedule(id="s", revision="r", definition=written_definition(definition))
    await driver.put_schedules([new], now=newest - OUTAGE)
    return newest


@pytest.mark.parametrize(("missed", "runs"), [("skip", 0), ("once", 1), ("all", MISSED)])
async def test_three_workers_that_come_back_after_six_hours_make_up_for_what_is_asked(
    open_site: Opening, missed: str, runs: int
) -> None:
    async with open_site() as site:
        newest = await outage(site, missed)
        skipped: list[tenure.TicksSkipped] = []
        fired: list[tenure.ScheduleFired] = []

        def observe(event: tenure.Event) -> None:
            match event:
                case tenure.TicksSkipped():
                    skipped.append(event)
                case tenure.ScheduleFired():
                    fired.append(event)
                case _:
                    pass

        watched = [site.worker(observers=[observe]) for _ in range(3)]
        ran: list[str] = []

        async def tick(payload: object, job: tenure.RunningJob) -> None:
            ran.append(job.headers["tick"])

        for each in watched:
            each.register("tick", tick)
        async with (
            watched[0].running(),
            watched[1].running(),
            watched[2].running(),
        ):

            async def caught_up() -> bool:
                (schedule,) = await site.queue.schedules()
                counts = await site.queue.counts()
                return schedule.last >= newest and counts.completed >= runs

            await site.until(caught_up, lambda: f"ran: {len(ran)}", seconds=20.0)
            expected = [newest - EVERY * back for back in reversed(range(runs))]
            assert [event.instant for event in fired] == expected
            assert sorted(ran) == [instant.isoformat() for instant in expected]
            assert sum(event.skipped for event in skipped) == MISSED - runs
            assert {event.capped for event in skipped} <= {False}
            (schedule,) = await site.queue.schedules()
            assert (schedule.last, schedule.next) == (newest, newest + EVERY)
            await standing_checks(site, *watched, ids=[event.job_id for event in fired])


@pytest.mark.parametrize("open_site", ["memory", "sqlite"], indirect=True)
async def test_after_it_the_schedule_goes_on_in_its_rhythm(open_site: Opening) -> None:
    """Ten minutes on a clock that can be moved: two ticks, each once."""
    async with open_site() as site:
        newest = await outage(site, "once")
        watched = [site.worker(poll_interval=30.0, lease=30.0) for _ in range(3)]
        ran: list[str] = []

        async def tick(payload: object, job: tenure.RunningJob) -> None:
            ran.append(job.headers["tick"])

        for each in watched:
            each.register("tick", tick)
        async with (
            watched[0].running(),
            watched[1].running(),
            watched[2].running(),
        ):
            end = newest + 2 * EVERY + timedelta(seconds=30)
            await site.skip((end - site.clock.now()).total_seconds())
            assert ran == [(newest + EVERY * later).isoformat() for later in range(3)]
            ids = [job.id for job in (await site.queue.list()).jobs]
            assert len(ids) == len(ran)
            await standing_checks(site, *watched, ids=ids)
