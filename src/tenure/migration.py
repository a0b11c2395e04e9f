"""Brings a store up to the version of this code, for programs that deploy.

Knows no store: what there is to do, its driver does when it opens.
"""

from tenure import drivers
from tenure.clock import Clock, SystemClock

__all__ = ["migrate"]


async def migrate(url: str, *, clock: Clock | None = None, **options: object) -> None:
    """Make the store that `url` names one that this version of tenure works with.

    `url` and `options` are those of `connect`. Creates the schema where there is none, upgrades an
    older one, and does nothing where it is as it should be: call it after each deployment, when the
    programs of an older tenure no longer use the store. Until then this tenure works with the
    schema of the version before; an even older one it refuses, and this is called first, while no
    program uses the store. Several calls at once wait for each other. Each step is done wholly or
    not at all, so that a call that was interrupted can be repeated.

    PostgreSQL needs a connection to the server itself: through a pooler (PgBouncer) it is refused,
    whether or not there is something to do, so that a deployment does not find out on the day that
    there is. Indexes are built without stopping the workers. A SQLite file is upgraded under its
    write lock. On Redis the version of the namespace is raised. Memory has nothing to upgrade.

    Raises `SchemaMismatch` for a store that is newer than this code, `StoreUnavailable` where the
    store cannot be reached, `InvalidConfiguration` for a wrong option and for a pooler.
    """
    driver = drivers.migrating(url, options, clock or SystemClock())()
    try:
        await driver.open()
    finally:
        await driver.close()
