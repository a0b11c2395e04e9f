"""Lifelines: for each worker a file in a folder beside the database, locked while it lives.

The system gives the lock up with the worker's process, however that ends, so whoever gets the lock
of a file that is there knows that its worker is gone. The lock is of flock's kind: it belongs to
the opened file, not to the process, so that a second look in the same process is refused like any
other, and a child that closes its copy takes nothing from its parent.

A file names the worker and the boot of the system on which it was locked, since only there its lock
means anything: of a file from elsewhere, over whatever network, nothing is concluded. Where any of
this cannot be had there is no lifeline. The database file itself is never opened here.
"""

import errno
import logging
import os
import stat
from contextlib import suppress
from datetime import datetime
from urllib.parse import quote, unquote
from weakref import finalize

from tenure.clock import Clock
from tenure.drivers.sqlite import leases
from tenure.drivers.sqlite.boot import boot_id
from tenure.drivers.sqlite.engine import Engine
from tenure.drivers.sqlite.fork import OwnFile

__all__ = ["Lifelines"]

_NEW = ".new"
_LEFT_AFTER = 86_400.0  # seconds after which a file of which nothing can be concluded is removed
_TRIES = 10
_AT_ONCE: int = getattr(os, "O_NONBLOCK", 0)
_logger = logging.getLogger("tenure.sqlite")


class Lifelines:
    """The folder of one database. `path` is None where there is no file."""

    def __init__(self, path: str | None, clock: Clock) -> None:
        # Beside the file itself, as SQLite's own log, also when a symbolic link leads to it.
        self._database = None if path is None else os.path.realpath(path)
        self._folder = f"{self._database}-workers"
        self._boot = boot_id()
        self._clock = clock
        self._told = False

    def tie(self, worker: str) -> "Lifeline | None":
        """A lifeline for the worker; None, and the reason in the log once, where none can be."""
        if self._database is None or self._boot is None:
            return None
        try:
            return self._locked(self._database, f"{quote(worker, safe='')}@{self._boot}")
        except OSError as error:
            if not self._told:
                _logger.warning(
                    "no file can be locked beside the database, so the jobs of a worker that is "
                    "killed come back when their leases run out, not earlier",
                    extra={"folder": self._folder, "reason": str(error)},
                )
                self._told = True
            return None

    def _locked(self, database: str, name: str) -> "Lifeline":
        """A new file, locked, under its name; one that is seen under it is locked already."""
        status = os.stat(database)
        path = os.path.join(self._folder, name)
        file = self._new(path + _NEW, status)
        try:
            _like(file.descriptor, status, status.st_mode & 0o666)
            _lock(file)
            if (second := _takes(path + _NEW)) is not None:
                second.close()
                raise OSError(errno.ENOLCK, "a lock on a file here keeps nobody out")
            os.rename(path + _NEW, path)
        except BaseException:
            _unlink(path + _NEW)
            file.close()
            raise
        return Lifeline(file, path)

    def _new(self, path: str, status: os.stat_result) -> OwnFile:
        for _ in range(_TRIES):
            self._make_folder(status)
            with suppress(FileNotFoundError):  # the last worker has taken the folder away meanwhile
                return OwnFile(path, os.O_RDWR | os.O_CREAT, status.st_mode & 0o666)
        raise OSError(errno.ENOENT, "the folder is taken away again and again")

    def _make_folder(self, status: os.stat_result) -> None:
        """Made for whom the database is for."""
        try:
            os.mkdir(self._folder)
        except FileExistsError:
            return
        mode = status.st_mode & 0o666
        _like(self._folder, status, mode | (mode & 0o444) >> 2)

    async def shorten(self, engine: Engine, now: datetime | None) -> float | None:
        """See `Driver.shorten`. While nobody is gone, the store is not called at all."""
        gone = self._gone()
        if not gone:
            return None
        holding = {one.worker for one in gone}  # where it is not learnt
        try:
            holding = await engine.write(leases.shorten([one.worker for one in gone], now))
        finally:
            # A file stays until nothing is left to be reclaimed, whoever dies meanwhile.
            for one in gone:
                if one.worker in holding:
                    one.release()
                else:
                    one.remove()
        return 0.0 if holding else None

    def _gone(self) -> "list[_Gone]":
        """The workers whose lifeline is cut, each kept from the eyes of others until released."""
        try:
            names = os.listdir(self._folder)
        except OSError:
            return []  # no worker has ever been here, or this process is not to know
        found: list[_Gone] = []
        for name in names:
            worker, _, boot = name.rpartition("@")
            path = os.path.join(self._folder, name)
            if boot != self._boot:
                self._tidy(path)
            elif (file := _takes(path)) is not None:
                found.append(_Gone(unquote(worker), path, file))
        return found

    def _tidy(self, path: str) -> None:
        """Remove what was left by another boot, or between the making of a file and its name."""
        try:
            if self._clock.now().timestamp() - os.stat(path).st_mtime >= _LEFT_AFTER:
                file = _takes(path)
                if file is not None:
                    _Gone("", path, file).remove()
        except OSError:
            return  # gone already, or somebody else's


class Lifeline:
    """See `tenure.Lifeline`. One that is dropped without `close` is given up."""

    def __init__(self, file: OwnFile, path: str) -> None:
        self._file = file
        self._give_up = finalize(self, _give_up, file, path)
        self._give_up.atexit = False  # the end of the process is for the system to show

    async def close(self) -> None:
        self._give_up()

    async def cut(self) -> None:
        if self._give_up.detach() is not None:
            self._file.close()


class _Gone:
    """A worker whose process has ended, while this process holds its lock."""

    def __init__(self, worker: str, path: str, file: OwnFile) -> None:
        self.worker = worker
        self._path = path
        self._file = file

    def release(self) -> None:
        """Let the others see it as well."""
        self._file.close()

    def remove(self) -> None:
        """Forget it; where that is not allowed here, it is looked at in vain until somebody may."""
        try:
            _unlink(self._path)
        except OSError:
            return
        finally:
            self._file.close()


def _lock(file: OwnFile) -> None:
    """Lock a file, or raise OSError, at once. Not called where there is no such module."""
    from fcntl import LOCK_EX, LOCK_NB, flock

    flock(file.descriptor, LOCK_EX | LOCK_NB)


def _takes(path: str) -> OwnFile | None:
    """The file, when its lock was free, which is held now; None for one whose lock is held.

    What is no file has been put there by somebody else, and says nothing: a folder can be locked
    too, and the opening of a pipe could wait for ever.
    """
    try:
        file = OwnFile(path, os.O_RDONLY | _AT_ONCE)
    except OSError:
        return None  # removed meanwhile, or not for this process
    try:
        if not stat.S_ISREG(os.fstat(file.descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a file")
        _lock(file)
        # It may have been removed, and made anew, between the opening and the lock.
        if os.path.samestat(os.fstat(file.descriptor), os.stat(path)):
            return file
    except OSError:
        pass  # held, removed, or no locks here: in any case nobody is known to be gone
    file.close()
    return None


def _like(file: str | int, status: os.stat_result, mode: int) -> None:
    """Give a file the rights of the database, and where we may, its owner, as SQLite does."""
    os.chmod(file, mode)
    if os.geteuid() == 0:
        os.chown(file, status.st_uid, status.st_gid)


def _give_up(file: OwnFile, path: str) -> None:
    if file.inherited:
        return
    try:
        _unlink(path)
    except OSError:
        # While the file is there its lock must be held: this worker is not gone.
        _logger.warning("a lifeline cannot be removed", extra={"path": path}, exc_info=True)
    else:
        file.close()


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    try:
        os.rmdir(os.path.dirname(path))
    except OSError:
        return  # others are there
