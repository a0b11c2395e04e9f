"""`tenure check APP`: import an app, show what it would run, and say what is wrong with it.

Opens no store, unless the app does, and runs no job.
"""

import click

from tenure.cli.apps import worker_of
from tenure.cli.asked import asked, shared
from tenure.cli.shows import document, facts, note, table
from tenure.handlers import HandlerSpec
from tenure.worker import Worker

__all__ = ["check"]


@click.command("check")
@click.argument("app")
@shared
def check(app: str) -> None:
    """Import APP and show its queues and handlers.

    Exit code 4 where that does not give a worker; what may be meant otherwise is noted.
    """
    asked().refuse_url()
    worker = worker_of(app)
    specs = sorted(worker.handlers.values(), key=lambda spec: spec.name)
    if asked().json:
        document(
            {
                "app": app,
                "queues": worker.queues,
                "handlers": [_document(spec) for spec in specs],
                "warnings": _doubts(worker),
            }
        )
        return
    facts([("app", app), ("store", repr(worker.queue)), ("queues", ", ".join(worker.queues))])
    click.echo()
    columns = ("HANDLER", "FUNCTION", "RUNS", "ATTEMPTS", "TIMEOUT")
    table(columns, [_row(spec) for spec in specs], empty="no handler is registered")
    for doubt in _doubts(worker):
        note(f"warning: {doubt}")


def _doubts(worker: Worker) -> list[str]:
    return [] if worker.handlers else ["the app has no handler, so that it would run no job"]


def _function(spec: HandlerSpec) -> str:
    name = getattr(spec.function, "__qualname__", type(spec.function).__name__)
    return f"{getattr(spec.function, '__module__', '?')}.{name}"


def _document(spec: HandlerSpec) -> dict[str, object]:
    return {
        "name": spec.name,
        "function": _function(spec),
        "async": spec.is_async,
        "max_attempts": None if spec.retry is None else spec.retry.max_attempts,
        "timeout": spec.timeout,
    }


def _row(spec: HandlerSpec) -> tuple[object, ...]:
    return (
        spec.name,
        _function(spec),
        "on the loop" if spec.is_async else "in a thread",
        None if spec.retry is None else spec.retry.max_attempts,
        None if spec.timeout is None else f"{spec.timeout:g} s",
    )
