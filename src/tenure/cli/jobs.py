"""`tenure jobs`: list, show, retry, cancel and delete jobs."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import click

from tenure.bulk import Answers
from tenure.cli.asked import asked, shared
from tenure.cli.complaints import Complaint
from tenure.cli.consent import confirmed, with_consent
from tenure.cli.exits import Exit
from tenure.cli.families import Family
from tenure.cli.matching import Filter, filtered, matches
from tenure.cli.opening import Patience, on_store
from tenure.cli.progressing import counting
from tenure.cli.shows import amount, as_json, document, facts, moment, note, table
from tenure.driver import Capability
from tenure.history import PastAttempt
from tenure.queue import Queue
from tenure.states import TERMINAL, State
from tenure.types import Answer, Job

__all__ = ["jobs"]

_LIVE = tuple(state for state in State if state not in TERMINAL)
_SETTLED = (Answer.DONE, Answer.REQUESTED)


@click.group("jobs", cls=Family)
@shared
def jobs() -> None:
    """List, show, retry, cancel and delete jobs."""


@jobs.command("list")
@filtered
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@click.option("--cursor", metavar="CURSOR", help="Go on where an earlier list ended.")
@shared
def list_jobs(
    state: str | None, queue: str | None, name: str | None, limit: int, cursor: str | None
) -> None:
    """List jobs in all states, newest first."""

    async def look(store: Queue, _: Patience) -> Any:
        return await store.list(state=state, queue=queue, name=name, limit=limit, cursor=cursor)

    page = on_store(asked(), look)
    if asked().json:
        document(page)
        return
    columns = ("ID", "NAME", "QUEUE", "STATE", "ATTEMPT", "DUE", "ERROR")
    table(columns, [_row(job) for job in page.jobs], empty="no job matches")
    if page.cursor is not None:
        note(f"there may be more: add --cursor {page.cursor}")


def _row(job: Job[Any]) -> tuple[object, ...]:
    due = job.run_at if job.state not in TERMINAL else None
    error = None if job.error is None else job.error.message
    return (job.id, job.name, job.queue, job.state.value, job.attempt, due, error)


@jobs.command("show")
@click.argument("job_id", metavar="ID")
@shared
def show(job_id: str) -> None:
    """Show all that is known of one job."""

    async def look(store: Queue, _: Patience) -> tuple[Job[Any], Sequence[PastAttempt]]:
        job = await store.get(job_id)
        kept = Capability.HISTORY in store.capabilities
        return job, (await store.history(job_id) if kept else ())

    job, history = on_store(asked(), look)
    if asked().json:
        document({"job": job, "history": history})
        return
    facts(_facts(job))
    if job.error is not None and job.error.trace:
        click.echo()
        for line in job.error.trace.splitlines():
            click.echo("".join(c for c in line if c.isprintable()))
    if history:
        click.echo()
        columns = ("ATTEMPT", "OUTCOME", "STARTED", "ENDED", "WORKER", "MESSAGE")
        table(
            columns,
            [
                (p.attempt, p.outcome, p.started_at, p.ended_at, p.worker, p.message)
                for p in history
            ],
            empty="",
        )


def _facts(job: Job[Any]) -> list[tuple[str, object]]:
    wish = " (asked to cancel)" if job.cancel_requested else ""
    bound = "" if job.max_attempts is None else f" of {job.max_attempts}"
    error = None if job.error is None else f"{job.error.kind}: {job.error.message}"
    return [
        ("id", job.id),
        ("name", job.name),
        ("queue", job.queue),
        ("state", f"{job.state.value}{wish}"),
        ("attempt", f"{job.attempt}{bound}"),
        ("stalls", job.stalls or None),
        ("priority", job.priority),
        ("timeout", None if job.timeout is None else f"{job.timeout:g} s"),
        ("unique", None if job.unique is None else job.unique.key),
        ("limits", ", ".join(job.limits) or None),
        ("due", moment(job.run_at)),
        ("created", moment(job.created_at)),
        ("updated", moment(job.updated_at)),
        ("finished", moment(job.finished_at)),
        ("headers", as_json(job.headers) if job.headers else None),
        ("payload", as_json(job.payload)),
        ("result", None if job.result is None else as_json(job.result)),
        ("progress", None if job.progress is None else as_json(job.progress)),
        ("error", error),
    ]


@jobs.command("retry")
@click.argument("job_ids", metavar="[ID]...", nargs=-1)
@filtered
@shared
def retry(job_ids: tuple[str, ...], state: str | None, queue: str | None, name: str | None) -> None:
    """Make failed or cancelled jobs due now, by id or all that match.

    With a filter and no --state it is the failed ones.
    """
    which = _which(job_ids, Filter(state, queue, name))
    if which is None:
        _by_id(job_ids, lambda store: store.retry(job_ids))
        return
    _all(
        lambda store, step: store.retry_all(
            state=which.state or State.FAILED, queue=which.queue, name=which.name, progress=step
        )
    )


@jobs.command("cancel")
@click.argument("job_ids", metavar="[ID]...", nargs=-1)
@filtered
@with_consent
@shared
def cancel(
    job_ids: tuple[str, ...], state: str | None, queue: str | None, name: str | None, yes: bool
) -> None:
    """Cancel jobs that have not ended, by id or all that match.

    Running ones are asked to stop. With a filter it asks first.
    """
    which = _which(job_ids, Filter(state, queue, name))
    if which is None:
        _by_id(job_ids, lambda store: store.cancel(job_ids))
    elif _agreed(which, "cancelled", _LIVE, yes=yes):
        _all(
            lambda store, step: store.cancel_all(
                state=which.state, queue=which.queue, name=which.name, progress=step
            )
        )


@jobs.command("delete")
@click.argument("job_ids", metavar="[ID]...", nargs=-1)
@filtered
@with_consent
@shared
def delete(
    job_ids: tuple[str, ...], state: str | None, queue: str | None, name: str | None, yes: bool
) -> None:
    """Delete jobs that are not running, by id or all of one state that match.

    It asks first.
    """
    which = _which(job_ids, Filter(state, queue, name))
    if which is None:
        confirmed(f"{amount(len(job_ids))} will be deleted", yes=yes)
        _by_id(job_ids, lambda store: store.delete(job_ids))
        return
    chosen = which.state
    if chosen is None:
        raise click.UsageError("say with --state which of them are to be deleted")
    if _agreed(which, "deleted", (State(chosen),), yes=yes):
        _all(
            lambda store, step: store.delete_all(
                state=chosen, queue=which.queue, name=which.name, progress=step
            )
        )


def _which(job_ids: tuple[str, ...], which: Filter) -> Filter | None:
    """The filter; None where there are ids instead."""
    if bool(job_ids) == which.given:
        raise click.UsageError("name jobs by ID, or by --state, --queue or --name")
    return None if job_ids else which


def _agreed(which: Filter, what: str, states: Sequence[State], *, yes: bool) -> bool:
    """Tell how many jobs it is about, and ask; False where there are none."""
    number, more = on_store(
        asked(), lambda store, patience: matches(store, patience, which, states)
    )
    if number == 0:
        note("no job matches")
        return False
    about = "more than " if more else ""
    confirmed(f"{about}{amount(number)} will be {what}", yes=yes)
    return True


def _by_id(job_ids: tuple[str, ...], verb: Callable[[Queue], Awaitable[Sequence[Answer]]]) -> None:
    """Do it, show the answer for each job, and end with an exit code that tells of the worst."""
    answers = on_store(asked(), lambda store, _: verb(store))
    pairs = list(zip(job_ids, answers, strict=True))
    if asked().json:
        document([{"id": job_id, "answer": answer} for job_id, answer in pairs])
    else:
        table(("ID", "ANSWER"), [(job_id, answer.value) for job_id, answer in pairs], empty="")
    command = asked().command("jobs list")
    unknown = [job_id for job_id, answer in pairs if answer is Answer.UNKNOWN]
    if unknown:
        raise Complaint(
            f"there is no job {', '.join(unknown)}; it may have been deleted or pruned",
            f"`{command}` lists those there are",
            Exit.NOT_FOUND,
        )
    refused = [f"{job_id} ({answer.value})" for job_id, answer in pairs if answer not in _SETTLED]
    if refused:
        cause = f"not done for {', '.join(refused)}"
        raise Complaint(cause, "docs/control.md says what each answer means", Exit.FAILED)


def _all(verb: Callable[[Queue, Callable[[int], None]], Awaitable[Answers]]) -> None:
    """Do it to all that match, step by step, and show how many got which answer."""

    async def work(store: Queue, patience: Patience) -> Answers:
        with counting("jobs") as told:

            def step(number: int) -> None:
                patience.renew()
                told(number)

            return await verb(store, step)

    answers = on_store(asked(), work)
    if asked().json:
        document(answers)
        return
    counted = {name: getattr(answers, name) for name in answers.__struct_fields__}
    facts([(name, number) for name, number in counted.items() if number or name == "done"])
