"""`limit`, `limits`, `remove_limit` and `limits=`: how many jobs of a key run, and how fast."""

from typing import Any

import pytest

import tenure
from tests.runtime.scenes import quiet_worker, running
from tests.runtime.world import open_world


async def test_no_more_jobs_of_a_key_run_than_its_limit() -> None:
    """Others go on meanwhile, and the next one starts when one has ended."""
    async with open_world("memory") as world:
        await world.queue.limit("customer:*", concurrent=1)
        worker = quiet_worker(world)
        at_work: list[str] = []
        most: list[int] = []

        @worker.handler("work")
        async def work(customer: str) -> None:
            at_work.append(customer)
            most.append(at_work.count(customer))
            await world.clock.sleep(1.0)
            at_work.remove(customer)

        for customer in ("a", "a", "b", "a"):
            await world.queue.dispatch("work", customer, limits=[f"customer:{customer}"])
        async with running(worker):
            await world.settle()
            assert sorted(at_work) == ["a", "b"]
            await world.advance(4.0)
        assert (max(most), len(most)) == (1, 4)


async def test_limits_are_listed_replaced_and_removed() -> None:
    async with open_world("memory") as world:
        await world.queue.limit("b:*", concurrent=2)
        await world.queue.limit("a", per_second=10)
        await world.queue.limit("a", per_second=5, concurrent=3)
        assert list(await world.queue.limits()) == [
            tenure.Limit(key="a", per_second=5, concurrent=3),
            tenure.Limit(key="b:*", concurrent=2),
        ]
        assert await world.queue.remove_limit("a")
        assert not await world.queue.remove_limit("a")
        assert [limit.key for limit in await world.queue.limits()] == ["b:*"]


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ({"key": "a"}, "per_second"),
        ({"key": "a", "per_second": 0}, "per_second"),
        ({"key": "a", "concurrent": True}, "concurrent"),
        ({"key": "a", "concurrent": 1.5}, "concurrent"),
        ({"key": "", "concurrent": 1}, "key"),
        ({"key": "a*b", "concurrent": 1}, "key"),
        ({"key": "a**", "concurrent": 1}, "key"),
        ({"key": "x" * 257, "concurrent": 1}, "key"),
        ({"key": 5, "concurrent": 1}, "key"),
    ],
)
async def test_a_wrong_limit_is_refused(arguments: dict[str, Any], option: str) -> None:
    async with open_world("memory") as world:
        with pytest.raises(tenure.InvalidConfiguration) as caught:
            await world.queue.limit(**arguments)
        assert caught.value.option == option
        assert list(await world.queue.limits()) == []


@pytest.mark.parametrize(
    ("limits", "path"),
    [
        ("api", "limits"),
        (5, "limits"),
        (["ok", ""], "limits[1]"),
        (["customer:*"], "limits[0]"),
        ([f"k{n}" for n in range(9)], "limits"),
        ([None], "limits[0]"),
    ],
)
async def test_wrong_keys_are_refused_with_their_path(limits: Any, path: str) -> None:
    async with open_world("memory") as world:
        with pytest.raises(tenure.InvalidJob) as caught:
            await world.queue.dispatch("work", limits=limits)
        assert caught.value.path == path
        assert (await world.queue.counts()).pending == 0


async def test_the_same_key_twice_counts_once() -> None:
    async with open_world("memory") as world:
        job = await world.queue.dispatch("work", limits=["b", "a", "b"])
        assert (await world.job(job)).limits == ("a", "b")
