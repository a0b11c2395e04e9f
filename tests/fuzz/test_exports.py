"""Any export that was damaged is refused with its place and nothing stored; any other is equal."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure._export.lines import BadLine, ExportWriter, read_export
from tenure.driver import Driver
from tenure.drivers.memory import MemoryDriver
from tenure.history import PastAttempt
from tenure.moved import KeyHold, StoredJob, at_rest
from tenure.moving import ImportConflict, contents_of, import_store
from tenure.outcomes import Failure
from tenure.queue import Queue
from tenure.schedules import Definition, written_definition
from tenure.standing import Limit, Missed, ScheduleRecord
from tenure.states import State
from tenure.types import Job, UniqueKey

_T0 = datetime(2030, 1, 1, tzinfo=UTC)
_TIMES = st.integers(0, 10**15).map(lambda n: _T0 - timedelta(microseconds=n % 10**13))
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
_NUMBERS = st.integers(0, 2_000_000_000)
_DATA = st.binary(max_size=30) | _TEXTS.map(str.encode)
_FAILURES = st.builds(
    Failure, kind=_TEXTS, message=_TEXTS, trace=_TEXTS, at=_TIMES, attempt=st.integers(0, 99)
)
_ENDED = [State.COMPLETED, State.FAILED, State.CANCELLED]


@st.composite
def _stored(draw: Callable[[st.SearchStrategy[Any]], Any]) -> StoredJob:
    """A job as a store may give it out."""
    state = draw(st.sampled_from([State.PENDING, State.PROCESSING, *_ENDED]))
    serials = sorted(draw(st.sets(st.integers(1, 1000), max_size=3)))
    key = draw(st.none() | _NAMES)
    throttle = key is not None and draw(st.booleans())
    holds = throttle or (key is not None and state not in _ENDED)
    least = 1 if state is State.PROCESSING else 0
    job = Job(
        id=draw(_NAMES),
        name=draw(_NAMES),
        queue=draw(_NAMES),
        payload=draw(_DATA),
        priority=draw(st.integers(-100, 100)),
        max_attempts=draw(st.none() | st.integers(1, 10_000)),
        timeout=draw(st.none() | st.floats(1e-9, 1e9)),
        headers=draw(st.dictionaries(_NAMES, _NAMES, max_size=2)),
        state=state,
        attempt=draw(st.integers(least, 1000)),
        stalls=draw(_NUMBERS),
        serial=max([*serials, draw(st.integers(least, 2_000_000_000))]),
        run_at=draw(_TIMES),
        created_at=draw(_TIMES),
        updated_at=draw(_TIMES),
        finished_at=draw(_TIMES) if state in _ENDED else None,
        error=draw(st.none() | _FAILURES),
        result=draw(st.none() | _DATA) if state is State.COMPLETED else None,
        progress=draw(st.none() | _DATA),
        cancel_requested=draw(st.booleans()),
        unique=None
        if key is None
        else UniqueKey(
            key=key, period=60.0 if throttle else None, mode="throttle" if throttle else "keep"
        ),
        limits=tuple(sorted(draw(st.sets(_NAMES.filter(lambda k: "*" not in k), max_size=2)))),
    )
    history = tuple(
        PastAttempt(
            attempt=draw(_NUMBERS),
            serial=serial,
            outcome=draw(_TEXTS),
            started_at=draw(_TIMES),
            ended_at=draw(_TIMES),
            worker=draw(_NAMES),
            kind=draw(_TEXTS),
            message=draw(_TEXTS),
        )
        for serial in serials
    )
    until = draw(_TIMES) if throttle else draw(st.none() | _TIMES)
    return StoredJob(
        job=job,
        content=draw(st.binary(min_size=8, max_size=8)),
        key=KeyHold(until=until) if holds else None,
        history=history,
    )


_SCHEDULE = ScheduleRecord(
    id="nightly",
    revision="r1",
    definition=written_definition(
        Definition(
            expression="@daily",
            zone="UTC",
            missed=Missed.SKIP,
            name="report",
            queue="q",
            payload=b"\xff",
        )
    ),
    created_at=_T0,
    last=_T0,
    paused=True,
)
_LIMIT = Limit(key="api:*", per_second=3)
_JOBS = st.lists(_stored(), min_size=1, max_size=2, unique_by=lambda each: each.job.id)


def _file(jobs: list[StoredJob], *, digest: bool = True) -> bytes:
    writer = ExportWriter()
    lines = [writer.header("memory", _T0), *(writer.line(each) for each in (_SCHEDULE, _LIMIT))]
    lines += [writer.line(each) for each in jobs]
    end = writer.end()
    if not digest:
        said = json.loads(end)
        del said["digest"]
        end = json.dumps(said).encode() + b"\n"
    return b"".join([*lines, end])


def _lines(file: bytes) -> list[bytes]:
    return file.splitlines(keepends=True) if b"\r" not in file else _by_line_ends(file)


def _by_line_ends(file: bytes) -> list[bytes]:
    """As a file is read: a line ends with a line feed, and with nothing else."""
    *whole, last = file.split(b"\n")
    return [line + b"\n" for line in whole] + ([last] if last else [])


def _import(file: bytes) -> tuple[Driver, Exception | None]:
    """What comes of it, on an empty store."""
    store = MemoryDriver()

    async def main() -> Exception | None:
        async with Queue(store) as queue:
            try:
                contents = contents_of(_lines(file))
                await import_store(queue, contents, _lines(file), told=lambda _: None)
            except (BadLine, ImportConflict) as error:
                return error
            return None

    return store, asyncio.run(main())


def _stored_in(store: Driver) -> list[StoredJob]:
    async def main() -> list[StoredJob]:
        return list((await store.dump(None, 1000, now=_T0 - timedelta(days=9999))).jobs)

    return asyncio.run(main())


def _nothing_in(store: Driver) -> bool:
    async def main() -> bool:
        counts = await store.counts()
        others = (await store.schedules()).items, await store.limits()
        return not counts.by_queue and not counts.paused and not any(others)

    return asyncio.run(main())


@given(_JOBS)
def test_what_was_written_is_read_again(jobs: list[StoredJob]) -> None:
    entries = [entry for _, entry in read_export(_lines(_file(jobs)))]
    assert entries == [_SCHEDULE, _LIMIT, *jobs]


@given(_JOBS, st.data())
def test_a_damaged_file_is_refused_with_its_line_and_path(
    jobs: list[StoredJob], data: st.DataObject
) -> None:
    """Cut, with bytes flipped, taken out or put in, or with lines that are missing or moved."""
    file = _file(jobs)
    place = data.draw(st.integers(0, len(file) - 2))
    lines = _lines(file)
    number = data.draw(st.integers(0, len(lines) - 1))
    damages: dict[str, Callable[[], bytes]] = {
        "cut": lambda: file[:place],
        "flipped": lambda: (
            file[:place] + bytes([file[place] ^ data.draw(st.integers(1, 255))]) + file[place + 1 :]
        ),
        "without": lambda: file[:place] + file[place + data.draw(st.integers(1, 9)) :],
        "with": lambda: file[:place] + data.draw(st.binary(min_size=1, max_size=5)) + file[place:],
        "without a line": lambda: b"".join(lines[:number] + lines[number + 1 :]),
        "a line twice": lambda: b"".join(lines[: number + 1] + lines[number:]),
        "the other way round": lambda: b"".join(reversed(lines)),
    }
    damaged = damages[data.draw(st.sampled_from(sorted(damages)))]()
    if damaged.rstrip(b"\n") == file.rstrip(b"\n"):
        return  # the same bytes again
    store, error = _import(damaged)
    if error is None:
        # The last line alone may be written in another way.
        assert _lines(damaged)[:-1] == lines[:-1]
        assert json.loads(_lines(damaged)[-1]) == json.loads(lines[-1])
        return
    assert isinstance(error, BadLine)
    assert 1 <= error.line <= len(_lines(damaged)) + 1
    assert error.path.startswith("$")
    assert error.rule
    assert _nothing_in(store)


_VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXTS
_ANY = st.recursive(
    _VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3)
)


@given(_JOBS, st.data())
def test_a_changed_value_is_refused_or_stored_as_it_is(
    jobs: list[StoredJob], data: st.DataObject
) -> None:
    """Without a digest, as for somebody who edits a file: no value breaks the import."""
    lines = [json.loads(line) for line in _lines(_file(jobs, digest=False))]
    changed = data.draw(st.sampled_from(lines))
    name = data.draw(st.sampled_from([*changed, "other"]))
    if data.draw(st.booleans()):
        changed.pop(name, None)
    else:
        changed[name] = data.draw(_ANY)
    file = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    store, error = _import(file)
    if error is None:
        entries = [entry for _, entry in read_export(_lines(file))]
        right = [at_rest(each) for each in entries if isinstance(each, StoredJob)]
        found = _stored_in(store)
        assert [each.job for each in found] == [each.job for each in right]
        assert [each.history for each in found] == [each.history for each in right]
    elif isinstance(error, BadLine):
        assert _nothing_in(store)


@given(_DATA | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_anything_in_the_place_of_a_file_is_refused(data: bytes) -> None:
    store, error = _import(data)
    assert isinstance(error, BadLine)
    assert error.line >= 1
    assert _nothing_in(store)


@pytest.mark.parametrize("depth", [1000, 200_000])
def test_a_line_of_great_depth_is_refused(depth: int) -> None:
    _, error = _import(b'{"type":"header","format":1,"at":' + b"[" * depth + b"\n")
    assert isinstance(error, BadLine)
