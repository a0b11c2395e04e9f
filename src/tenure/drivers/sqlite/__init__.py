"""The SQLite driver: one file, nothing to install, every guarantee."""

from tenure.drivers.sqlite.driver import SqliteDriver

__all__ = ["SqliteDriver"]
