"""The wall clocks of a run: that of the store, and those of the processes that use it.

A file has the clock of its machine: then all processes have that one. Beside a server each has its
own. It sets clocks and knows nothing of jobs.
"""

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager

import msgspec

from chaos.ledger import Ledger
from tests.servers.faketime import WallClock, library, wall_clocks

__all__ = ["Clocks", "Shift", "clocks_of"]


class Shift(msgspec.Struct, frozen=True):
    """The clock of the store was set: `at` on the monotonic clock, from one instant to another."""

    at: float
    before: float
    after: float

    @property
    def forward(self) -> bool:
        return self.after > self.before


class Clocks:
    """Of the store, and of each place of a process."""

    def __init__(self, store: WallClock, places: list[WallClock]) -> None:
        self._store = store
        self._places = places
        self._latest = 0.0  # how far ahead that of the store ever was

    def of_store(self) -> Mapping[str, str]:
        """What a process is started with that has the clock of the store."""
        return self._store.environment

    def of_place(self, place: int) -> Mapping[str, str]:
        """What a process at this place is started with."""
        return self._places[place].environment

    def set_store(self, offset: float, ledger: Ledger) -> None:
        at, wall, before = time.monotonic(), time.time(), self._store.offset
        self._store.set(offset)
        self._latest = max(self._latest, offset)
        shift = Shift(at, wall + before, wall + offset)
        ledger.note("clock", text=msgspec.json.encode(shift).decode())

    def set_place(self, place: int, offset: float) -> None:
        self._places[place].set(offset)

    def catch_up(self, ledger: Ledger) -> None:
        """As far ahead as ever, so that whatever was put off by an instant is due in the end."""
        self.set_store(self._latest, ledger)


@contextmanager
def clocks_of(places: int, *, shared: bool) -> Generator[Clocks | None]:
    """Clocks that can be set, one for all where it is shared; None without libfaketime."""
    found = library()
    if found is None:
        yield None
        return
    with wall_clocks(found, 1 if shared else 1 + places) as clocks:
        yield Clocks(clocks[0], clocks * places if shared else clocks[1:])
