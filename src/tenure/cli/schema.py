"""`tenure schema`: the version of a store's schema, its upgrade, and its SQL."""

import asyncio

import click

from tenure.cli.asked import Asked, asked, shared
from tenure.cli.families import Family
from tenure.cli.opening import in_time
from tenure.cli.shows import document, facts, note
from tenure.clock import SystemClock
from tenure.drivers.schemas import SchemaState, schema_script, schema_state
from tenure.errors import SchemaMismatch
from tenure.migration import migrate as upgraded

__all__ = ["schema"]


@click.group("schema", cls=Family)
@shared
def schema() -> None:
    """The version of a store's schema, its upgrade, and its SQL."""


@schema.command("status")
@shared
def status() -> None:
    """Compare the schema of the store with what this tenure works with.

    Changes nothing. Exit code 5 where they differ.
    """
    state = _look(asked())
    word = _word(state)
    if asked().json:
        document(
            {
                "found": state.found,
                "expected": state.expected,
                "oldest": state.oldest,
                "state": word,
                "works": state.works,
            }
        )
    else:
        works = "yes" if state.works else "no"
        facts(
            [
                ("found", state.found),
                ("expected", state.expected),
                ("state", word),
                ("works", works),
            ]
        )
    if state.found not in (None, state.expected):
        raise SchemaMismatch(found=state.found, expected=state.expected, remedy=word)


@schema.command("migrate")
@shared
def migrate() -> None:
    """Make the schema, or upgrade an older one; does nothing where it is as it should be."""
    before = _look(asked())
    asyncio.run(upgraded(asked().url))
    after = _look(asked())
    if asked().json:
        document({"before": before.found, "now": after.found})
    elif before.found == after.found:
        note(f"nothing to do: the schema has version {after.found}")
    else:
        note(f"the schema has version {after.found} now; before: {before.found or 'none'}")


@schema.command("sql")
@shared
def sql() -> None:
    """Print the SQL that makes the schema in an empty store; connects to nothing."""
    text = schema_script(asked().url, SystemClock())
    if asked().json:
        document({"sql": text})
    else:
        click.echo(text, nl=False)


def _look(told: Asked) -> SchemaState:
    url = told.url
    return asyncio.run(in_time(lambda: schema_state(url, SystemClock())))


def _word(state: SchemaState) -> str:
    if state.found is None:
        return "none"
    if state.found == state.expected:
        return "current"
    return "behind" if state.found < state.expected else "ahead"
