"""The command line. `main` is the entry point; nothing else in the package imports this."""

from tenure.cli.program import main

__all__ = ["main"]
