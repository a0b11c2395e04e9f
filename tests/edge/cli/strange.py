"""Command lines that nobody would write: any command, any of its options, strange values."""

from collections.abc import Iterator

import click
from hypothesis import strategies as st

from tenure.cli.program import program

__all__ = ["COMMANDS", "TEXT", "URLS", "command_lines"]

# What an operating system passes on in arguments: all but NUL, and bytes that are no UTF-8, which
# Python shows as lone surrogates.
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
_STRANGE = st.sampled_from(
    [
        *("", " ", "-", "--", "-1", "0", "1", "1.5", "1e999", "nan", "inf", "9" * 30, "9" * 5000),
        *("never", "1h30m", "9" * 400 + "d", "0s", "99999999999w", "default", "completed"),
        *("2030-01-31T09:00Z", "0001-01-01T00:00+23:59", "9999-12-31T23:59-23:59", "2030-W01"),
        *("{", "[]", "null", '{"a": 1e400}', '"\\ud800"', "@", "@/", "@.", "[" * 5000, "-0"),
        *("a=b", "=", "a=", "customer:*", "*", "%", "../..", "\udcff", "a\udcffb", "\x1b[31m"),
        *("a\nb", "é\u2028", "x" * 10_000, "bash", "zsh", "--yes", "--json", "-y"),
        *(
            "nowhere:app",
            ":",
            "a:",
            ":a",
            "json:loads",
            "json:nothing",
            "sys:exit",
            "..:x",
            "a b:c",
        ),
        *(
            "a b:c",
            "a..b:c",
            "json:__doc__",
            "json:decoder.JSONDecoder",
            "tenure:connect",
            "\udcff:x",
        ),
    ]
)
_VALUES = _STRANGE | TEXT | st.integers().map(str) | st.floats().map(str)

# Nothing here is connected to.
URLS = (
    *(
        "",
        "x",
        "sqlite:",
        "sqlite://",
        "sqlite:///",
        "sqlite:////",
        "sqlite:///.",
        "sqlite:///a/b/c",
    ),
    *(
        "sqlite:///\udcff",
        "sqlite:///%00",
        "sqlite://host/x",
        "sqlite:///x?wrong=1",
        "sqlite:///x?",
    ),
    *("sqlite:///x?busy_timeout=nan", "memory://", "memory://x", "redis://[", "redis://h:99999"),
    *("postgresql://h:port/x", "postgresql://h/x?schema=%00", "mysql://h/x", "\x1b[31m", "://"),
)


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from _commands(below, (*path, name))


# Programs that go on until they are ended, or run jobs of their own: not for a hundred tries.
_PROGRAMS = {"worker", "dev", "demo", "bench", "top", "web"}

COMMANDS = tuple(path for path in _commands(program, ()) if not _PROGRAMS & set(path))


def _found(path: tuple[str, ...]) -> click.Command:
    command: click.Command = program
    for name in path:
        assert isinstance(command, click.Group)
        command = command.commands[name]
    return command


@st.composite
def command_lines(draw: st.DrawFn, path: tuple[str, ...]) -> list[str]:
    """Options of the command with values, arguments more or less than it takes, in any order."""
    command = _found(path)
    given: list[list[str]] = []
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2]))):
                # The store is the test's, and help is an answer that would hide the rest.
                if parameter.name in ("url", "debug", "help", "version"):
                    continue
                name = draw(st.sampled_from(parameter.opts))
                if parameter.is_flag:
                    given.append([name])
                elif isinstance(parameter.type, click.Choice) and draw(st.booleans()):
                    given.append([name, str(draw(st.sampled_from(parameter.type.choices)))])
                else:
                    given.append([name, draw(_VALUES)])
        else:
            number = draw(st.sampled_from([0, 1, 1, 1, 2]))
            given += [[draw(_VALUES)] for _ in range(number)]
    if draw(st.integers(0, 9)) == 0:
        given.append([draw(_VALUES)])
    words = [word for words in draw(st.permutations(given)) for word in words]
    return [*path, *words]
