"""Moving a store: all that is in it becomes lines, and lines become a store again.

What a line is, and which are refused, is in `_export`; where they are written and read is
the caller's. Nothing is repeated here: an import may be run again from its beginning.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from tenure._export.format import Entry, PausedQueue
from tenure._export.lines import BadLine, ExportWriter, read_export
from tenure.driver import Capability, Driver
from tenure.errors import QueueError, Unsupported
from tenure.moved import Restored, StoredJob, size_of
from tenure.queue import Queue
from tenure.standing import Limit, ScheduleRecord
from tenure.types import Held

__all__ = [
    "Contents",
    "Exported",
    "ImportConflict",
    "Imported",
    "Unwritten",
    "contents_of",
    "export_store",
    "import_store",
]

_PAGE = 500  # jobs
_BATCH = 500
_BATCH_BYTES = 4 * 1024 * 1024


class Unwritten(Struct, frozen=True, kw_only=True):
    """What is in the store and not in the export, and why: its record is damaged."""

    kind: str
    id: str
    reason: str


class Exported(Struct, frozen=True, kw_only=True):
    """What an export has.

    `states` counts its jobs by their state. `damaged` are the ids of jobs some part of whose record
    could not be read and has a stand-in, `unwritten` is what had to be left out altogether.
    """

    states: dict[str, int]
    schedules: int
    limits: int
    paused: int
    damaged: tuple[str, ...]
    unwritten: tuple[Unwritten, ...]

    @property
    def jobs(self) -> int:
        return sum(self.states.values())


class Contents(Struct, frozen=True, kw_only=True):
    """What an export that is sound from its first to its last line has beside its jobs."""

    states: dict[str, int]
    schedules: tuple[ScheduleRecord, ...]
    limits: tuple[Limit, ...]
    paused: tuple[str, ...]

    @property
    def jobs(self) -> int:
        return sum(self.states.values())


class Imported(Struct, frozen=True, kw_only=True):
    """What an import did: how much was stored, and how much was known already and left as it is."""

    stored: int
    known: int
    schedules_stored: int
    schedules_known: int
    limits_stored: int
    limits_known: int


class ImportConflict(QueueError):
    """Something of an export cannot stand beside what is in the store.

    `done` is the number of jobs that this import had stored, or had found to be known, before.
    """

    def __init__(self, what: str, done: int) -> None:
        super().__init__(what)
        self.done = done


# --- out ----------------------------------------------------------------------------------------


async def export_store(
    queue: Queue,
    write: Callable[[bytes], object],
    *,
    store: str,
    told: Callable[[int], object],
) -> Exported:
    """Write all that is in the store, line by line; `store` is its kind, for the header.

    What stands beside the jobs is read first: a schedule that fires meanwhile has its tick in the
    export at most as a job. `told` is called after each page with the number of jobs so far.
    Raises `Unsupported` by store.
    """
    driver = await _able(queue)
    export = _Export(write)
    write(export.writer.header(store, queue.clock.now()))
    paused = (await driver.counts()).paused
    for name in sorted(paused):
        export.add("paused queue", name, PausedQueue(name))
    for limit in await driver.limits() if Capability.LIMITS in driver.capabilities else ():
        export.add("limit", limit.key, limit)
    if Capability.SCHEDULES in driver.capabilities:
        for schedule in (await driver.schedules()).items:
            export.add("schedule", schedule.id, schedule)
    cursor: str | None = None
    while True:
        page = await driver.dump(cursor, _PAGE)
        for stored in page.jobs:
            export.add("job", stored.job.id, stored)
        for job_id in page.unreadable:
            export.leave_out("job", job_id, "its record cannot be read")
        told(sum(export.states.values()))
        cursor = page.cursor
        if cursor is None:
            break
    write(export.writer.end())
    return export.summary()


class _Export:
    """What has been written so far."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self.writer = ExportWriter()
        self.states: Counter[str] = Counter()
        self._write = write
        self._others: Counter[str] = Counter()
        self._damaged: list[str] = []
        self._unwritten: list[Unwritten] = []

    def add(self, kind: str, id: str, entry: Entry) -> None:
        try:
            self._write(self.writer.line(entry))
        except BadLine as error:
            self.leave_out(kind, id, f"{error.path} {error.rule}")
            return
        if isinstance(entry, StoredJob):
            self.states[entry.job.state.value] += 1
            if entry.damage is not None:
                self._damaged.append(id)
        else:
            self._others[kind] += 1

    def leave_out(self, kind: str, id: str, reason: str) -> None:
        self._unwritten.append(Unwritten(kind=kind, id=id, reason=reason))

    def summary(self) -> Exported:
        return Exported(
            states=dict(self.states),
            schedules=self._others["schedule"],
            limits=self._others["limit"],
            paused=self._others["paused queue"],
            damaged=tuple(self._damaged),
            unwritten=tuple(self._unwritten),
        )


# --- in -----------------------------------------------------------------------------------------


def contents_of(lines: Iterable[bytes]) -> Contents:
    """Read an export to its end. Raises `BadLine` where it is not sound."""
    states: Counter[str] = Counter()
    schedules: dict[str, ScheduleRecord] = {}
    limits: dict[str, Limit] = {}
    paused: set[str] = set()
    for number, entry in read_export(lines):
        match entry:
            case StoredJob():
                states[entry.job.state.value] += 1
            case ScheduleRecord():
                _once(number, "$.id", entry.id in schedules)
                schedules[entry.id] = entry
            case Limit():
                _once(number, "$.key", entry.key in limits)
                limits[entry.key] = entry
            case PausedQueue():
                _once(number, "$.queue", entry.queue in paused)
                paused.add(entry.queue)
    return Contents(
        states=dict(states),
        schedules=tuple(schedules.values()),
        limits=tuple(limits.values()),
        paused=tuple(sorted(paused)),
    )


def _once(number: int, path: str, known: bool) -> None:
    if known:
        raise BadLine(number, path, "stands in an earlier line already")


async def import_store(
    queue: Queue,
    contents: Contents,
    lines: Iterable[bytes],
    *,
    told: Callable[[int], object],
) -> Imported:
    """Take in an export whose `contents_of` these are, in batches that are stored all or none.

    What is in the store already is left as it is. Queues are paused and limits put before the jobs
    come, and schedules stand when all jobs are there. `told` is called after each batch with the
    number of jobs so far. Raises `ImportConflict`, before anything is written where it is about a
    limit or a schedule; `Unsupported` by store.
    """
    driver = await _able(queue)
    await _check_schedules(driver, contents.schedules)
    fresh_limits = await _fresh_limits(driver, contents.limits)
    for name in contents.paused:
        await driver.pause(name, True)
    for limit in fresh_limits:
        await driver.put_limit(limit)
    known = done = 0
    for batch in _batches(lines):
        answers = await _restored(driver, batch, done)
        known += answers.count(Restored.KNOWN)
        done += len(batch)
        told(done)
    schedules: Sequence[Restored] = ()
    if contents.schedules:
        schedules = await driver.restore_schedules(contents.schedules)
        _expect_no_other(contents.schedules, schedules, done)
    return Imported(
        stored=done - known,
        known=known,
        schedules_stored=list(schedules).count(Restored.STORED),
        schedules_known=list(schedules).count(Restored.KNOWN),
        limits_stored=len(fresh_limits),
        limits_known=len(contents.limits) - len(fresh_limits),
    )


async def _able(queue: Queue) -> Driver:
    driver = await queue.driver()
    if Capability.RESTORE not in driver.capabilities:
        raise Unsupported("dump")
    return driver


def _batches(lines: Iterable[bytes]) -> Iterator[list[tuple[int, StoredJob]]]:
    """Jobs with their lines, in their order: some at once, not too large, and no id twice."""
    batch: list[tuple[int, StoredJob]] = []
    ids: set[str] = set()
    size = 0
    for number, entry in read_export(lines):
        if not isinstance(entry, StoredJob):
            continue
        job = entry.job
        if batch and (len(batch) == _BATCH or size + size_of(job) > _BATCH_BYTES or job.id in ids):
            yield batch
            batch, size = [], 0
            ids.clear()
        batch.append((number, entry))
        ids.add(job.id)
        size += size_of(job)
    if batch:
        yield batch


async def _restored(
    driver: Driver, batch: Sequence[tuple[int, StoredJob]], done: int
) -> list[Restored | Held]:
    answers = list(await driver.restore([stored for _, stored in batch]))
    for (number, stored), answer in zip(batch, answers, strict=True):
        where = f"line {number}: the job {stored.job.id!r}"
        match answer:
            case Held(holder=holder):
                key = "" if stored.job.unique is None else stored.job.unique.key
                held = f"{where} cannot hold the unique key {key!r}, which the job {holder!r} holds"
                raise ImportConflict(held, done)
            case Restored.DUPLICATE:
                raise ImportConflict(f"{where} is in the store with other content", done)
            case _:
                pass
    return answers


async def _fresh_limits(driver: Driver, limits: Sequence[Limit]) -> list[Limit]:
    """Those that are not in the store."""
    if not limits:
        return []
    known = {limit.key: limit for limit in await driver.limits()}
    for limit in limits:
        if known.get(limit.key, limit) != limit:
            raise ImportConflict(f"the limit {limit.key!r} is in the store with other bounds", 0)
    return [limit for limit in limits if limit.key not in known]


async def _check_schedules(driver: Driver, schedules: Sequence[ScheduleRecord]) -> None:
    if not schedules:
        return
    known = {each.id: each.definition for each in (await driver.schedules()).items}
    answers = [
        Restored.DUPLICATE
        if known.get(each.id, each.definition) != each.definition
        else Restored.STORED
        for each in schedules
    ]
    _expect_no_other(schedules, answers, 0)


def _expect_no_other(
    schedules: Sequence[ScheduleRecord], answers: Sequence[Restored], done: int
) -> None:
    for each, answer in zip(schedules, answers, strict=True):
        if answer is Restored.DUPLICATE:
            what = f"the schedule {each.id!r} is in the store with another definition"
            raise ImportConflict(what, done)
