"""One connection to the server. The only module that knows the client library, asyncpg.

Turns every failure of it into an error of ours that says whether the statement may have been done.
A connection belongs to the event loop that made it, and runs one statement at a time.
"""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import asyncpg

from tenure.clock import Clock
from tenure.drivers.postgres import faults
from tenure.drivers.postgres.fork import know, know_alone
from tenure.drivers.postgres.rows import Row
from tenure.errors import StoreError

__all__ = ["PLANNING", "Connection", "Refusal", "connect"]

# For the statements that are no functions, which pin their plans themselves (planning.sql): a plan
# that reads the whole table, made while it was small, is kept with the prepared statement.
PLANNING = {"enable_seqscan": "off", "enable_bitmapscan": "off", "jit": "off"}

_CONNECT_TIMEOUT = 5.0
_CLOSE_TIMEOUT = 1.0


class Refusal(Exception):
    """The server rolled back for a reason that another try may not meet; `error` if it does."""

    def __init__(self, error: StoreError) -> None:
        super().__init__(str(error))
        self.error = error


async def connect(address: str, clock: Clock, *, prepare: bool) -> "Connection":
    """Connect. Raises `StoreUnavailable`, not ambiguous, or `StoreError`.

    With `prepare` statements are prepared once and kept, which a pooler that gives each transaction
    another server connection cannot stand; nor can it stand settings of a connection. Without it
    each statement is planned anew, for the table as it is.
    """
    try:
        raw = await asyncpg.connect(
            address,
            timeout=_CONNECT_TIMEOUT,
            command_timeout=None,
            server_settings=PLANNING if prepare else None,
            statement_cache_size=200 if prepare else 0,
            # Statements are few and always the same: none is worth forgetting.
            max_cached_statement_lifetime=0,
        )
    except asyncpg.PostgresError as error:
        raise faults.refused(error.sqlstate or "", str(error), sent=False) from error
    except (OSError, TimeoutError, asyncpg.InterfaceError) as error:
        raise faults.unreachable(str(error) or type(error).__name__) from error
    except (ValueError, asyncpg.InternalClientError) as error:
        raise StoreError(f"the URL of the store cannot be used: {error}") from error
    return Connection(raw, clock)


class Connection:
    """One connection, its statements bounded in time."""

    def __init__(self, raw: "asyncpg.Connection[asyncpg.Record]", clock: Clock) -> None:
        self._raw = raw
        self._clock = clock
        self._process = os.getpid()
        know(raw)

    @property
    def usable(self) -> bool:
        """Whether it is still there, and of this process."""
        return self._process == os.getpid() and not self._raw.is_closed()

    @property
    def backend(self) -> int:
        """The number of the server process, as it was told when connecting."""
        return self._raw.get_server_pid()

    async def fetch(self, sql: str, arguments: Sequence[object], timeout: float) -> list[Row]:
        """Run one statement in a transaction of its own.

        Raises `Refusal` where another try is worth it, `StoreUnavailable`, or `StoreError`. A call
        that is not answered in time loses its connection: asking the server to cancel would need
        another one, and leave the same doubt.
        """
        overdue = self._clock.call_later(timeout, self.terminate)
        try:
            rows: list[Row] = [*await self._raw.fetch(sql, *arguments)]
            return rows
        except asyncpg.PostgresError as error:
            raise self._judged(error) from error
        except asyncpg.InternalClientError as error:
            self.terminate()
            raise faults.lost(str(error)) from error
        except (OSError, asyncpg.InterfaceError) as error:
            if isinstance(error, ValueError):  # an argument; nothing was sent
                raise StoreError(f"a value cannot be stored: {error}") from error
            self.terminate()
            raise faults.lost(str(error) or type(error).__name__) from error
        finally:
            overdue.cancel()

    def _judged(self, error: asyncpg.PostgresError) -> StoreError | Refusal:
        sqlstate = error.sqlstate or ""
        meaning = faults.refused(sqlstate, str(error), sent=True)
        if faults.drops(sqlstate):
            self.terminate()
        return Refusal(meaning) if sqlstate in faults.TRANSIENT else meaning

    @contextmanager
    def warnings(self) -> Generator[list[str]]:
        """The SQLSTATEs of what the server warns of meanwhile, as they come."""
        found: list[str] = []

        def noted(_: object, message: asyncpg.PostgresLogMessage) -> None:
            if message.severity_en == "WARNING":
                found.append(message.sqlstate or "")

        self._raw.add_log_listener(noted)
        try:
            yield found
        finally:
            self._raw.remove_log_listener(noted)

    async def script(self, sql: str) -> None:
        """Run commands that take no arguments, without a bound in time: indexes are built here."""
        try:
            await self._raw.execute(sql)
        except asyncpg.PostgresError as error:
            raise faults.refused(error.sqlstate or "", str(error), sent=True) from error
        except (OSError, asyncpg.InterfaceError) as error:
            self.terminate()
            raise faults.lost(str(error)) from error

    async def listen(
        self, channel: str, heard: Callable[[int], None], gone: Callable[[], None]
    ) -> None:
        """Call `heard` with the sender's backend at each notification, `gone` at the end."""

        def notified(_: object, sender: int, __: str, ___: object) -> None:
            heard(sender)

        try:
            self._raw.add_termination_listener(lambda _: gone())
            await self._raw.add_listener(channel, notified)
        except asyncpg.PostgresError as error:
            raise faults.refused(error.sqlstate or "", str(error), sent=True) from error
        except (OSError, asyncpg.InterfaceError) as error:
            raise faults.lost(str(error)) from error

    def watch(self, gone: Callable[[], None]) -> None:
        """Call `gone` when the connection is lost, and let no forked child have a copy of it."""
        self._raw.add_termination_listener(lambda _: gone())
        # The library has no public name for it.
        know_alone(self._raw._transport)  # type: ignore[attr-defined]  # pyright: ignore[reportPrivateUsage]

    def terminate(self) -> None:
        """Drop the connection now. In a forked child it is left alone."""
        if self._process == os.getpid():
            self._raw.terminate()

    async def close(self) -> None:
        """Say goodbye, for a moment at most; then drop it."""
        if not self.usable:
            return
        try:
            await self._raw.close(timeout=_CLOSE_TIMEOUT)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            self.terminate()
