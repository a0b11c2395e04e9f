"""The relay between a client and a server that says everything back, and before real servers."""

import asyncio
import gc
import warnings
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Literal

import pytest

from tenure.testing import ManualClock
from tenure.testing.faults import Relay

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Echo:
    """A server that says back what it hears, and counts it."""

    def __init__(self) -> None:
        self.port = 0
        self.heard = bytearray()
        self.tasks: set[asyncio.Task[None]] = set()

    def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self.answer(reader, writer))
        self.tasks.add(task)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(1000):
                self.heard += data
                writer.write(data)
                await writer.drain()
        await gone(writer)


async def gone(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


@asynccontextmanager
async def echoing() -> AsyncGenerator[Echo]:
    echo = Echo()
    server = await asyncio.start_server(echo.serve, "127.0.0.1")
    echo.port = server.sockets[0].getsockname()[1]
    try:
        yield echo
    finally:
        server.close()
        await asyncio.wait_for(asyncio.gather(*echo.tasks), 10.0)


@asynccontextmanager
async def connected(relay: Relay) -> AsyncGenerator[Streams]:
    reader, writer = await asyncio.open_connection(relay.host, relay.port)
    try:
        yield reader, writer
    finally:
        await gone(writer)


async def said(streams: Streams, text: bytes) -> bytes:
    """What comes back."""
    reader, writer = streams
    writer.write(text)
    return await asyncio.wait_for(reader.readexactly(len(text)), 10.0)


async def turns() -> None:
    """Let the sockets of this machine and the loop do their part: a moment of real time."""
    for _ in range(20):
        await asyncio.sleep(0.001)


async def test_what_is_said_goes_through_both_ways() -> None:
    async with echoing() as echo, Relay("127.0.0.1", echo.port) as relay:
        async with connected(relay) as one, connected(relay) as other:
            assert await said(one, b"one") == b"one"
            assert await said(other, b"x" * 300_000) == b"x" * 300_000
        assert relay.accepted == 2


async def test_an_end_is_passed_on_and_the_answers_after_it() -> None:
    """A client that has said all it has to say still hears the answers."""
    async with (
        echoing() as echo,
        Relay("127.0.0.1", echo.port) as relay,
        connected(relay) as (reader, writer),
    ):
        writer.write(b"last")
        writer.write_eof()
        assert await asyncio.wait_for(reader.read(), 10.0) == b"last"


@pytest.mark.parametrize("way", ["requests", "replies"])
async def test_a_delay_goes_by_the_clock_and_one_way(way: Literal["requests", "replies"]) -> None:
    clock = ManualClock()
    async with (
        echoing() as echo,
        Relay("127.0.0.1", echo.port, clock=clock) as relay,
        connected(relay) as streams,
    ):
        relay.delay(5.0, way)
        answer = asyncio.ensure_future(said(streams, b"late"))
        await turns()
        assert bytes(echo.heard) == (b"" if way == "requests" else b"late")
        await clock.advance(4.9)
        await turns()
        assert not answer.done()
        await clock.advance(0.2)
        assert await answer == b"late"
        relay.delay(0.0)
        assert await said(streams, b"at once") == b"at once"


async def test_a_freeze_holds_everything_and_resets_nothing() -> None:
    async with (
        echoing() as echo,
        Relay("127.0.0.1", echo.port) as relay,
        connected(relay) as old,
    ):
        assert await said(old, b"before") == b"before"
        relay.freeze()
        answers = [asyncio.ensure_future(said(old, b"old"))]
        async with connected(relay) as new:
            answers.append(asyncio.ensure_future(said(new, b"new")))
            await turns()
            assert bytes(echo.heard) == b"before"
            assert not any(answer.done() for answer in answers)
            relay.thaw()
            assert await asyncio.gather(*answers) == [b"old", b"new"]


async def test_a_frozen_connection_does_not_tell_that_its_server_has_gone() -> None:
    async with (
        echoing() as echo,
        Relay("127.0.0.1", echo.port) as relay,
        connected(relay) as (reader, writer),
    ):
        assert await said((reader, writer), b"before") == b"before"
        relay.freeze()
        writer.write(b"unheard")
        for task in echo.tasks:
            task.cancel()
        await asyncio.wait(echo.tasks)
        echo.tasks.clear()
        gc.collect()
        end = asyncio.ensure_future(reader.read())
        await turns()
        assert not end.done()
        relay.cut()
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(end, 10.0)


async def test_replies_that_are_dropped_are_gone_and_so_are_all_after_them() -> None:
    """There are no gaps in what TCP carries: a connection that lost an answer carries no other."""
    async with (
        echoing() as echo,
        Relay("127.0.0.1", echo.port) as relay,
        connected(relay) as (reader, writer),
        connected(relay) as spared,
    ):
        assert await said(spared, b"1") == b"1"
        relay.drop_replies()
        writer.write(b"2")
        await turns()
        relay.pass_replies()
        writer.write(b"3")
        await turns()
        assert bytes(echo.heard) == b"123"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.02)
        assert await said(spared, b"4") == b"4"


async def test_forgotten_connections_carry_nothing_and_new_ones_are_as_ever() -> None:
    async with (
        echoing() as echo,
        Relay("127.0.0.1", echo.port) as relay,
        connected(relay) as old,
    ):
        assert await said(old, b"1") == b"1"
        relay.forget()
        old[1].write(b"2")
        async with connected(relay) as new:
            assert await said(new, b"3") == b"3"
        assert bytes(echo.heard) == b"13"


async def test_a_cut_resets_the_connections_and_new_ones_can_be_made() -> None:
    async with echoing() as echo, Relay("127.0.0.1", echo.port) as relay:
        async with connected(relay) as streams:
            assert await said(streams, b"1") == b"1"
            relay.cut()
            with pytest.raises(ConnectionResetError):
                await asyncio.wait_for(streams[0].read(), 10.0)
        async with connected(relay) as streams:
            assert await said(streams, b"2") == b"2"


async def test_a_refusing_relay_refuses_new_connections_only_and_keeps_its_port() -> None:
    async with echoing() as echo, Relay("127.0.0.1", echo.port) as relay:
        port = relay.port
        async with connected(relay) as streams:
            assert await said(streams, b"1") == b"1"
            for _ in range(2):  # legal twice
                relay.refuse()
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(relay.host, port)
            assert await said(streams, b"2") == b"2"
        for _ in range(2):
            relay.accept()
        assert relay.port == port
        async with connected(relay) as streams:
            assert await said(streams, b"3") == b"3"


async def test_who_is_turned_away_is_accepted_and_hears_the_end_at_once() -> None:
    async with echoing() as echo, Relay("127.0.0.1", echo.port) as relay:
        relay.turn_away()
        async with connected(relay) as (reader, _):
            assert await asyncio.wait_for(reader.read(), 10.0) == b""
        assert relay.accepted == 1
        relay.restore()
        async with connected(relay) as streams:
            assert await said(streams, b"1") == b"1"


async def test_restoring_takes_everything_back() -> None:
    async with echoing() as echo, Relay("127.0.0.1", echo.port) as relay:
        relay.delay(3600.0)
        relay.freeze()
        relay.drop_replies()
        relay.refuse()
        relay.restore()
        async with connected(relay) as streams:
            assert await said(streams, b"1") == b"1"


async def test_a_target_that_is_not_there_resets_who_connects() -> None:
    async with echoing() as echo:
        port = echo.port
    async with Relay("127.0.0.1", port) as relay, connected(relay) as (reader, _):
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.read(), 10.0)


async def come_and_go(echo: Echo, turn: int) -> None:
    """Open a relay, connect, and leave in the midst of it."""
    async with Relay("127.0.0.1", echo.port) as relay:
        made = [await asyncio.open_connection(relay.host, relay.port)]
        made[0][1].write(b"1")
        for _ in range(turn % 5):
            await asyncio.sleep(0)
        if turn % 2:
            relay.freeze()
        made.append(await asyncio.open_connection(relay.host, relay.port))
        if turn % 3 == 0:
            relay.refuse()
        if turn % 3 == 1:
            relay.turn_away()
    for _, writer in made:
        await gone(writer)


async def test_nothing_is_left_behind() -> None:
    """Connections frozen, half open, just made or refused: all sockets are closed at the end."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        async with echoing() as echo:
            for turn in range(20):
                await come_and_go(echo, turn)
        gc.collect()
    assert [str(each.message) for each in caught] == []
