"""Shows on a terminal, and nowhere else, how far long work has come."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

import click

__all__ = ["counting"]


@contextmanager
def counting(noun: str) -> Generator[Callable[[int], None]]:
    """A function to be called with the number so far; the line is gone afterwards."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    try:
        yield lambda number: click.echo(f"\r{number:,} {noun}\033[K", err=True, nl=False)
    finally:
        click.echo("\r\033[K", err=True, nl=False)
