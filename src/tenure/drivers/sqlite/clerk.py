"""One thread with one connection, through which calls go in groups.

What waits when the thread is ready goes into one transaction, each call answered by itself after
the commit: the price of a commit is shared, and an idle store answers at once. When one call of a
group fails, the group is rolled back and run again one by one, so that it harms only itself. The
thread keeps no reference to the driver, and waits in real time only.
"""

import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable

from tenure.clock import Clock
from tenure.drivers.sqlite.connection import Patience, Settings, close, connect
from tenure.drivers.sqlite.faults import Fault, fault_of, translated
from tenure.drivers.sqlite.fork import Gate
from tenure.drivers.sqlite.replies import Call, deliver
from tenure.drivers.sqlite.transaction import Transaction
from tenure.errors import RuntimeUnavailable, StoreUnavailable

__all__ = ["Clerk"]

_GROUP = 256
_SNAPSHOT = "SELECT 1 FROM sqlite_master LIMIT 1"
_logger = logging.getLogger("tenure.sqlite")


class Clerk:
    """Takes calls from any thread; its own thread starts with the first."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        clock: Clock,
        *,
        begin: str,
        committed: Callable[[], None] | None = None,
    ) -> None:
        self._name = name
        self._settings = settings
        self._clock = clock
        self._begin = begin
        self._committed = committed
        self._reading = begin == "BEGIN"
        self._gate = Gate()
        self._patience = Patience(settings.busy_timeout, self._gate)
        # Reentrant: the collector may drop an engine, and so stop its clerks, in any thread at any
        # point, also in this clerk's own while it holds this.
        self._ready = threading.Condition(threading.RLock())
        self._urgent: deque[Call] = deque()
        self._waiting: deque[Call] = deque()
        self._stopping = False
        self._finished = False
        self._ended: list[Callable[[], None]] = []
        self._thread: threading.Thread | None = None
        self._connection: sqlite3.Connection | None = None
        self._distrusted = False

    # --- from any thread ------------------------------------------------------------------------

    @property
    def used(self) -> bool:
        return self._thread is not None

    def submit(self, call: Call, *, urgent: bool = False) -> None:
        """Queue a call; an urgent one goes before all that wait."""
        with self._ready:
            if self._stopping:
                raise RuntimeUnavailable("the store is closed; open it again before using it")
            (self._urgent if urgent else self._waiting).append(call)
            if self._thread is None:
                # Not through the clock: this thread waits for the store, in real time.
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            else:
                self._ready.notify()

    def stop(self, ended: Callable[[], None] | None = None) -> None:
        """Let the thread end after what is queued; `ended` is called once it has. Legal twice."""
        with self._ready:
            self._stopping = True
            running = self._thread is not None and not self._finished
            if running and ended is not None:
                self._ended.append(ended)
            self._ready.notify()
        if not running and ended is not None:
            ended()

    def join(self) -> None:
        """Wait for the thread's last instructions; only once `ended` was called."""
        if self._thread is not None:
            self._thread.join()

    # --- in the clerk's own thread --------------------------------------------------------------

    def _run(self) -> None:
        try:
            while calls := self._take():
                self._serve(calls)
                del calls  # an idle clerk keeps nobody's results alive
        finally:
            self._disconnect()
            self._finish()

    def _finish(self) -> None:
        with self._ready:
            self._stopping = self._finished = True
            left = [*self._urgent, *self._waiting]  # only if this thread died of an error
        self._fail(left, StoreUnavailable("the thread of the store has ended; close and open it"))
        deliver(left)
        for ended in self._ended:
            ended()

    def _take(self) -> list[Call]:
        with self._ready:
            while not (self._urgent or self._waiting or self._stopping):
                self._ready.wait()
            calls: list[Call] = []
            for line in (self._urgent, self._waiting):
                while line and len(calls) < _GROUP:
                    calls.append(line.popleft())
            return calls

    def _serve(self, calls: list[Call]) -> None:
        calls = [call for call in calls if call.reply.wanted()]
        try:
            if self._connection is None:
                self._connection = connect(self._settings, self._patience, reading=self._reading)
        except Exception as error:  # whatever kept it from opening is every caller's answer
            self._fail(calls, translated(error, self._settings.path))
        else:
            if calls:
                self._group(self._connection, calls)
            if self._distrusted and not self._settings.in_memory:
                self._disconnect()  # the next call opens it anew
        deliver(calls)

    def _group(self, connection: sqlite3.Connection, calls: list[Call]) -> None:
        """Run the calls in one transaction, or, when one of them fails, in one each."""
        transaction = Transaction(connection, self._clock)
        begun = committing = False
        try:
            self._patience.enter(lambda: self._start(connection))
            begun = True
            try:
                for call in calls:
                    call.result = call.operation(transaction)
                transaction.finish()
                committing = True
                connection.execute("COMMIT")
            finally:
                self._undo(connection)  # what is committed is no transaction any more
                self._gate.leave()
        except Exception as error:  # whose it is, the second round tells
            unsure = committing and fault_of(error) is Fault.IO
            if begun and len(calls) > 1 and not unsure:
                for call in calls:
                    self._group(connection, [call])
                return
            self._fail(calls, translated(error, self._settings.path, at_commit=committing))
            if fault_of(error) in (Fault.IO, Fault.DAMAGED):
                self._distrusted = True
        else:
            if transaction.wakes and self._committed is not None:
                self._committed()

    def _start(self, connection: sqlite3.Connection) -> None:
        connection.execute(self._begin)
        if self._reading:
            # Takes the snapshot now, since this is what may find the log being recovered.
            try:
                connection.execute(_SNAPSHOT).fetchone()
            except sqlite3.Error:
                self._undo(connection)
                raise

    def _undo(self, connection: sqlite3.Connection) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._distrusted = True

    def _fail(self, calls: list[Call], error: Exception) -> None:
        for call in calls:
            call.result, call.error = None, error

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        self._distrusted = False
        if connection is not None:
            try:
                close(connection, self._gate)
            except sqlite3.Error:
                _logger.warning("closing the store failed", exc_info=True)
