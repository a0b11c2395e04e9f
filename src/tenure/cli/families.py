"""A command with commands below it: suggests what was meant, and shows its help when alone."""

from difflib import get_close_matches
from typing import Any

import click

__all__ = ["Family", "Interrupted"]


class Interrupted(Exception):
    """Somebody pressed Ctrl-C."""


class Family(click.Group):
    """A group of commands."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        options.setdefault("no_args_is_help", False)
        super().__init__(*arguments, **options)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:  # as completion parses
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # of which click would tell in its own way
            raise Interrupted from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            near = get_close_matches(name, self.list_commands(ctx), n=1, cutoff=0.5)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"there is no command {name!r}{meant}", ctx)
        return super().resolve_command(ctx, args)
