"""A small disk in memory for the files of a store, and how it is filled. Root can mount one."""

import os
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.servers.places import account, own_folder

__all__ = ["Disk", "small_disk"]

PIECE = 1 << 16
SPARE = 1 << 20  # bytes that are left by making the disk smaller, and filled by writing


class Disk:
    """A mounted one: as large as was said, except while it is filled."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.folder = folder
        self._size = megabytes << 20

    def fill(self, seconds: float) -> None:
        """Leave not a byte for so long."""
        path = self.folder / "filler"
        file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            end = time.monotonic() + seconds
            while time.monotonic() < end:  # what others free meanwhile is taken, too
                self._resize(self._used() + SPARE)
                with suppress(OSError):
                    while True:
                        os.write(file, bytes(PIECE))
                time.sleep(0.05)
        finally:
            os.close(file)
            path.unlink()
            self._resize(self._size)

    def _used(self) -> int:
        found = os.statvfs(self.folder)
        return (found.f_blocks - found.f_bfree) * found.f_frsize

    def _resize(self, size: int) -> None:
        """Where more is in use meanwhile, the size stays as it is."""
        command = ["mount", "-o", f"remount,size={size}", str(self.folder)]
        subprocess.run(command, capture_output=True, check=False)


@contextmanager
def small_disk(megabytes: int) -> Generator[tuple[Path, Disk | None]]:
    """A folder for the files of a store; it is a disk of its own where that can be had."""
    owner = account()
    with own_folder("chaos", owner) as folder:
        ours = "" if owner.user is None else f",uid={owner.user},gid={owner.group}"
        options = f"size={megabytes}m,mode=700{ours}"
        command = ["mount", "-t", "tmpfs", "-o", options, "tenure-chaos", str(folder)]
        try:
            mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
        except OSError:
            mounted = False
        try:
            yield folder, Disk(folder, megabytes) if mounted else None
        finally:
            if mounted:
                subprocess.run(["umount", "--lazy", str(folder)], check=False)
