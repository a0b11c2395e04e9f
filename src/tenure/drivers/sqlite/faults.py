"""What an error of SQLite means for the caller: definite, ambiguous, or the caller's own.

Translates; never hides. An exception that is not SQLite's passes through as it is.
"""

import sqlite3
from enum import Enum, auto

from tenure.errors import StoreError, StoreUnavailable

__all__ = ["Fault", "fault_of", "translated"]


class Fault(Enum):
    """The kinds of errors that are treated differently."""

    BUSY = auto()  # another connection holds a lock: wait and try again
    FULL = auto()  # no room; SQLite has rolled back
    IO = auto()  # the file system failed, or the file is not to be had
    DAMAGED = auto()  # not a database, or a broken one
    OTHER = auto()


_KINDS = {
    sqlite3.SQLITE_BUSY: Fault.BUSY,
    sqlite3.SQLITE_LOCKED: Fault.BUSY,
    sqlite3.SQLITE_PROTOCOL: Fault.BUSY,  # a race in opening a WAL, after many tries
    sqlite3.SQLITE_FULL: Fault.FULL,
    sqlite3.SQLITE_IOERR: Fault.IO,
    sqlite3.SQLITE_CANTOPEN: Fault.IO,
    sqlite3.SQLITE_CORRUPT: Fault.DAMAGED,
    sqlite3.SQLITE_NOTADB: Fault.DAMAGED,
}


def fault_of(error: BaseException) -> Fault:
    """The kind of an error; `OTHER` for what is not SQLite's."""
    if not isinstance(error, sqlite3.Error):
        return Fault.OTHER
    code = getattr(error, "sqlite_errorcode", 0)  # errors of the Python module have none
    return _KINDS.get(code & 0xFF, Fault.OTHER)


def translated(error: Exception, path: str, *, at_commit: bool = False) -> Exception:
    """The error to hand to a caller whose transaction was rolled back, or failed `at_commit`."""
    if not isinstance(error, sqlite3.Error):
        return error
    match fault_of(error):
        case Fault.BUSY:
            raised: StoreError = StoreUnavailable(
                f"another process holds the lock of {path!r} and did not give it up within the "
                f"busy timeout ({error}); look for a long transaction, or raise busy_timeout"
            )
        case Fault.FULL:
            raised = StoreUnavailable(
                f"there is no room to write to {path!r} ({error}); free disk space"
            )
        case Fault.IO:
            raised = StoreUnavailable(
                f"{path!r} cannot be read or written ({error}); check that its folder exists, its "
                "permissions and its disk",
                ambiguous=at_commit,
            )
        case Fault.DAMAGED:
            raised = StoreError(
                f"{path!r} is damaged or no SQLite database ({error}); restore it from a backup, "
                "or name another file"
            )
        case Fault.OTHER:
            raised = StoreError(f"SQLite refused the call on {path!r}: {error}")
    raised.__cause__ = error
    return raised
