"""A caller's own connection, given as `within=`: what it is, and how it is used without harm.

Knows SQLAlchemy by its shape and imports it nowhere. Never commits, rolls back or closes anything
that it was given.
"""

from typing import Any

from tenure.errors import InvalidConfiguration

__all__ = ["library", "refused", "unwrapped"]


def library(connection: object, *known: str) -> str | None:
    """Which of the known libraries made the connection, by the modules of its classes."""
    for parent in type(connection).__mro__:
        name = parent.__module__.partition(".")[0]
        if name in known:
            return name
    return None


async def unwrapped(connection: Any) -> Any:
    """The connection of the database's own library, in the transaction that the caller is in.

    For SQLAlchemy's sessions and connections, sync and async, it begins the transaction that any
    statement through them would begin; anything else is returned as it is.
    """
    if library(connection, "sqlalchemy") is None:
        return connection
    if hasattr(connection, "exec_driver_sql"):
        begun = connection.exec_driver_sql("SELECT 1")
        if hasattr(begun, "__await__"):
            await begun
            raw = await connection.get_raw_connection()
            return raw.driver_connection
        return connection.connection.driver_connection
    if not hasattr(connection, "connection"):
        raise refused(connection, "must be a Session or a Connection of SQLAlchemy")
    bound = connection.connection()
    return await unwrapped(await bound if hasattr(bound, "__await__") else bound)


def refused(connection: object, rule: str) -> InvalidConfiguration:
    """The error for a connection that cannot be used; it is named by its type."""
    kind = type(connection)
    return InvalidConfiguration("within", f"{kind.__module__}.{kind.__qualname__}", rule)
