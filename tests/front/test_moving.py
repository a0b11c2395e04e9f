"""Moving a store from within: answers that were lost, and what cannot be written."""

import pytest

import tenure
from tenure.driver import Capability, Driver
from tenure.drivers.memory import MemoryDriver
from tenure.errors import StoreUnavailable
from tenure.moving import contents_of, export_store, import_store
from tenure.testing.faults import FaultyDriver
from tenure.types import NewJob
from tests.edge.cli.filled import after_a_move, fill, see


async def _exported(queue: tenure.Queue) -> list[bytes]:
    lines: list[bytes] = []
    await export_store(queue, lines.append, store="memory", told=lambda _: None)
    return lines


async def test_a_store_in_memory_is_moved_to_another_with_nothing_lost() -> None:
    async with tenure.connect("memory://") as old, tenure.connect("memory://") as new:
        await fill(old)
        lines = await _exported(old)
        done = await import_store(new, contents_of(lines), lines, told=lambda _: None)
        right, found = after_a_move(await see(old)), await see(new)
        assert done.stored == len(right.jobs)
        assert found.jobs == right.jobs
        assert found.histories == right.histories
        assert (found.limits, found.schedules) == (right.limits, right.schedules)
        assert found.paused == right.paused


@pytest.mark.parametrize("how", ["before", "after", "ambiguously"])
@pytest.mark.parametrize("operation", ["put_limit", "pause", "restore", "restore_schedules"])
async def test_an_import_whose_answer_was_lost_is_run_again(operation: str, how: str) -> None:
    """I14: whatever of it was done is known, and nothing comes twice."""
    store = FaultyDriver(MemoryDriver())
    async with tenure.connect("memory://") as old, tenure.Queue(store) as new:
        await fill(old)
        lines = await _exported(old)
        contents = contents_of(lines)
        store.fail(operation, how=how)  # type: ignore[arg-type]  # one of the three
        with pytest.raises(StoreUnavailable):
            await import_store(new, contents, lines, told=lambda _: None)
        done = await import_store(new, contents, lines, told=lambda _: None)
        assert not store.unfired
        assert done.stored + done.known == contents.jobs
        right, found = after_a_move(await see(old)), await see(new)
        assert found.jobs == right.jobs
        assert found.histories == right.histories
        assert (found.limits, found.schedules) == (right.limits, right.schedules)


async def test_what_no_store_could_take_in_is_left_out_and_named() -> None:
    """I12: a bad record harms only itself."""
    store: Driver = MemoryDriver()
    async with tenure.Queue(store) as queue:
        bad = NewJob(id="bad", name="work", priority=1000)
        await store.enqueue([NewJob(id="a", name="work"), bad, NewJob(id="b", name="work")])
        lines: list[bytes] = []
        done = await export_store(queue, lines.append, store="memory", told=lambda _: None)
    assert (done.jobs, [one.id for one in done.unwritten]) == (2, ["bad"])
    assert "priority" in done.unwritten[0].reason
    assert contents_of(lines).jobs == 2


async def test_a_store_that_cannot_restore_says_so() -> None:
    few = MemoryDriver.capabilities - {Capability.RESTORE}
    async with tenure.Queue(FaultyDriver(MemoryDriver(), capabilities=few)) as queue:
        with pytest.raises(tenure.Unsupported):
            await _exported(queue)
