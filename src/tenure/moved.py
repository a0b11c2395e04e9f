"""What moves from one store to another: whole jobs, how a store gives them out and takes them in.

Values, and two rules that all stores keep alike: what becomes of a job that was being processed,
and how much one page of a dump holds.
"""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from tenure.history import PastAttempt
from tenure.states import State
from tenure.types import Job

__all__ = [
    "DUMP_BYTES",
    "Dump",
    "DumpPlace",
    "KeyHold",
    "Restored",
    "StoredJob",
    "at_rest",
    "size_of",
]

DUMP_BYTES = 8 * 1024 * 1024
"""How many bytes of payload and result one page of a dump has at most, beside its first job."""


class KeyHold(Struct, frozen=True, kw_only=True):
    """That a job holds its unique key, and until when; None: until it ends, or starts."""

    until: datetime | None = None


class StoredJob(Struct, frozen=True, kw_only=True):
    """A job with all that a store keeps of it, but for its hold and the one settled last.

    `content` is the `content_digest` of its dispatch. `key` is None where it does not hold its
    unique key, or has none. `history` is as in `Driver.history`. `damage` tells what of the stored
    record could not be read and is a stand-in here; a store that takes the job in ignores it.
    """

    job: Job[bytes]
    content: bytes
    key: KeyHold | None = None
    history: tuple[PastAttempt, ...] = ()
    damage: str | None = None


class Dump(Struct, frozen=True, kw_only=True):
    """A page of whole jobs, oldest arrival first, and the cursor that continues after them.

    `cursor` is None at the end. `unreadable` are the ids of those jobs in the place of this page of
    whose record nothing can be told.
    """

    jobs: tuple[StoredJob, ...]
    cursor: str | None
    unreadable: tuple[str, ...] = ()


class Restored(StrEnum):
    """The answer of `restore` for one job, and of `restore_schedules` for one schedule.

    `STORED`: it was not there, and is now. `KNOWN`: it was there with the same content, whatever
    has become of it since; it is left as it is. `DUPLICATE`: it is there with other content.
    """

    STORED = "stored"
    KNOWN = "known"
    DUPLICATE = "duplicate"


class DumpPlace(Struct, frozen=True):
    """How far a dump has come: the number of arrival after which it goes on, and the last of all.

    The last is fixed by the first page, so that a dump comes to its end whatever arrives meanwhile.
    """

    after: int
    last: int

    def cursor(self) -> str:
        """The place as text."""
        return f"{self.after}:{self.last}"

    @staticmethod
    def read(cursor: str) -> "DumpPlace | None":
        """The place in a cursor; None where it is none."""
        after, colon, last = cursor.partition(":")
        if colon and all(t.isascii() and t.isdigit() and len(t) < 19 for t in (after, last)):
            return DumpPlace(int(after), int(last))
        return None


def at_rest(stored: StoredJob) -> StoredJob:
    """The job as another store takes it in: one that is processing is given back, unstarted.

    It is pending with the serial after that of its hold, so that nothing that its worker does later
    is about it; its start is given back, its stalls and due time stay, and so does a wish to cancel
    it, which is fulfilled when it is next claimed.
    """
    job = stored.job
    if job.state is not State.PROCESSING:
        return stored
    given_back = replace(
        job, state=State.PENDING, serial=job.serial + 1, attempt=max(job.attempt - 1, 0)
    )
    return replace(stored, job=given_back)


def size_of(job: Job[bytes]) -> int:
    """The bytes of payload and result."""
    return len(job.payload) + len(job.result or b"")
