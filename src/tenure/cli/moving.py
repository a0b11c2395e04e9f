"""`tenure export` and `tenure import`: all that is in a store as lines of JSON, and back.

An export is secret as the payloads in it are: a file is for its owner alone. It gets its name when
it is whole, and an import reads it to its end before anything is stored.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import click

from tenure._export.lines import BadLine
from tenure.cli.asked import asked, shared
from tenure.cli.complaints import Complaint
from tenure.cli.exits import Exit
from tenure.cli.opening import Patience, on_new_store, on_store
from tenure.cli.progressing import counting
from tenure.cli.shows import amount, document, note
from tenure.moving import (
    Contents,
    Exported,
    ImportConflict,
    Imported,
    contents_of,
    export_store,
    import_store,
)
from tenure.queue import Queue

__all__ = ["export", "import_"]

_STANDARD = "-"
_SHOWN = 20  # of the things that are damaged
_KINDS = {"rediss": "redis", "unix": "redis", "postgres": "postgresql"}


# --- out ----------------------------------------------------------------------------------------


@click.command("export")
@click.argument("file", default=_STANDARD, metavar="[FILE|-]")
@shared
def export(file: str) -> None:
    """Write all that is in the store to FILE, or to standard output: a JSON document in each line.

    Jobs in all states with their history, schedules, limits and paused queues. An earlier FILE is
    replaced once the new one is whole. To move a store, stop its workers and producers first.
    """
    kind = urlsplit(asked().url).scheme

    async def work(store: Queue, patience: Patience) -> Exported:
        with counting("jobs") as told, _written_to(file) as write:

            def step(number: int) -> None:
                patience.renew()
                told(number)

            return await export_store(store, write, store=_KINDS.get(kind, kind), told=step)

    _tell_exported(on_store(asked(), work), file)


def _tell_exported(done: Exported, file: str) -> None:
    if asked().json:
        document(
            {
                "file": None if file == _STANDARD else file,
                "jobs": done.jobs,
                "states": done.states,
                "schedules": done.schedules,
                "limits": done.limits,
                "paused": done.paused,
                "damaged": done.damaged,
                "unwritten": done.unwritten,
            },
            err=file == _STANDARD,
        )
    else:
        _tell_in_words(done)
    if done.unwritten:
        number = len(done.unwritten)
        cause = f"{number:,} damaged record{'' if number == 1 else 's'} cannot be exported"
        raise Complaint(cause, "all else is; mend or delete them and export again", Exit.FAILED)


def _tell_in_words(done: Exported) -> None:
    others = f"{amount(done.schedules, 'schedule')}, {amount(done.limits, 'limit')}"
    note(f"{amount(done.jobs)}, {others} exported")
    running = done.states.get("processing", 0)
    if running:
        note(f"note: {amount(running)} processing: stop the workers before you move a store")
    for job_id in done.damaged[:_SHOWN]:
        note(f"warning: a part of the job {job_id!r} cannot be read and has a stand-in")
    for one in done.unwritten[:_SHOWN]:
        note(f"warning: the {one.kind} {one.id!r} is left out: {one.reason}")


@contextmanager
def _written_to(file: str) -> Generator[Callable[[bytes], object]]:
    """What writes; the file appears under its name at the end, and only when all went well."""
    path = Path(file).resolve()
    if file == _STANDARD:
        yield sys.stdout.buffer.write
        return
    if path.exists() and not path.is_file():  # a pipe, or /dev/null
        with _opened(path, "wb") as stream:
            yield stream.write
        return
    try:
        # For nobody but its owner, from the beginning.
        number, beside = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise _unusable(file, "written", error) from error
    try:
        with os.fdopen(number, "wb") as stream:
            yield stream.write
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(beside)
        if isinstance(error, OSError):
            raise _unusable(file, "written", error) from error
        raise


# --- in -----------------------------------------------------------------------------------------


@click.command("import")
@click.argument("file", metavar="FILE|-")
@click.option("--dry-run", is_flag=True, help="Check all of FILE, and store nothing.")
@shared
def import_(file: str, dry_run: bool) -> None:
    """Store what `tenure export` has written to FILE, or comes on standard input.

    All of it is checked first. What is in the store already stays as it is, so that an import may
    be run again. Jobs that were being processed wait to be started, with no attempt spent.
    """
    url = "" if dry_run else asked().url
    with _read_from(file) as stream:
        try:
            contents = contents_of(_from_the_beginning(stream))
        except BadLine as error:
            raise Complaint(
                f"{_named(file)}, {error}",
                "nothing was stored; export it again, or correct that line",
                Exit.FAILED,
            ) from error
        if dry_run:
            _tell_checked(contents)
            return
        _tell_imported(contents, _import(url, stream, contents))


def _import(url: str, stream: BinaryIO, contents: Contents) -> Imported:
    assert url  # it was asked for before the file was read

    async def work(store: Queue, patience: Patience) -> Imported:
        with counting("jobs") as told:

            def step(number: int) -> None:
                patience.renew()
                told(number)

            return await import_store(store, contents, _from_the_beginning(stream), told=step)

    try:
        return on_new_store(asked(), work)
    except ImportConflict as error:
        before = f"{amount(error.done)} before it are stored" if error.done else "nothing is stored"
        raise Complaint(
            f"{error}; {before}",
            "delete it there, or take it out of the file; then import again: what is stored stays",
            Exit.FAILED,
        ) from error


def _tell_checked(contents: Contents) -> None:
    if asked().json:
        document(
            {
                "dry_run": True,
                "jobs": contents.jobs,
                "states": contents.states,
                "schedules": len(contents.schedules),
                "limits": len(contents.limits),
                "paused": len(contents.paused),
            }
        )
    else:
        note(f"the file is sound: {amount(contents.jobs)}, {_others(contents)}; nothing was stored")


def _tell_imported(contents: Contents, done: Imported) -> None:
    if asked().json:
        document(
            {
                "dry_run": False,
                "jobs": contents.jobs,
                "states": contents.states,
                "stored": done.stored,
                "known": done.known,
                "schedules": {"stored": done.schedules_stored, "known": done.schedules_known},
                "limits": {"stored": done.limits_stored, "known": done.limits_known},
                "paused": len(contents.paused),
            }
        )
        return
    known = f", {amount(done.known)} there already" if done.known else ""
    note(f"{amount(done.stored)} stored{known}; {_others(contents)}")
    running = contents.states.get("processing", 0)
    if running:
        note(f"note: {amount(running)} processing when they were exported: they wait to be started")


def _others(contents: Contents) -> str:
    schedules = amount(len(contents.schedules), "schedule")
    return f"{schedules}, {amount(len(contents.limits), 'limit')}"


@contextmanager
def _read_from(file: str) -> Generator[BinaryIO]:
    """A file that can be read twice: what comes only once is put into one without a name."""
    if file == _STANDARD:
        with _spooled(sys.stdin.buffer) as stream:
            yield stream
        return
    with _opened(Path(file), "rb") as found:
        if found.seekable():
            yield found
            return
        with _spooled(found) as stream:
            yield stream


@contextmanager
def _spooled(source: BinaryIO) -> Generator[BinaryIO]:
    with tempfile.TemporaryFile() as stream:
        shutil.copyfileobj(source, stream)
        yield stream


def _from_the_beginning(stream: BinaryIO) -> Iterator[bytes]:
    stream.seek(0)
    return iter(stream)


def _opened(path: Path, mode: str) -> BinaryIO:
    try:
        return path.open(mode)  # type: ignore[return-value]  # both modes are of bytes
    except OSError as error:
        verb = "read" if mode == "rb" else "written"
        raise _unusable(str(path), verb, error) from error


def _unusable(file: str, verb: str, error: OSError) -> Complaint:
    return Complaint(
        f"{file} cannot be {verb}: {error.strerror or error}",
        "name a file that can be, or - for standard input and output",
        Exit.USAGE,
    )


def _named(file: str) -> str:
    return "standard input" if file == _STANDARD else file
