"""`unique=`: what a dispatch answers while another job holds the key, and what is refused."""

from datetime import timedelta
from typing import Any

import pytest

import tenure
from tenure import Unique
from tests.runtime.scenes import quiet_worker, running
from tests.runtime.world import open_world


async def test_a_refused_dispatch_gives_the_holder() -> None:
    """I8: nothing is stored, and the handle is that of the job that is there already."""
    async with open_world("memory") as world:
        first = await world.queue.dispatch("report", {"n": 1}, unique="report:42")
        second = await world.queue.dispatch("report", {"n": 2}, unique="report:42")
        assert (first.created, second.created) == (True, False)
        assert second.id == first.id
        assert (await world.queue.counts()).pending == 1
        assert (await world.job(first)).payload == {"n": 1}


async def test_the_key_is_free_once_the_job_has_ended() -> None:
    """I8, FAULTS A40: whoever ends it."""
    async with open_world("memory") as world:
        first = await world.queue.dispatch("report", unique="k")
        await world.queue.cancel(first.id)
        second = await world.queue.dispatch("report", unique="k")
        await world.queue.delete(second.id)
        third = await world.queue.dispatch("report", unique="k")
        assert [job.created for job in (first, second, third)] == [True, True, True]


async def test_a_result_can_be_awaited_through_a_refused_dispatch() -> None:
    async with open_world("memory") as world:
        worker = quiet_worker(world)

        @worker.handler("report")
        async def report(payload: Any) -> str:
            return "done"

        await world.queue.dispatch("report", unique="k")
        again = await world.queue.dispatch("report", unique="k")
        async with running(worker):
            assert await world.run(again.result()) == "done"


async def test_many_dispatches_say_which_were_stored() -> None:
    """One key twice in a call: the first holds it."""
    async with open_world("memory") as world:
        calls = [tenure.Call("report", n, unique=f"k{n % 2}") for n in range(4)]
        handles = await world.queue.dispatch_many(calls)
        assert [handle.created for handle in handles] == [True, True, False, False]
        assert [handle.id for handle in handles[2:]] == [handle.id for handle in handles[:2]]


async def test_debounce_puts_the_job_off_until_max_wait() -> None:
    async with open_world("memory") as world:
        rule = Unique("k", mode="debounce", max_wait=timedelta(seconds=25))
        job = await world.queue.dispatch("index", 1, delay=10, unique=rule)
        created = (await world.job(job)).created_at
        await world.clock.advance(5)
        await world.queue.dispatch("index", 2, delay=10, unique=rule)
        assert (await world.job(job)).run_at == created + timedelta(seconds=15)
        await world.clock.advance(4)
        await world.queue.dispatch("index", 3, delay=100, unique=rule)
        stored = await world.job(job)
        assert (stored.run_at, stored.payload) == (created + timedelta(seconds=25), 1)


async def test_the_stored_job_shows_its_key_with_its_rules() -> None:
    async with open_world("memory") as world:
        rule = Unique("k", mode="throttle", period=timedelta(minutes=1))
        job = await world.queue.dispatch("index", unique=rule)
        expected = tenure.UniqueKey(key="k", mode="throttle", period=60.0)
        assert (await world.job(job)).unique == expected


async def test_a_manual_retry_is_refused_while_another_job_holds_the_key() -> None:
    async with open_world("memory") as world:
        first = await world.queue.dispatch("report", unique="k")
        await world.queue.cancel(first.id)
        second = await world.queue.dispatch("report", unique="k")
        assert await world.queue.retry(first.id) == "held"
        await world.queue.cancel(second.id)
        assert await world.queue.retry(first.id) == "done"


WRONG: Any = "sometimes"


@pytest.mark.parametrize(
    ("unique", "path"),
    [
        ("", "unique"),
        ("x" * 513, "unique"),
        ("a\0b", "unique"),
        (7, "unique"),
        (Unique("k", mode="throttle"), "unique.period"),
        (Unique("k", until="started", mode="throttle", period=5), "unique.until"),
        (Unique("k", max_wait=5), "unique.max_wait"),
        (Unique("k", period=0), "unique.period"),
        (Unique("k", period=float("nan")), "unique.period"),
        (Unique("k", mode=WRONG), "unique.mode"),
        (Unique("k", until=WRONG), "unique.until"),
        (Unique(""), "unique.key"),
    ],
)
async def test_a_wrong_unique_is_refused_with_its_path(unique: Any, path: str) -> None:
    async with open_world("memory") as world:
        with pytest.raises(tenure.InvalidJob) as caught:
            await world.queue.dispatch("report", unique=unique)
        assert caught.value.path == path
        assert (await world.queue.counts()).pending == 0
