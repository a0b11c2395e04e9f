"""`tenure enqueue`: dispatch one job."""

from datetime import datetime

import click

from tenure.cli.asked import asked, shared
from tenure.cli.opening import on_new_store
from tenure.cli.shows import document, note
from tenure.cli.values import duration, header_pairs, instant, payload_of
from tenure.clock import SystemClock
from tenure.errors import StoreUnavailable
from tenure.ids import JobIds

__all__ = ["enqueue"]


@click.command("enqueue")
@click.argument("name")
@click.argument("payload", required=False)
@click.option("--queue", metavar="QUEUE", default="default", show_default=True)
@click.option("--priority", type=click.IntRange(-100, 100), default=0, show_default=True)
@click.option(
    "--delay", type=duration, metavar="DURATION", help="Due after this time, such as 90s or 1h30m."
)
@click.option(
    "--at", type=instant, metavar="TIME", help="Due at this instant, such as 2030-01-31T09:00Z."
)
@click.option("--max-attempts", type=click.IntRange(1, 10_000), help="Bounds the starts.")
@click.option("--timeout", type=duration, metavar="DURATION", help="The time limit of an attempt.")
@click.option("--unique", metavar="KEY", help="A key that one job holds at a time.")
@click.option(
    "--limit", "limits", metavar="KEY", multiple=True, help="A key of limits; repeatable."
)
@click.option("--header", "headers", metavar="NAME=VALUE", multiple=True, help="Repeatable.")
@click.option("--id", "job_id", metavar="ID", help="An id of your own, stored at most once.")
@shared
def enqueue(
    name: str,
    payload: str | None,
    queue: str,
    priority: int,
    delay: float | None,
    at: datetime | None,
    max_attempts: int | None,
    timeout: float | None,
    unique: str | None,
    limits: tuple[str, ...],
    headers: tuple[str, ...],
    job_id: str | None,
) -> None:
    """Dispatch a job of this NAME; prints its id.

    PAYLOAD is JSON, `-` to read it from standard input, or `@FILE`; null where it is left out.
    """
    if delay is not None and at is not None:
        raise click.UsageError("give --delay or --at, not both")
    value = payload_of(payload)
    told = header_pairs(headers)
    chosen = job_id or JobIds().new(int(SystemClock().now().timestamp() * 1000))
    try:
        handle = on_new_store(
            asked(),
            lambda store, _: store.dispatch(
                name,
                value,
                queue=queue,
                priority=priority,
                delay=delay,
                at=at,
                max_attempts=max_attempts,
                timeout=timeout,
                unique=unique,
                limits=limits,
                headers=told or None,
                id=chosen,
            ),
        )
    except StoreUnavailable as error:
        if not error.ambiguous:
            raise
        why = f"{error}; the job may be stored: repeat with --id {chosen}, which cannot double it"
        raise StoreUnavailable(why, ambiguous=True) from error
    if asked().json:
        document({"id": handle.id, "created": handle.created})
        return
    if not handle.created:
        note(f"not stored: this job holds the key {unique!r}")
    click.echo(handle.id)
