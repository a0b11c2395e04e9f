"""`tenure completion SHELL`: the lines by which a shell completes commands and options."""

import click
from click.shell_completion import get_completion_class

from tenure.cli.asked import asked, shared
from tenure.cli.shows import document

__all__ = ["completion"]

_VARIABLE = "_TENURE_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@shared
def completion(shell: str) -> None:
    """Print what SHELL needs to complete commands and options.

    For bash: `eval "$(tenure completion bash)"` in ~/.bashrc.
    """
    made = get_completion_class(shell)
    assert made is not None
    root = click.get_current_context().find_root().command
    source = made(root, {}, "tenure", _VARIABLE).source()
    if asked().json:
        document({"shell": shell, "source": source})
    else:
        click.echo(source)
