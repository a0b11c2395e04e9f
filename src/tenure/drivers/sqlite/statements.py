"""The SQL of this driver, by name: each statement is a file that says what it takes and answers.

Loads text and nothing else; it never puts a value into a statement.
"""

import re
from pathlib import Path

__all__ = ["OLDEST", "migrations", "repeated", "statement"]

# The oldest schema that the statements work with: during a deployment that of the version before.
# A migration only adds, and what it has added is used from the next one on.
OLDEST = 1

_HERE = Path(__file__).parent


def statement(name: str) -> str:
    """The text of `queries/<name>.sql` without its comments, one line where it can be."""
    text = (_HERE / "queries" / f"{name}.sql").read_text(encoding="utf-8")
    lines = (line.strip() for line in text.splitlines())
    return " ".join(line for line in lines if line and not line.startswith("--")).rstrip(";")


def repeated(name: str, times: int) -> str:
    """An INSERT of one row of VALUES, written out for so many rows."""
    before, values, after = re.split(r"(?<=VALUES )(\(.*\))(?= ON CONFLICT)", statement(name))
    return f"{before}{', '.join([values] * times)}{after}"


def migrations() -> list[str]:
    """The texts of `migrations/`, in order: the n-th makes version n of version n - 1."""
    return [path.read_text("utf-8") for path in sorted((_HERE / "migrations").glob("*.sql"))]
