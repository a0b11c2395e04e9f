"""One contestant on an empty store: its processes, its ledger, and what it did before.

A stage is set anew for every measurement.
"""

import tempfile
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import processes
from benchmarks.contestants import Contestant
from benchmarks.options import Options
from benchmarks.processes import ClientProcess, WorkerProcess
from benchmarks.protocol.client import Setting
from benchmarks.protocol.ledger import Ledger
from benchmarks.stores import Place, Store

__all__ = ["Contest", "Stage"]


class Stage:
    """Starts the processes of one measurement."""

    def __init__(self, contest: "Contest", url: str, folder: Path) -> None:
        self.contest = contest
        self.url = url
        self._path = str(folder / "ledger")
        self._log = folder / "printed"
        self.ledger = Ledger(self._path)

    @contextmanager
    def client(self) -> Generator[ClientProcess]:
        """A client that has opened the store."""
        with processes.client(*self._arguments(1, traced=False)) as client:
            self.contest.bulk = client.hear()["bulk"]
            yield client

    def worker(
        self, concurrency: int, *, traced: bool = False
    ) -> AbstractContextManager[WorkerProcess]:
        """A worker that is ready to start."""
        return processes.worker(*self._arguments(concurrency, traced=traced))

    def setting(self, concurrency: int, *, traced: bool = False) -> Setting:
        """What a process of this stage is told."""
        contest = self.contest
        return Setting(
            store=contest.store.kind,
            url=self.url,
            durability=contest.store.durability,
            ledger=self._path,
            concurrency=contest.who.slots or concurrency,
            traced=traced,
        )

    def _arguments(
        self, concurrency: int, *, traced: bool
    ) -> tuple[str, Path, Setting, Path, float]:
        contest, patience = self.contest, self.contest.options.patience
        setting = self.setting(concurrency, traced=traced)
        return contest.who.name, contest.python, setting, self._log, patience


@dataclass(kw_only=True)
class Contest:
    """One contestant on one kind of store, through all rounds.

    `jobs` is how many jobs of a handler it does in some seconds, `rates` what it did last, both by
    name of the handler or measurement. `broken` is why it is not measured any more.
    """

    who: Contestant
    python: Path
    store: Store
    place: Place
    options: Options
    bulk: bool = True
    jobs: dict[str, int] = field(default_factory=dict[str, int])
    rates: dict[str, float] = field(default_factory=dict[str, float])
    broken: str = ""

    @contextmanager
    def stage(self) -> Generator[Stage]:
        """An empty store."""
        with self.folder() as folder:
            url = self.place.fresh(folder)
            stage = Stage(self, url, folder)
            try:
                yield stage
            finally:
                stage.ledger.close()
                self.place.forget(url)

    @contextmanager
    def folder(self) -> Generator[Path]:
        """A folder on the disk that is measured."""
        with tempfile.TemporaryDirectory(prefix="tenure-bench-", dir=self.options.folder) as name:
            yield Path(name)
