"""docs/cli.md names every command and every option there is, and none besides."""

import re
from collections.abc import Iterator
from pathlib import Path

import click

from tenure.cli.exits import Exit
from tenure.cli.program import program
from tests.edge.cli.running import run

PAGE = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")
SHARED = {"--url", "--json", "--debug"}

_ROW = re.compile(r"^\| `tenure ([a-z ]+?)((?: [A-Z\[][^`]*)?)` \|([^|]*)\| ([^|]+) \|$", re.M)


def commands(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by the words that call it."""
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from commands(below, f"{path} {name}".strip())
    else:
        yield path, command


def options(command: click.Command) -> set[str]:
    return {
        name
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for name in parameter.opts
        if name.startswith("--")
    }


def test_the_page_has_every_command_with_its_options_and_arguments() -> None:
    there = {
        path: (
            options(command) - SHARED,
            [p.human_readable_name for p in command.params if isinstance(p, click.Argument)],
        )
        for path, command in commands(program)
    }
    named = {
        words: (set(re.findall(r"`(--[a-z-]+)`", given)), arguments.split())
        for words, arguments, given, _ in _ROW.findall(PAGE)
    }
    assert {path: given for path, (given, _) in named.items()} == {
        path: given for path, (given, _) in there.items()
    }
    plain = {
        path: [a.strip("[].").replace("\\|", "|") for a in given]
        for path, (_, given) in named.items()
    }
    assert plain == {
        path: [a.strip("[].").upper() for a in given] for path, (_, given) in there.items()
    }


def test_every_command_takes_what_all_take() -> None:
    assert [path for path, command in commands(program) if not options(command) >= SHARED] == []
    assert all(f"`{name}" in PAGE for name in SHARED)


def test_every_command_and_option_explains_itself() -> None:
    for path, command in commands(program):
        assert command.help, path
        text = command.get_help(click.Context(command, info_name=path))
        assert all(name in text for name in options(command)), path


def test_the_page_has_every_exit_code() -> None:
    assert {int(code) for code in re.findall(r"^\| (\d+) \| ", PAGE, re.M)} == set(Exit)


def test_help_is_an_answer_and_lists_the_commands() -> None:
    for arguments in ([], ["--help"], ["jobs"], ["jobs", "--help"]):
        ran = run(*arguments)
        assert (ran.code, ran.err) == (0, "")
        assert "Commands:" in ran.out
    first = {path.split()[0] for path, _ in commands(program)}
    assert all(f"\n  {name} " in run("--help").out for name in first)
