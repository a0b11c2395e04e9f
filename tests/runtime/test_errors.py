"""W21, W22: what went wrong is read from the handle, in order, and nothing grows without bound."""

import asyncio
import logging

import pytest

import tenure
from tests.runtime.scenes import errors_of, quiet_worker, running, unreachable
from tests.runtime.world import World, open_world

BUFFER = 256


def failing(world: World) -> tenure.Worker:
    """A worker whose jobs all fail with their payload as the message."""
    worker = quiet_worker(world)

    @worker.handler("fail")
    async def fail(payload: object) -> None:
        raise ValueError(payload)

    return worker


async def fail_jobs(world: World, first: int, last: int) -> None:
    await world.queue.dispatch_many([tenure.Call("fail", n) for n in range(first, last)])
    await world.advance(0.1)


def numbers(errors: list[tenure.QueueError]) -> list[int]:
    """Which jobs failed, by their message."""
    found: list[int] = []
    for error in errors:
        assert isinstance(error, tenure.JobFailed)
        found.append(int(error.failure.message.removeprefix("ValueError: ")))
    return found


# --- W21 ------------------------------------------------------------------------------------------


async def test_w21_next_error_waits_for_the_next_error() -> None:
    """W21: it returns the error that comes, and takes it out."""
    async with open_world() as world, running(failing(world)) as handle:
        reading = asyncio.create_task(handle.next_error())
        await world.advance(100.0)
        assert not reading.done()
        await fail_jobs(world, 0, 1)
        error = await reading
        assert error is not None
        assert numbers([error]) == [0]
        assert handle.try_next_error() is None


async def test_w21_errors_are_read_in_the_order_in_which_they_came() -> None:
    """W21: by whichever of the three ways."""
    async with open_world() as world, running(failing(world)) as handle:
        await fail_jobs(world, 0, 3)
        first = await handle.next_error()
        second = handle.try_next_error()
        async for third in handle.errors():
            assert first is not None
            assert second is not None
            assert numbers([first, second, third]) == [0, 1, 2]
            break
        assert handle.try_next_error() is None


async def test_w21_next_error_is_none_once_the_worker_has_stopped_and_all_are_read() -> None:
    """W21: what came before the end can still be read after it."""
    async with open_world() as world:
        handle = failing(world).run()
        await fail_jobs(world, 0, 3)
        first = await handle.shutdown()
        assert first is not None
        rest = [await handle.next_error(), await handle.next_error()]
        assert numbers([first, *[error for error in rest if error is not None]]) == [0, 1, 2]
        assert await handle.next_error() is None
        assert await handle.next_error() is None
        assert handle.try_next_error() is None


async def test_w21_waiting_readers_get_none_when_the_worker_stops() -> None:
    """W21: all of them, so that no task waits for ever."""
    async with open_world() as world:
        handle = failing(world).run()
        readings = [asyncio.create_task(handle.next_error()) for _ in range(3)]
        await world.settle()
        assert await handle.shutdown() is None
        assert await asyncio.gather(*readings) == [None, None, None]


async def test_w21_waiting_readers_get_none_when_the_worker_is_aborted() -> None:
    """W21, W24."""
    async with open_world() as world:
        handle = failing(world).run()
        await world.settle()
        reading = asyncio.create_task(handle.next_error())
        await world.settle()
        handle.abort()
        assert await reading is None


async def test_w21_try_next_error_never_waits() -> None:
    """W21: it is no coroutine, and None means just that there is none now."""
    async with open_world() as world, running(failing(world)) as handle:
        assert handle.try_next_error() is None
        await fail_jobs(world, 0, 1)
        assert numbers(errors_of(handle)) == [0]
        assert handle.try_next_error() is None


async def test_w21_the_errors_of_a_handle_end_with_its_worker() -> None:
    """W21: `async for` goes through what is there and what comes, then ends."""
    async with open_world() as world:
        handle = failing(world).run()
        seen: list[tenure.QueueError] = []

        async def read() -> None:
            async for error in handle.errors():
                seen.append(error)

        reading = asyncio.create_task(read())
        await fail_jobs(world, 0, 2)
        assert numbers(seen) == [0, 1]
        await fail_jobs(world, 2, 3)
        assert numbers(seen) == [0, 1, 2]
        assert not reading.done()
        assert await handle.shutdown() is None
        await reading
        assert len(seen) == 3


async def test_w21_each_error_goes_to_one_reader() -> None:
    """W21: to the one that has waited longest."""
    async with open_world() as world, running(failing(world)) as handle:
        readings = [asyncio.create_task(handle.next_error()) for _ in range(2)]
        await world.settle()
        await fail_jobs(world, 0, 2)
        errors = [await reading for reading in readings]
        assert numbers([error for error in errors if error is not None]) == [0, 1]


async def test_w21_a_reader_that_gives_up_loses_no_error() -> None:
    """W21: cancelled while it waits, before and in the very turn in which an error comes."""
    async with open_world() as world, running(failing(world)) as handle:
        reading = asyncio.create_task(handle.next_error())
        await world.settle()
        reading.cancel()
        await asyncio.wait([reading])
        await fail_jobs(world, 0, 1)
        assert numbers(errors_of(handle)) == [0]


async def test_w21_an_error_handed_to_a_reader_that_gives_up_goes_to_the_next() -> None:
    """W21: the second reader waits already, and must not be left waiting with an error there."""
    from tenure._runtime.report import ErrorBuffer

    buffer = ErrorBuffer()
    first = asyncio.create_task(buffer.next())
    second = asyncio.create_task(buffer.next())
    await asyncio.sleep(0)
    assert buffer.put(unreachable())
    first.cancel()
    await asyncio.wait([first])
    assert first.cancelled()
    done, _ = await asyncio.wait([second], timeout=1.0)
    second.cancel()
    assert done == {second}
    assert isinstance(second.result(), tenure.StoreUnavailable)
    assert buffer.take() is None


async def test_w21_an_error_handed_to_a_reader_that_gives_up_stays_the_oldest() -> None:
    """W21: nobody else waits: it is kept before those that came after it."""
    from tenure._runtime.report import ErrorBuffer

    buffer = ErrorBuffer()
    reading = asyncio.create_task(buffer.next())
    await asyncio.sleep(0)
    older, newer = unreachable(), unreachable()
    buffer.put(older)
    buffer.put(newer)
    reading.cancel()
    await asyncio.wait([reading])
    assert [buffer.take(), buffer.take(), buffer.take()] == [older, newer, None]


# --- W22 ------------------------------------------------------------------------------------------


async def test_w22_the_buffer_holds_256_and_drops_the_newest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """W22: the oldest are the ones that explain the rest; what is dropped is counted and logged."""
    async with open_world() as world:
        events: list[tenure.Event] = []
        worker = quiet_worker(world, observers=[events.append])

        @worker.handler("fail")
        async def fail(payload: object) -> None:
            raise ValueError(payload)

        async with running(worker) as handle:
            await fail_jobs(world, 0, BUFFER)
            assert handle.dropped_errors == 0
            caplog.clear()
            await fail_jobs(world, BUFFER, BUFFER + 44)
            assert handle.dropped_errors == 44
            dropped = [
                record
                for record in caplog.records
                if record.name == "tenure.worker" and "dropped" in record.getMessage()
            ]
            assert len(dropped) == 44
            assert {record.levelno for record in dropped} == {logging.WARNING}
            reported = [event for event in events if isinstance(event, tenure.ErrorReported)]
            assert [event.dropped for event in reported] == [False] * BUFFER + [True] * 44
            assert numbers(errors_of(handle)) == list(range(BUFFER))


async def test_w22_there_is_room_again_once_errors_were_read() -> None:
    """W22: one read, one more kept; the count of dropped ones stays."""
    async with open_world() as world, running(failing(world)) as handle:
        await fail_jobs(world, 0, BUFFER + 1)
        assert handle.dropped_errors == 1
        first = handle.try_next_error()
        assert first is not None
        await fail_jobs(world, 1000, 1002)
        assert handle.dropped_errors == 2
        assert numbers([first, *errors_of(handle)]) == [*range(BUFFER), 1000]


async def test_w22_nothing_is_dropped_while_somebody_reads() -> None:
    """W22: a waiting reader is handed the error at once."""
    async with open_world() as world:
        handle = failing(world).run()
        seen: list[tenure.QueueError] = []

        async def read() -> None:
            async for error in handle.errors():
                seen.append(error)

        reading = asyncio.create_task(read())
        await fail_jobs(world, 0, 3 * BUFFER)
        assert await handle.shutdown() is None
        await reading
        assert numbers(seen) == list(range(3 * BUFFER))
        assert handle.dropped_errors == 0
