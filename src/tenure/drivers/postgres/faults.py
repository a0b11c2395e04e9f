"""What an error of the server or the connection means for the caller.

Pure: decides by SQLSTATE and by what is known about the moment. Translates; never hides.
"""

from tenure.errors import StoreError, StoreUnavailable

__all__ = ["TRANSIENT", "drops", "lost", "refused", "unreachable"]

# Serialization failure and deadlock: rolled back whole, and worth another try at once.
TRANSIENT = frozenset({"40001", "40P01"})

# The server refuses, having done nothing; it may take the same call later.
_LATER = frozenset(
    {
        "25006",  # read-only transaction: a standby, or a primary that was demoted
        "53000",
        "53100",  # disk full
        "53200",  # out of memory
        "53300",  # too many connections
        "55P03",  # a lock was not to be had within lock_timeout
        "57014",  # cancelled, by statement_timeout or by somebody
        "57P03",  # starting up or shutting down
        *TRANSIENT,
    }
)

# The server, or a pooler in front of it, ended the connection in the middle: after the commit or
# before it, who knows. A pooler reports what happened behind it as a protocol violation (08P01).
_CUT = ("08", "57P01", "57P02", "57P05", "58")

_REMEDIES = {
    "25006": "this server is read-only; name the primary in the URL, or wait for the failover",
    "53100": "the server has no room to write; free disk space",
    "53300": "the server takes no more connections; raise max_connections or lower pool_size",
    "57P03": "the server is starting up or shutting down",
}
_REFUSALS = {
    "28": "check user and password in the URL",
    "3D": "check the name of the database in the URL",
    "42501": "grant the user of the URL what it needs, or open the store once as its owner",
    "42P01": "the schema is incomplete; was it dropped while in use?",
    "42883": "the schema is incomplete; was it dropped while in use?",
    "3F": "the schema is gone; was it dropped while in use?",
}


def refused(sqlstate: str, message: str, *, sent: bool) -> StoreError:
    """The error for what the server answered; `sent`: to a statement, not to a connection."""
    if sqlstate in _LATER:
        remedy = _REMEDIES.get(sqlstate)
        return StoreUnavailable(
            f"PostgreSQL cannot do this now ({message})" + (f": {remedy}" if remedy else "")
        )
    if sqlstate.startswith(_CUT):
        return StoreUnavailable(f"PostgreSQL ended the connection ({message})", ambiguous=sent)
    remedy = next((text for code, text in _REFUSALS.items() if sqlstate.startswith(code)), None)
    return StoreError(
        f"PostgreSQL refused the call ({sqlstate}: {message})" + (f": {remedy}" if remedy else "")
    )


def drops(sqlstate: str) -> bool:
    """Whether the connection is of no more use: cut, or one to a server that is read-only."""
    return sqlstate == "25006" or sqlstate.startswith(_CUT)


def lost(reason: str) -> StoreUnavailable:
    """The error for a connection that broke, or a time limit that passed, under a statement."""
    return StoreUnavailable(
        f"the connection to PostgreSQL was lost before the answer came ({reason})", ambiguous=True
    )


def unreachable(reason: str) -> StoreUnavailable:
    """The error for a connection that could not be made."""
    return StoreUnavailable(
        f"PostgreSQL cannot be reached ({reason}); check host and port in the URL, and the server"
    )
