"""Runs commands and scripts over a few connections, and finds the node that has the store.

Follows a cluster's MOVED, loads a script that the server has forgotten, and replaces connections
that broke or lead to a replica. It never repeats what may have been done: that is the caller's to
decide, so each error says whether it is ambiguous.
"""

import asyncio
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from tenure.drivers.redis.client import Address, Argument, BlockingWire, Server, Wire, parsed
from tenure.drivers.redis.faults import Lost, Refused, translated
from tenure.drivers.redis.route import Route
from tenure.drivers.redis.scripts import Keys, Script

__all__ = ["BlockingLink", "Links", "command_of", "nodes_of"]

_CONNECTIONS = 4  # more do not help: calls that arrive together share one
_REDIRECTIONS = 5
# This node is no primary any more, or cut off from its cluster.
_STALE = frozenset({"READONLY", "UNBLOCKED", "MASTERDOWN", "CLUSTERDOWN"})


def nodes_of(slots: Any) -> list[Address]:
    """The nodes of a cluster, primaries before replicas, from CLUSTER SLOTS."""
    primaries = [entry[2] for entry in slots]
    replicas = [node for entry in slots for node in entry[3:]]
    found = [Address(node[0].decode(), int(node[1])) for node in primaries + replicas if node[0]]
    return list(dict.fromkeys(found))


def command_of(script: Script, keys: Keys, *, whole: bool) -> tuple[Argument, ...]:
    """How a script is called: by its digest, or as a whole, which the server then keeps."""
    verb, body = ("EVAL", script.text) if whole else ("EVALSHA", script.digest)
    return (verb, body, len(keys.declared), *keys.declared)


class Links:
    """The connections of one driver, used from one event loop.

    In a forked child it starts anew: what it inherited is left alone (see `Wire`).
    """

    def __init__(self, server: Server, keys: Keys) -> None:
        self.route: Route = Route(parsed(server.url).get("host"))
        self._server = server
        self._keys = keys
        self._begin()

        self._opened = False

    def open(self) -> None:
        """Let there be connections, until `end`."""
        self._opened = True

    async def end(self) -> None:
        """Give up all connections and make no more: a call that is still on its way fails."""
        self._opened = False
        await self.close()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._free = asyncio.Semaphore(_CONNECTIONS)
        self._idle: list[Wire] = []
        self._generation = 0  # a connection that comes back from an older one is closed

    async def run(self, script: Script, arguments: Sequence[Argument]) -> Any:
        """Run a script and return its answer. Raises `StoreError`."""
        try:
            return await self.command(*command_of(script, self._keys, whole=False), *arguments)
        except Refused as error:
            if error.code != "NOSCRIPT":
                raise translated(error, self._server.shown()) from error
        try:
            return await self.command(*command_of(script, self._keys, whole=True), *arguments)
        except Refused as error:
            raise translated(error, self._server.shown()) from error

    async def command(self, *command: Argument) -> Any:
        """Run one command. Raises `StoreUnavailable`, and `Refused` for the caller to judge."""
        if os.getpid() != self._pid:
            self._begin()
        if self._free.locked():
            await self._wait_for_connection()
        else:
            await self._free.acquire()  # at once
        try:
            return await self._redirected(command)
        except Lost as error:
            raise translated(error, self._server.shown()) from error
        finally:
            self._free.release()

    async def _wait_for_connection(self) -> None:
        try:
            async with asyncio.timeout(self._server.timeout):
                await self._free.acquire()
        except TimeoutError as error:
            lost = Lost("all connections are in use", sent=False)
            raise translated(lost, self._server.shown()) from error

    async def _redirected(self, command: tuple[Argument, ...]) -> Any:
        redirections = 0
        while True:
            try:
                return await self._once(command)
            except Refused as error:
                redirections += 1
                if error.code != "MOVED" or redirections > _REDIRECTIONS:
                    raise
                self.route.follow(error)

    async def _once(self, command: tuple[Argument, ...]) -> Any:
        generation, usable = self._generation, False
        wire = await self._wire()
        try:
            answer = await wire.call(*command)
            usable = True
        except Refused as error:
            usable = error.code not in _STALE
            if error.code == "CLUSTERDOWN":
                self.route.doubt()
            raise
        finally:
            if usable and generation == self._generation:
                self._idle.append(wire)
            else:
                await wire.close()
            if not usable:
                await self.close()  # the others lead to the same server
        return answer

    async def _wire(self) -> Wire:
        while self._idle:
            wire = self._idle.pop()
            if wire.address == self.route.current and await wire.usable():
                return wire
            await wire.close()
            await self._drop_idle()  # whatever ended this one has ended the others
        return await self.connect()

    async def connect(self) -> Wire:
        """A connection that is the caller's own, to the node that had the store last.

        Where that cannot be reached the others are tried: one of them knows who has it now.
        """
        if not self._opened:
            raise Lost("the store is not open", sent=False)
        failure: Lost | Refused | None = None
        for address in self.route.candidates():
            try:
                wire = await Wire.open(self._server, address)
            except (Lost, Refused) as error:
                failure = failure or error
                continue
            self.route.current = address
            if self.route.clustered:
                await self._learn(wire)
            return wire
        assert failure is not None  # there is always one candidate
        raise failure

    async def _learn(self, wire: Wire) -> None:
        """Nodes come and go in the life of a driver; those of the beginning may all have gone."""
        try:
            nodes = nodes_of(await wire.call("CLUSTER", "SLOTS"))
        except (Lost, Refused):
            return  # the command that the connection is for will say so as well
        if nodes:
            self.route.learn(nodes)

    async def close(self) -> None:
        """Give up all connections, those in use after their call. The next call makes new ones."""
        if os.getpid() != self._pid:
            return
        self._generation += 1
        await self._drop_idle()

    async def _drop_idle(self) -> None:
        async with AsyncExitStack() as closing:  # all of them, also when this is cancelled
            while self._idle:
                closing.push_async_callback(self._idle.pop().close)


class BlockingLink:
    """The same for a thread of its own, with one connection."""

    def __init__(self, server: Server, keys: Keys, route: Route) -> None:
        self._server = server
        self._keys = keys
        self._route = route
        self._wire: BlockingWire | None = None
        self._pid = 0

    def run(self, script: Script, arguments: Sequence[Argument]) -> Any:
        """Run a script and return its answer. Raises `StoreError`."""
        whole = False
        failure: Refused | None = None
        for _ in range(_REDIRECTIONS):
            command = command_of(script, self._keys, whole=whole)
            try:
                return self._connected().call(*command, *arguments)
            except Lost as error:
                self.close()
                raise translated(error, self._server.shown()) from error
            except Refused as error:
                failure = error
                if error.code == "NOSCRIPT" and not whole:
                    whole = True
                elif error.code == "MOVED":
                    self._route.follow(error)
                    self.close()
                else:
                    break
        assert failure is not None
        if failure.code == "CLUSTERDOWN":
            self._route.doubt()
        if failure.code in _STALE:
            self.close()
        raise translated(failure, self._server.shown()) from failure

    def _connected(self) -> BlockingWire:
        if self._wire is not None and self._pid == os.getpid() and self._wire.usable():
            return self._wire
        self.close()
        failure: Lost | Refused | None = None
        for address in self._route.candidates():
            try:
                self._wire = BlockingWire(self._server, address)
            except (Lost, Refused) as error:
                failure = failure or error
                continue
            self._pid = os.getpid()
            self._route.current = address
            return self._wire
        assert failure is not None
        raise failure

    def close(self) -> None:
        """Legal twice."""
        wire, self._wire = self._wire, None
        if wire is not None and self._pid == os.getpid():
            wire.close()
