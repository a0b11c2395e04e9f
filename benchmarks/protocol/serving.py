"""One process of a contestant: obeys the suite, one line of JSON at a time.

    python -m benchmarks.peers.<name> client|worker '{"store": ..., "url": ..., ...}'

A client answers each line with one. A worker says that it is ready, waits for one line, and runs
until it is ended; it ends itself when the suite is gone. What a peer prints goes to standard error.
Must never import anything but the standard library: it runs in each peer's environment.
"""

import asyncio
import json
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from benchmarks.protocol.client import BlockingClient, Client, Setting
from benchmarks.protocol.ledger import Ledger

__all__ = ["Handlers", "Setting", "serve"]

NAP = 0.001


Handlers = Mapping[str, Callable[[Any], Any]]


def on_a_loop(ledger: Ledger) -> Handlers:
    """The work of the jobs: nothing, a wait of a millisecond, a look at the clock."""

    async def nothing(payload: object) -> None:
        ledger.began()
        ledger.ended()

    async def nap(payload: object) -> None:
        ledger.began()
        await asyncio.sleep(NAP)
        ledger.ended()

    async def delay(sent: int) -> None:
        ledger.delayed(sent)
        ledger.began()
        ledger.ended()

    return {"nothing": nothing, "nap": nap, "delay": delay}


def blocking(ledger: Ledger) -> Handlers:
    """The same, for peers whose handlers block."""

    def nothing(payload: object) -> None:
        ledger.began()
        ledger.ended()

    def nap(payload: object) -> None:
        ledger.began()
        time.sleep(NAP)
        ledger.ended()

    def delay(sent: int) -> None:
        ledger.delayed(sent)
        ledger.began()
        ledger.ended()

    return {"nothing": nothing, "nap": nap, "delay": delay}


# Sets all up, calls its last argument, which returns when the suite says so, and then runs.
Work = Callable[[Setting, Handlers, Callable[[], None]], None]


def serve(*, client: type[Client] | type[BlockingClient], work: Work) -> None:
    """What an adapter ends with. Whose client blocks is given handlers that block."""
    role, text = sys.argv[1:]
    setting = Setting(**json.loads(text))
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    ledger = Ledger(setting.ledger)
    if role == "client":
        asyncio.run(_obey(client(setting), ledger, answers))
        return
    if setting.traced and setting.store == "sqlite":
        _trace(ledger)
    handlers = blocking(ledger) if issubclass(client, BlockingClient) else on_a_loop(ledger)
    work(setting, handlers, lambda: _wait_for_start(answers))


# --- a client -----------------------------------------------------------------------------------


async def _obey(client: Client | BlockingClient, ledger: Ledger, answers: TextIO) -> None:
    if isinstance(client, Client):
        await client.open()
    else:
        client.open()
    _say(answers, {"bulk": client.bulk})
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        _say(answers, await _done(client, ledger, **json.loads(line)))
    # The store is thrown away, and nobody waits for the goodbyes of a peer.
    sys.stderr.flush()
    os._exit(0)


async def _done(
    client: Client | BlockingClient, ledger: Ledger, do: str, **arguments: Any
) -> dict[str, object]:
    match do:
        case "count":
            count = await client.count() if isinstance(client, Client) else client.count()
            return {"unfinished": count.unfinished, "finished": count.finished}
        case "offer":
            jobs, seconds = await client.offer(**arguments)
            return {"jobs": jobs, "seconds": seconds}
        case "pick_ups":
            await client.pick_ups(ledger, **arguments)
            return {}
        case "one_by_one" | "abreast" | "in_bulk":
            return {"seconds": await getattr(client, do)(**arguments)}
        case _:
            raise ValueError(f"nobody knows how to do {do!r}")


# --- a worker -----------------------------------------------------------------------------------


def _wait_for_start(answers: TextIO) -> None:
    _say(answers, {})
    if not sys.stdin.readline():
        os._exit(1)
    threading.Thread(target=_end_with_the_suite, daemon=True).start()


def _end_with_the_suite() -> None:
    while os.read(0, 1):  # not through sys.stdin, whose lock would be missed at the end
        pass
    os._exit(1)


def _trace(ledger: Ledger) -> None:
    """Count the transactions of each connection that this process opens from now on."""
    plain = sqlite3.connect

    def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = plain(*arguments, **options)

        def stated(_: str) -> None:
            if not connection.in_transaction:  # it begins one, or is one by itself
                ledger.stated()

        connection.set_trace_callback(stated)
        return connection

    sqlite3.connect = connect  # type: ignore[assignment]  # it passes on what it is given


def _say(answers: TextIO, what: dict[str, object]) -> None:
    print(json.dumps(what), file=answers, flush=True)
