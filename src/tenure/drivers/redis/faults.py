"""What an error reply or a lost connection means for the caller: definite or ambiguous.

Pure. A reply that is an error means that nothing was done: Redis refuses a command before it runs,
and a script at its first write (see lua/parts/store.lua).
"""

import re

from tenure.errors import StoreError, StoreUnavailable

__all__ = ["Lost", "Refused", "translated"]


class Refused(Exception):
    """The server answered with an error; `code` is its first word, or that of its cause."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        # Before version 7 the error of a command within a script stands inside of another one.
        cause = _WITHIN.search(text)
        self.code: str = cause[1] if cause else text.partition(" ")[0]


class Lost(Exception):
    """There was no answer; `sent` says whether the command may have been done."""

    def __init__(self, text: str, *, sent: bool) -> None:
        super().__init__(text)
        self.sent = sent


_REMEDIES = {
    "READONLY": "it is a replica now; the next call looks for the primary",
    "LOADING": "it is still loading its data",
    "BUSY": "a script of somebody is running for too long; see SCRIPT KILL",
    "MASTERDOWN": "it has lost its primary",
    "CLUSTERDOWN": "the cluster does not cover all slots",
    "TRYAGAIN": "the slot of this namespace is being moved to another node",
    "ASK": "the slot of this namespace is being moved to another node",
    "MOVED": "the nodes of the cluster do not agree on who has the slot of this namespace",
    "OOM": "raise maxmemory, prune, or delete jobs",
    "MISCONF": "it cannot save to its disk, and stop-writes-on-bgsave-error is set",
    "NOREPLICAS": "fewer replicas are connected than min-replicas-to-write asks for",
    "UNBLOCKED": "it has become a replica",
    # Of whoever is connected, not of the call: an outcome must wait until this is set right, since
    # it would be taken for one that cannot be stored.
    "NOAUTH": "put a user and a password into the URL",
    "WRONGPASS": "check user and password in the URL",
    "NOPERM": "allow the user all keys of the namespace, and the commands that scripts need",
}
_WITHIN = re.compile(rf"(?:^|[ -])({'|'.join(_REMEDIES)}) ")
_KILLED = "Script killed by user"  # possible before its first write only


def translated(error: Refused | Lost, server: str) -> StoreError:
    """The error to hand to the caller of a command."""
    if isinstance(error, Lost):
        what = "did not answer" if error.sent else "cannot be reached"
        return StoreUnavailable(f"{server} {what}: {error}", ambiguous=error.sent)
    if error.code in _REMEDIES:
        return StoreUnavailable(f"{server} refused the call: {error} ({_REMEDIES[error.code]})")
    if "max number of clients" in str(error):
        return StoreUnavailable(f"{server} takes no more connections; raise maxclients")
    if _KILLED in str(error):
        return StoreUnavailable(f"{server} refused the call: {error} (by SCRIPT KILL of somebody)")
    return StoreError(f"{server} refused the call: {error}")
