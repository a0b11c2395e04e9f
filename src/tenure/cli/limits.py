"""`tenure limits`: list, set and remove the limits on keys."""

import click

from tenure.cli.asked import asked, shared
from tenure.cli.complaints import Complaint
from tenure.cli.exits import Exit
from tenure.cli.families import Family
from tenure.cli.opening import on_store
from tenure.cli.shows import document, note, table

__all__ = ["limits"]

_BOUND = click.IntRange(1, 1_000_000_000)


@click.group("limits", cls=Family)
@shared
def limits() -> None:
    """List, set and remove the limits on keys that jobs name."""


@limits.command("list")
@shared
def list_limits() -> None:
    """List the limits of the store."""
    found = on_store(asked(), lambda store, _: store.limits())
    if asked().json:
        document(found)
        return
    rows = [(limit.key, limit.per_second, limit.concurrent) for limit in found]
    table(("KEY", "PER SECOND", "CONCURRENT"), rows, empty="the store has no limit")


@limits.command("set")
@click.argument("key")
@click.option("--per-second", type=_BOUND, help="How many may be claimed in any second.")
@click.option("--concurrent", type=_BOUND, help="How many may run at once.")
@shared
def put(key: str, per_second: int | None, concurrent: int | None) -> None:
    """Limit the jobs that name KEY; `customer:*` limits each key with that beginning."""
    if per_second is None and concurrent is None:
        raise click.UsageError("give --per-second, --concurrent, or both")
    on_store(
        asked(), lambda store, _: store.limit(key, per_second=per_second, concurrent=concurrent)
    )
    if asked().json:
        document({"key": key, "per_second": per_second, "concurrent": concurrent})
    else:
        note(f"{key} is limited now")


@limits.command("remove")
@click.argument("key")
@shared
def remove(key: str) -> None:
    """Remove the limit on KEY."""
    if not on_store(asked(), lambda store, _: store.remove_limit(key)):
        remedy = f"`{asked().command('limits list')}` lists those there are"
        raise Complaint(f"there is no limit on {key!r}", remedy, Exit.NOT_FOUND)
    if asked().json:
        document({"key": key, "removed": True})
    else:
        note(f"{key} is not limited any more")
