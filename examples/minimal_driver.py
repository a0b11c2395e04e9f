"""A driver of one's own: a store in one JSON file, with the six required operations and no more.

It is for one process at a time, and small: each write writes the whole file. `docs/drivers.md`
explains it. Run this file to see a worker use it.
"""

import asyncio
import os
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec.structs import replace

import tenure
from tenure import Capability, Claim, ClaimRequest, Counts, Enqueued, Hold, Job, NewJob, Recorded
from tenure.driver import Driver, RecordItem
from tenure.outcomes import Completed, Failed, Retried, outcome_digest, settle
from tenure.states import TERMINAL, State
from tenure.types import content_digest


class Entry(msgspec.Struct, frozen=True):
    """A job, the content it was dispatched with, and the holds of its claims."""

    job: Job[bytes]
    content: bytes
    hold: Hold | None = None  # the current one, while the job is processing
    settled: tuple[Hold, str] | None = None  # the one whose outcome was recorded last


class JsonFileDriver(Driver):
    """Jobs in a JSON file. It keeps no time: what is delayed is due at once, no lease runs out."""

    capabilities = frozenset({Capability.RELEASE})  # for which `settle` does all there is to do

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: dict[str, Entry] = {}  # in the order of arrival, here and in the file

    async def open(self) -> None:
        if self._path.exists():
            stored = self._path.read_bytes()
            self._entries = msgspec.json.decode(stored, type=dict[str, Entry])

    async def close(self) -> None:
        """Nothing stays open."""

    async def enqueue(
        self, jobs: Sequence[NewJob], *, now: datetime | None = None
    ) -> Sequence[Enqueued]:
        now = now or datetime.now(UTC)
        fresh = {job.id: _stored(job, now) for job in jobs}
        known = {key: self._entries.get(key, entry) for key, entry in fresh.items()}
        answers = [
            Enqueued.CREATED if known[key].content == entry.content else Enqueued.DUPLICATE
            for key, entry in fresh.items()
        ]
        if Enqueued.DUPLICATE not in answers:
            self._write(known)
        return answers

    async def claim(self, request: ClaimRequest, *, now: datetime | None = None) -> Sequence[Claim]:
        now = now or datetime.now(UTC)
        taken: dict[str, Entry] = {}
        size = 0
        held: list[Entry] = []
        waiting: list[Entry] = []
        for queue in request.queues:
            here = [entry for entry in self._entries.values() if entry.job.queue == queue.name]
            here.sort(key=lambda entry: (-entry.job.priority, entry.job.run_at))
            held += [e for e in here if request.again and e.hold and e.hold.token == request.token]
            waiting += [entry for entry in here if entry.job.state is State.PENDING]
        room = {queue.name: queue.limit for queue in request.queues}
        for entry in held + waiting:
            size += len(entry.job.payload)
            if len(taken) >= request.limit or (taken and size > request.max_bytes):
                break
            if room[entry.job.queue] > 0:
                room[entry.job.queue] -= 1
                taken[entry.job.id] = entry if entry.hold else _started(entry, request.token, now)
        if taken:
            self._write(taken)
        return [_claim(entry, request.lease) for entry in taken.values()]

    async def record(
        self, items: Sequence[RecordItem], *, now: datetime | None = None
    ) -> Sequence[Recorded]:
        now = now or datetime.now(UTC)
        changed: dict[str, Entry] = {}
        answers: list[Recorded] = []
        for hold, outcome in items:
            entry = self._entries.get(hold.job_id)
            this = hold, outcome_digest(outcome)
            if entry is None:
                answers.append(Recorded.UNKNOWN)
            elif entry.hold != hold:
                answers.append(Recorded.REPEATED if entry.settled == this else Recorded.FENCED)
            else:
                job = _settled(entry.job, outcome, now)
                changed[job.id] = replace(entry, job=job, hold=None, settled=this)
                answers.append(Recorded.APPLIED)
        if changed:
            self._write(changed)
        return answers

    async def counts(self, *, now: datetime | None = None) -> Counts:
        jobs = [entry.job for entry in self._entries.values()]
        queues = sorted({job.queue for job in jobs})
        by_queue = {name: _counts([job for job in jobs if job.queue == name]) for name in queues}
        return replace(_counts(jobs), by_queue=by_queue)

    def _write(self, changed: dict[str, Entry]) -> None:
        """Store all of it or nothing: only the new file's renaming makes it true (I15)."""
        entries = self._entries | changed
        new = self._path.with_suffix(".new")
        try:
            with new.open("wb") as file:
                file.write(msgspec.json.encode(entries))
                os.fsync(file.fileno())
            new.replace(self._path)
        except OSError as error:
            raise tenure.StoreError(f"{self._path} cannot be written: {error}") from error
        self._entries = entries


def _stored(new: NewJob, now: datetime) -> Entry:
    job = Job(
        id=new.id,
        name=new.name,
        queue=new.queue,
        payload=new.payload,
        priority=new.priority,
        max_attempts=new.max_attempts,
        timeout=new.timeout,
        headers=new.headers,
        state=State.PENDING,
        attempt=0,
        stalls=0,
        serial=0,
        run_at=now,
        created_at=now,
        updated_at=now,
        finished_at=None,
        error=None,
        result=None,
        progress=None,
        cancel_requested=False,
    )
    return Entry(job=job, content=content_digest(new))


def _started(entry: Entry, token: str, now: datetime) -> Entry:
    job = entry.job
    serial, attempt = job.serial + 1, job.attempt + 1
    job = replace(job, state=State.PROCESSING, serial=serial, attempt=attempt, updated_at=now)
    return replace(entry, job=job, hold=Hold(job.id, serial, token))


def _claim(entry: Entry, lease: float) -> Claim:
    assert entry.hold is not None
    job = entry.job
    return Claim(job=job, hold=entry.hold, attempt=job.attempt, stalls=job.stalls, lease=lease)


def _settled(job: Job[bytes], outcome: tenure.Outcome, now: datetime) -> Job[bytes]:
    after = settle(outcome, attempt=job.attempt, stalls=job.stalls, cancel_requested=False)
    match outcome:
        case Completed(result=result):
            job = replace(job, result=result, error=None)
        case Failed(failure=failure) | Retried(failure=failure):
            job = replace(job, error=failure)
        case _:
            pass
    return replace(
        job,
        state=after.state,
        attempt=after.attempt,
        stalls=after.stalls,
        run_at=job.run_at if after.delay is None else now,
        updated_at=now,
        finished_at=now if after.state in TERMINAL else None,
    )


def _counts(jobs: Sequence[Job[bytes]]) -> Counts:
    states = [job.state for job in jobs]
    return Counts(
        pending=states.count(State.PENDING),
        processing=states.count(State.PROCESSING),
        completed=states.count(State.COMPLETED),
        failed=states.count(State.FAILED),
        cancelled=states.count(State.CANCELLED),
    )


# --- a worker on it -----------------------------------------------------------------------------


async def greet(name: str) -> str:
    if not name:
        raise ValueError("nobody to greet")
    return f"Hello, {name}!"


async def main(path: Path) -> None:
    """Dispatch four jobs, let a worker run them, and say what became of each."""
    ended: dict[str, str] = {}
    all_ended = asyncio.Event()

    def watch(event: tenure.Event) -> None:
        match event:
            case tenure.JobSettled(job=job, outcome=Completed(result=result)):
                ended[job.id] = f"completed with {(result or b'null').decode()}"
            case tenure.JobSettled(job=job, outcome=Failed(failure=failure)):
                ended[job.id] = f"failed: {failure.message}"
            case _:
                return
        if len(ended) == 4:
            all_ended.set()

    async with tenure.Queue(JsonFileDriver(path)) as queue:
        worker = tenure.Worker(queue, observers=[watch])
        worker.register("greet", greet)
        for id, name in (("first", "Ada"), ("second", "Grace"), ("third", "")):
            await queue.dispatch("greet", name, id=id)
        await queue.dispatch("wave", "Ada", id="fourth")
        async with worker.run():
            await all_ended.wait()
        for id in ("first", "second", "third", "fourth"):
            print(f"{id}: {ended[id]}")

    async with tenure.Queue(JsonFileDriver(path)) as queue:  # as another process would see it
        counts = await queue.counts()
        print(f"in the file: {counts.completed} completed, {counts.failed} failed")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder) / "jobs.json"))
