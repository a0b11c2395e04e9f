"""`dispatch` and `dispatch_many`: what is checked, what is repeated, what a failure leaves."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.driver import Capability
from tenure.drivers.memory import MemoryDriver
from tests.runtime.scenes import unreachable, without
from tests.runtime.world import each_store, open_world


@each_store
async def test_a_dispatch_is_stored_with_all_its_options(store: str, tmp_path: Path) -> None:
    """I5, I10: what was asked for is what `get` shows."""
    async with open_world(store, tmp_path) as world:
        job = await world.queue.dispatch(
            "send",
            {"to": ["a@b", None, 1.5]},
            queue="mail",
            priority=7,
            delay=timedelta(minutes=1),
            max_attempts=4,
            timeout=2.5,
            headers={"trace": "ü"},
            id="order-1",
        )
        stored = await world.job(job)
        assert (job.id, job.created) == ("order-1", True)
        assert stored.payload == {"to": ["a@b", None, 1.5]}
        assert (stored.queue, stored.priority, stored.max_attempts) == ("mail", 7, 4)
        assert (stored.timeout, stored.headers) == (2.5, {"trace": "ü"})
        assert stored.run_at - stored.created_at == timedelta(minutes=1)


@each_store
async def test_the_same_id_with_the_same_content_is_stored_once(store: str, tmp_path: Path) -> None:
    """I14: a dispatch with an id of one's own may be repeated."""
    async with open_world(store, tmp_path) as world:
        for _ in range(2):
            await world.queue.dispatch("send", {"n": 1}, id="once")
        with pytest.raises(tenure.DuplicateJob) as caught:
            await world.queue.dispatch("send", {"n": 2}, id="once")
        assert caught.value.job_id == "once"
        counts = await world.queue.counts()
        assert counts.pending == 1


@each_store
async def test_a_dispatch_whose_answer_was_lost_is_repeated_and_stored_once(
    store: str, tmp_path: Path
) -> None:
    """I5, I14: the caller sees one success."""
    async with open_world(store, tmp_path) as world:
        world.driver.fail("enqueue", unreachable(ambiguous=True), times=1, after=True)
        job = await world.run(world.queue.dispatch("send"))
        assert await world.state(job) == "pending"
        assert (await world.queue.counts()).pending == 1


async def test_a_dispatch_that_definitely_failed_is_not_repeated() -> None:
    """I15: the caller is told at once, and nothing was stored."""
    async with open_world() as world:
        world.driver.fail("enqueue", unreachable(), times=1)
        with pytest.raises(tenure.StoreUnavailable) as caught:
            await world.queue.dispatch("send")
        assert not caught.value.ambiguous
        assert world.driver.calls.count("enqueue") == 1
        assert (await world.queue.counts()).pending == 0


async def test_a_dispatch_that_stays_unsure_says_so_after_half_a_minute() -> None:
    """I14: also when the last try definitely failed; the first may have got through."""
    async with open_world() as world:
        world.driver.fail("enqueue", unreachable(ambiguous=True), times=10_000)
        took: list[float] = []

        async def dispatch() -> None:
            began = world.clock.monotonic()
            try:
                await world.queue.dispatch("send")
            finally:
                took.append(world.clock.monotonic() - began)  # when it ends, not when `run` looks

        with pytest.raises(tenure.StoreUnavailable) as caught:
            await world.run(dispatch())
        assert caught.value.ambiguous
        assert 25.0 <= took[0] <= 30.0


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "name"),
    ({"name": "a\nb"}, "name"),
    ({"queue": "q" * 257}, "queue"),
    ({"id": "\ud800"}, "id"),
    ({"payload": {"a": [1, float("nan")]}}, "payload.a[1]"),
    ({"payload": {"a": {"b c": (1, 2)}}}, "payload.a['b c']"),
    ({"payload": "x" * (1024 * 1024)}, "payload"),
    ({"priority": 101}, "priority"),
    ({"priority": True}, "priority"),
    ({"delay": float("inf")}, "delay"),
    ({"delay": 1.0, "at": datetime(2030, 1, 1, tzinfo=UTC)}, "at"),
    ({"at": datetime(2030, 1, 1)}, "at"),  # noqa: DTZ001  # naive on purpose
    ({"max_attempts": 0}, "max_attempts"),
    ({"timeout": 0}, "timeout"),
    ({"headers": {"a": 1}}, "headers['a']"),
]


@pytest.mark.parametrize(("wrong", "path"), WRONG, ids=[path for _, path in WRONG])
async def test_what_is_wrong_is_named_by_its_path_and_nothing_is_stored(
    wrong: dict[str, Any], path: str
) -> None:
    """Section 7: alike for one job and for the second of two."""
    options: dict[str, Any] = {"name": "send", "payload": None, **wrong}
    async with open_world() as world:
        with pytest.raises(tenure.InvalidJob) as one:
            await world.queue.dispatch(**options)
        with pytest.raises(tenure.InvalidJob) as many:
            await world.queue.dispatch_many([tenure.Call("send"), tenure.Call(**options)])
        assert one.value.path == path
        assert many.value.path == f"calls[1].{path}"
        assert "enqueue" not in world.driver.calls


async def test_calls_that_are_no_calls_or_share_an_id_are_refused() -> None:
    """Nothing is stored before all have been looked at."""
    async with open_world() as world:
        wrong: Any = ("send", None)
        with pytest.raises(tenure.InvalidJob) as caught:
            await world.queue.dispatch_many([tenure.Call("send"), wrong])
        assert (caught.value.path, caught.value.rule) == (
            "calls[1]",
            "must be a tenure.Call, got tuple",
        )
        with pytest.raises(tenure.InvalidJob) as caught:
            await world.queue.dispatch_many([tenure.Call("a", id="x"), tenure.Call("b", id="x")])
        assert caught.value.path == "calls[1].id"
        assert "enqueue" not in world.driver.calls


@each_store
async def test_many_jobs_are_stored_in_chunks_and_progress_is_told(
    store: str, tmp_path: Path
) -> None:
    """Each chunk of 1,000 is all or nothing; handles come in the order of the calls."""
    async with open_world(store, tmp_path) as world:
        told: list[int] = []
        calls = [tenure.Call("send", n, id=f"job-{n}") for n in range(2500)]
        jobs = await world.queue.dispatch_many(calls, progress=told.append)
        assert told == [1000, 2000, 2500]
        assert [job.id for job in jobs] == [f"job-{n}" for n in range(2500)]
        assert (await world.queue.counts()).pending == 2500
        assert list(await world.queue.dispatch_many([])) == []


@each_store
async def test_a_failure_between_chunks_says_what_is_stored(store: str, tmp_path: Path) -> None:
    """I15: `.stored` is safe, `.unsure` may be, the rest is not there."""
    async with open_world(store, tmp_path) as world:
        calls = [tenure.Call("send", n, id=f"job-{n}") for n in range(2500)]
        await world.queue.dispatch("send", "other content", id="job-1500")
        with pytest.raises(tenure.PartialDispatch) as caught:
            await world.queue.dispatch_many(calls)
        assert caught.value.stored == tuple(f"job-{n}" for n in range(1000))
        assert caught.value.unsure == ()
        assert isinstance(caught.value.__cause__, tenure.DuplicateJob)
        assert (await world.queue.counts()).pending == 1001


async def test_a_lost_answer_for_good_makes_its_chunk_unsure() -> None:
    """I15, I14: also for the first chunk."""
    async with open_world() as world:
        world.driver.fail("enqueue", unreachable(ambiguous=True), times=10_000)
        calls = [tenure.Call("send", id=f"job-{n}") for n in range(3)]
        with pytest.raises(tenure.PartialDispatch) as caught:
            await world.run(world.queue.dispatch_many(calls))
        assert caught.value.stored == ()
        assert caught.value.unsure == ("job-0", "job-1", "job-2")


async def test_a_store_that_cannot_delay_refuses_delays() -> None:
    """No option is accepted and ignored."""
    async with open_world(capabilities=without(MemoryDriver, Capability.DELAY)) as world:
        with pytest.raises(tenure.Unsupported):
            await world.queue.dispatch("send", delay=1)
        await world.queue.dispatch("send", delay=0)
        assert (await world.queue.counts()).pending == 1
