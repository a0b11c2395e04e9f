"""Where a server that refuses to run as root may run: another user, a folder that user reaches."""

import os
import pwd
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Account", "Installed", "account", "lent", "own_folder", "reachable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who a server runs as, as `subprocess` takes it: all None is ourselves."""

    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A folder of programs, and what they need beside it: folders below `base`."""

    programs: Path
    base: Path
    trees: tuple[Path, ...]


def account() -> Account:
    """Ourselves, unless we are root: PostgreSQL and PgBouncer refuse to run as root."""
    if os.getuid() != 0:
        return Account()
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(user=entry.pw_uid, group=entry.pw_gid, groups=())
    return Account(user=65534, group=65534, groups=())


@contextmanager
def own_folder(name: str, owner: Account) -> Generator[Path]:
    """A new folder of the account, removed afterwards.

    Not pytest's: those lie in a folder that is closed to others, and their paths are too long for a
    socket.
    """
    places = (tempfile.gettempdir(), "/tmp", "/var/tmp")
    base = next((place for place in places if reachable(Path(place), owner)), places[0])
    folder = Path(tempfile.mkdtemp(prefix=f"tenure-{name}-", dir=base))
    try:
        if owner.user is not None and owner.group is not None:
            os.chown(folder, owner.user, owner.group)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def reachable(path: Path, owner: Account) -> bool:
    """Whether the account may enter every folder on the way to it."""
    way = [path, *path.parents]
    return owner.user is None or all(each.stat().st_mode & 0o001 for each in way if each.is_dir())


def lent(installed: Installed, folder: Path, owner: Account) -> Path:
    """The programs where the account can run them: in a copy, if it cannot get at them."""
    if reachable(installed.programs, owner):
        return installed.programs
    copy = folder / "installed"
    for tree in installed.trees:
        shutil.copytree(tree, copy / tree.relative_to(installed.base), symlinks=True)
    return copy / installed.programs.relative_to(installed.base)
