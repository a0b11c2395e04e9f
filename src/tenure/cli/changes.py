"""Hears which Python files below a folder have changed.

`watchfiles` tells at once, where it is installed; else the times and sizes of the files are looked
at again and again, at a bounded cost. Reads no file, and changes nothing.
"""

import logging
import os
import threading
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Pipe
from pathlib import Path
from types import TracebackType
from typing import Self

from tenure._processes.terms import End
from tenure.clock import Clock

__all__ = ["Changes", "is_source"]

# Folders of programs that are not what somebody is writing.
_OTHERS = frozenset({"__pycache__", "node_modules", "site-packages"})
_MOST = 20_000  # files and folders that are looked at
_PAUSE = 0.5  # seconds between two looks
_SHARE = 10  # of a look's time is the least that passes until the next one
_SETTLE = 50  # milliseconds without a change until those before are told
_FIRST = 500  # milliseconds until what had changed before `watchfiles` listened is looked for

_logger = logging.getLogger("tenure.processes")

_Seen = Mapping[str, tuple[int, int, int]]


def is_source(path: str) -> bool:
    """Whether a path, relative to the folder, is a Python file of the program."""
    *folders, name = Path(path).parts
    return name.endswith(".py") and not any(_is_other(folder) for folder in (*folders, name))


def _is_other(name: str) -> bool:
    return name in _OTHERS or name.startswith(".")


class Changes:
    """Listens from when it is made until it is closed, in a thread of its own."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._stop = threading.Event()
        self._reader, self._writer = Pipe(duplex=False)
        self._lock = threading.Lock()
        self._names: set[str] = set()  # that have changed, and nobody was told of
        self._bounded = False
        self._before = self._look()
        self.by_looking: bool = not _is_there("watchfiles")
        self._thread = clock.spawn("tenure-changes", self._listen)

    @property
    def noticed(self) -> End:
        """What becomes readable with each change."""
        return self._reader

    def take(self) -> str:
        """What has changed since this was last asked, in words; empty for nothing."""
        with self._lock:
            while self._reader.poll():
                self._reader.recv_bytes()
            names, self._names = self._names, set()
        if not names:
            return ""
        first, *others = sorted(names)
        return f"{first}{f' and {len(others)} more' if others else ''} changed"

    def close(self) -> None:
        """Listen no more. Legal twice."""
        self._stop.set()
        self._thread.join()
        self._reader.close()
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- in the thread --------------------------------------------------------------------------

    def _listen(self) -> None:
        if not self.by_looking:
            try:
                self._hear()
            except OSError as error:  # as where the system has no more watches to give
                _logger.warning("changes cannot be listened for, so files are looked at: %s", error)
        pause = _PAUSE
        while not self._clock.block(self._stop, pause):
            began = self._clock.monotonic()
            self._compare()
            pause = max(_PAUSE, _SHARE * (self._clock.monotonic() - began))

    def _hear(self) -> None:
        """Until it is to stop. Raises `OSError` where the system does not tell of changes."""
        from watchfiles import watch

        compared = False
        for found in watch(
            self._folder,
            watch_filter=lambda _, path: is_source(os.path.relpath(path, self._folder)),
            stop_event=self._stop,
            step=_SETTLE,
            rust_timeout=_FIRST,
            yield_on_timeout=True,
            raise_interrupt=False,
        ):
            if found:
                self._tell({os.path.relpath(path, self._folder) for _, path in found})
            elif not compared:
                compared = True
                self._compare()

    def _compare(self) -> None:
        """Tell what is another than at the look before."""
        now, before = self._look(), self._before
        self._before = now
        self._tell({name for name in now.keys() | before if now.get(name) != before.get(name)})

    def _tell(self, names: set[str]) -> None:
        with self._lock:
            if names and not self._names:  # else there is a byte that nobody has read yet
                self._writer.send_bytes(b".")
            self._names |= names

    def _look(self) -> _Seen:
        """Times, sizes and numbers of the files, up to the bound."""
        seen: dict[str, tuple[int, int, int]] = {}
        for number, entry in enumerate(self._files(self._folder)):
            if number >= _MOST:
                if not self._bounded:
                    self._bounded = True
                    _logger.warning(
                        "%s has more than %d files: changes of the others are not seen; "
                        "pip install watchfiles",
                        *(self._folder, _MOST),
                    )
                break
            try:
                status = entry.stat()
            except OSError:  # it is gone: that is a change as well
                continue
            if entry.name.endswith(".py"):
                name = os.path.relpath(entry.path, self._folder)
                seen[name] = (status.st_mtime_ns, status.st_size, status.st_ino)
        return seen

    def _files(self, folder: Path | str) -> Iterator["os.DirEntry[str]"]:
        """All files below a folder, those of its own first; links to folders are not followed."""
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:  # gone, or closed to us
            return
        below: list[str] = []
        for entry in entries:
            if _is_other(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                below.append(entry.path)
            else:
                yield entry
        for path in below:
            yield from self._files(path)


def _is_there(package: str) -> bool:
    try:
        __import__(package)
    except ModuleNotFoundError:
        return False
    return True
