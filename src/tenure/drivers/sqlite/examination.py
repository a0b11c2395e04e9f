"""Looks at a file, and at what it lies on, for what may lose jobs or keep others out.

Reads only, and makes no file.
"""

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tenure.drivers.findings import Finding, error, fine, warning
from tenure.drivers.sqlite.faults import translated

__all__ = ["examine", "filesystem_of", "version_finding"]

_BUG_FROM, _BUG_TO = (3, 7, 0), (3, 51, 2)  # a reset of the log in a race with a checkpoint
_REMOTE = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "fuse.sshfs",
        "ceph",
        "glusterfs",
        "lustre",
        "afs",
    }
)
_LITTLE = 0.02  # of the disk


def examine(path: str, *, mounts: Path = Path("/proc/self/mounts")) -> Iterator[Finding]:
    """What there is to say of a file. Raises `StoreError` where it cannot be read.

    `mounts` is where the system lists its file systems.
    """
    yield version_finding(sqlite3.sqlite_version_info)
    file = Path(path).absolute()
    yield filesystem_finding(filesystem_of(file.parent, _text(mounts)))
    if not file.exists():
        yield warning("file", f"there is no {path!r} yet", "it is made when it is first used")
        return
    yield from _rights(file)
    yield _room(file)
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True)) as connection:
            yield _journal(str(connection.execute("PRAGMA journal_mode").fetchone()[0]))
    except sqlite3.Error as failure:
        raise translated(failure, path) from failure


def version_finding(version: tuple[int, ...]) -> Finding:
    """The library's version, and the known fault that it may have."""
    text = ".".join(str(number) for number in version)
    if _BUG_FROM <= version[:3] <= _BUG_TO:
        return warning(
            "sqlite",
            f"SQLite {text} has a rare fault that can damage a file (the WAL-reset bug)",
            "use a Python or a system library with SQLite 3.51.3 or later, and keep backups",
        )
    return fine("sqlite", f"SQLite {text}")


def _text(mounts: Path) -> str:
    try:
        return mounts.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def filesystem_of(folder: Path, mounts: str) -> str:
    """The kind of file system that a folder is on; empty where the system does not tell."""
    found, longest = "", -1
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        point = Path(fields[1].replace("\\040", " "))
        if (folder == point or point in folder.parents) and len(point.parts) >= longest:
            found, longest = fields[2], len(point.parts)
    return found


def filesystem_finding(kind: str) -> Finding:
    """A network's file system breaks the locks that the file's safety rests on."""
    if kind in _REMOTE:
        return error(
            "file system",
            f"the file is on a network ({kind}), where locks and shared memory do not hold",
            "put it on a local disk; for several machines use PostgreSQL or Redis",
        )
    return fine("file system", kind or "not known")


def _rights(file: Path) -> Iterator[Finding]:
    missing = [str(p) for p in (file, file.parent) if not os.access(p, os.R_OK | os.W_OK)]
    if missing:
        yield error(
            "permissions",
            f"this user may not read and write {', '.join(missing)}",
            "give it the file and its folder, in which SQLite keeps two more files",
        )
    elif stat.S_IMODE(file.stat().st_mode) & stat.S_IROTH:
        yield warning(
            "permissions",
            "every user of this machine may read the file, and so all payloads",
            "chmod o= on the file and its folder, or encrypt payloads",
        )
    else:
        yield fine("permissions", "readable and writable for this user, closed to others")


def _room(file: Path) -> Finding:
    usage = shutil.disk_usage(file.parent)
    free = f"{usage.free / 1024**3:,.1f} GiB free"
    if usage.free < _LITTLE * usage.total:
        return warning("disk", f"only {free}", "free disk space, or prune with a lower retention")
    return fine("disk", free)


def _journal(mode: str) -> Finding:
    if mode == "wal":
        return fine("journal", "a write-ahead log")
    return error(
        "journal",
        f"the file has journal mode {mode!r}, in which readers and writers keep each other out",
        "let tenure open it once, on a local disk, and let nobody else set another mode",
    )
