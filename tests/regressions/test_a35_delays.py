"""A35: a negative delay was accepted when it was sent and killed the worker that received it.

The kind of fault: a time that is looked at only where it is used. Whatever a caller or a handler
gives as a wait or an instant means now, or is refused on the spot, alike on every store.

https://github.com/celery/celery/issues/3078
"""

import math
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

import tenure
from tests.regressions.sites import Opening, Site
from tests.regressions.standing import standing_checks
from tests.regressions.watched import Watched

TEN_YEARS = timedelta(days=3653)

NOW: dict[str, Any] = {
    "-1": -1,
    "-1e12": -1e12,
    "-inf": -math.inf,
    "-0.0": -0.0,
    "-10**400": -(10**400),
    "timedelta.min": timedelta.min,
}
REFUSED: dict[str, Any] = {
    "nan": math.nan,
    "inf": math.inf,
    "1e18": 1e18,
    "10**400": 10**400,
    "timedelta.max": timedelta.max,
    "more than ten years": TEN_YEARS + timedelta(microseconds=1),
    "text": "1",
    "True": True,
}
INSTANTS: dict[str, Any] = {
    "naive year 300": datetime(300, 1, 1),  # noqa: DTZ001
    "year 300": datetime(300, 1, 1, tzinfo=UTC),
    "datetime.max": datetime.max,  # noqa: DTZ901
    "datetime.max, aware": datetime.max.replace(tzinfo=UTC),
    "datetime.min, aware": datetime.min.replace(tzinfo=UTC),
    "beyond datetime.max in UTC": datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
    "before datetime.min in UTC": datetime.min.replace(tzinfo=timezone(timedelta(hours=12))),
    "before 1970": datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
    "seconds": 1.0,
}


def working(site: Site) -> tuple[Watched, list[Any]]:
    """A worker that notes the payloads of what it starts."""
    watched = site.worker()
    started: list[Any] = []

    async def work(payload: Any) -> None:
        started.append(payload)

    watched.register("work", work)
    return watched, started


async def test_each_wait_at_dispatch_means_now_or_is_refused(open_site: Opening) -> None:
    """Refused with the place, and nothing is stored; the others are run at once."""
    async with open_site() as site:
        watched, started = working(site)
        ids: list[str] = []
        async with watched.running():
            for label, value in REFUSED.items():
                with pytest.raises(tenure.InvalidJob) as caught:
                    await site.queue.dispatch("work", label, delay=value)
                assert caught.value.path == "delay"
            for label, value in NOW.items():
                ids.append((await site.queue.dispatch("work", label, delay=value)).id)
            await site.until_state("completed", *ids)
            assert sorted(started) == sorted(NOW)
            for job_id in ids:
                job = await site.queue.get(job_id)
                assert abs(job.run_at - job.created_at) < timedelta(seconds=1)
            await standing_checks(site, watched, ids=ids)


async def test_each_instant_at_dispatch_and_in_a_move_is_refused(open_site: Opening) -> None:
    async with open_site() as site:
        watched, started = working(site)
        waiting = await site.queue.dispatch("work", delay=TEN_YEARS)
        before = await site.queue.get(waiting.id)
        async with watched.running():
            for label, value in INSTANTS.items():
                with pytest.raises(tenure.InvalidJob) as caught:
                    await site.queue.dispatch("work", label, at=value)
                assert caught.value.path == "at"
                with pytest.raises(tenure.InvalidJob) as caught:
                    await site.queue.move(waiting.id, at=value)
                assert caught.value.path == "at"
            assert await site.queue.get(waiting.id) == before
            assert started == []
            await standing_checks(site, watched, ids=[waiting.id])


async def test_one_bad_wait_refuses_the_whole_batch(open_site: Opening) -> None:
    async with open_site() as site:
        watched, started = working(site)
        async with watched.running():
            for value in REFUSED.values():
                calls = [tenure.Call("work"), tenure.Call("work", delay=value)]
                with pytest.raises(tenure.InvalidJob) as caught:
                    await site.queue.dispatch_many(calls)
                assert caught.value.path == "calls[1].delay"
            assert started == []
            await standing_checks(site, watched, ids=[])


async def test_the_farthest_times_that_are_accepted_harm_no_worker(open_site: Opening) -> None:
    """1970 is due at once, ten years ahead waits, and what is due in between is run in time."""
    async with open_site() as site:
        watched, started = working(site)
        async with watched.running():
            first = await site.queue.dispatch("work", 1, at=datetime(1970, 1, 1, tzinfo=UTC))
            last = [
                await site.queue.dispatch("work", 2, delay=TEN_YEARS),
                await site.queue.dispatch("work", 2, at=site.clock.now() + TEN_YEARS),
            ]
            soon = await site.queue.dispatch("work", 3, delay=0.3)
            await site.until_state("completed", first.id, soon.id)
            assert started == [1, 3]
            assert (await site.queue.counts()).scheduled == 2
            ids = [first.id, soon.id, *(job.id for job in last)]
            await standing_checks(site, watched, ids=ids)


@pytest.mark.parametrize("verdict", ["snooze", "retry", "policy"])
async def test_each_wait_that_a_handler_or_a_policy_gives_is_judged_alike(
    open_site: Opening, verdict: str
) -> None:
    """What means now runs again; with what cannot be meant the attempt has failed, and says why.

    A policy's function has a rule of its own: nothing negative, and what is too long is cut.
    """
    waits = NOW | REFUSED
    again, later = set(NOW), set[str]()
    if verdict == "policy":
        again, later = {"-0.0"}, {"1e18", "timedelta.max", "more than ten years"}
    failed = set(waits) - again - later

    async with open_site() as site:
        watched = site.worker()
        starts = Counter[str]()

        async def work(label: str) -> Any:
            starts[label] += 1
            if starts[label] > 1:
                return None
            match verdict:
                case "snooze":
                    return tenure.Snooze(waits[label])
                case "retry":
                    raise tenure.Retry(after=waits[label])
                case _:
                    raise ValueError(label)

        def wait(attempt: int, error: BaseException) -> Any:
            return waits[str(error)]

        policy = tenure.RetryPolicy.of(wait) if verdict == "policy" else None
        watched.register("work", work, retry=policy)
        jobs = {label: await site.queue.dispatch("work", label) for label in waits}
        async with watched.running():
            await site.until_state("completed", *(jobs[label].id for label in again))
            await site.until_state("failed", *(jobs[label].id for label in failed))
            if later:
                await site.until_state("pending", *(jobs[label].id for label in later))
            assert starts == Counter({label: 1 + (label in again) for label in waits})
            for label in later:
                run_at = (await site.queue.get(jobs[label].id)).run_at
                assert abs(run_at - site.clock.now() - TEN_YEARS) < timedelta(minutes=1)
            snoozed = verdict == "snooze"  # which is no failure, where it can be done
            await standing_checks(
                site,
                watched,
                ids=[job.id for job in jobs.values()],
                swallowed={
                    "JobFailed": len(failed) if snoozed else len(waits),
                    "InvalidConfiguration": 0 if snoozed else len(failed),
                },
            )
