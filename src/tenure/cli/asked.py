"""What every command may be told: the store, the form of the answer, how much of an error to show.

The options stand before or after the name of a command. Reads TENURE_URL, and opens nothing.
"""

import logging
import os
from collections.abc import Callable
from shlex import quote
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import click

__all__ = ["Asked", "asked", "shared"]

F = TypeVar("F", bound=Callable[..., Any])

_VARIABLE = "TENURE_URL"


class Asked:
    """What has been asked for so far; one for each run of the program."""

    def __init__(self) -> None:
        self.given: str | None = None
        self.json = False
        self.debug = False

    @property
    def url(self) -> str:
        """The URL of the store. Raises `click.UsageError` where there is none."""
        url = self.given or os.environ.get(_VARIABLE, "")
        if not url:
            raise click.UsageError(f"no store is named: give --url URL, or set {_VARIABLE}")
        return url

    @property
    def named(self) -> bool:
        """Whether a store is named at all."""
        return bool(self.given or os.environ.get(_VARIABLE))

    @property
    def on_redis(self) -> bool:
        """Whether the store is one in which nothing is ever rewritten for a newer tenure."""
        return self.url.startswith(("redis:", "rediss:", "unix:"))

    def refuse_url(self) -> None:
        """For commands whose store an app names. Raises `click.UsageError`."""
        if self.given is not None:
            raise click.UsageError(
                f"the app names its store, so --url has no place here; it may read {_VARIABLE}"
            )

    def command(self, words: str) -> str:
        """A command on the same store, to be shown: as it can be typed, but for a password."""
        if self.given is None:
            return f"tenure {words}"
        return f"tenure {words} --url {quote(self.shown())}"

    def shown(self) -> str:
        """The URL without a password."""
        url = self.given or os.environ.get(_VARIABLE, "")
        try:
            parts = urlsplit(url)
            secret = parts.password
        except ValueError:
            return "(a URL that cannot be read)"
        if not secret:
            return url
        user, _, host = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}:...@{host}"))


def asked() -> Asked:
    """What the running command was asked."""
    found = click.get_current_context().find_object(Asked)
    assert found is not None
    return found


def shared(command: F) -> F:
    """Give a command the options that all have."""
    for option in (_DEBUG, _JSON, _URL):
        command = option(command)
    return command


def _heard_url(context: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None and (found := context.find_object(Asked)):
        found.given = value


def _heard_json(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value and (found := context.find_object(Asked)):
        found.json = True


def _heard_debug(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value and (found := context.find_object(Asked)):
        found.debug = True
        logging.getLogger("tenure").setLevel(logging.DEBUG)
        logging.getLogger("asyncio").setLevel(logging.NOTSET)


_URL = click.option(
    "--url",
    metavar="URL",
    expose_value=False,
    is_eager=True,
    callback=_heard_url,
    help=f"The store, such as sqlite:///jobs.db. Without it {_VARIABLE} is read.",
)
_JSON = click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_heard_json,
    help="Answer with one JSON document on standard output.",
)
_DEBUG = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_heard_debug,
    help="Show tracebacks, and what the library logs.",
)
