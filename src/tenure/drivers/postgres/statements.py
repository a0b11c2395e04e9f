"""The SQL of this driver, by name: each statement and function is a file that explains itself.

Loads text and puts the name of the schema into it; it never puts a value into a statement.
"""

from functools import cache
from pathlib import Path

__all__ = ["OLDEST", "Statements", "quoted"]

# The oldest schema that the statements work with: during a deployment that of the version before.
# A migration only adds, and what it has added is used from the next one on.
OLDEST = 1

_HERE = Path(__file__).parent

# What stands for {source} in `<name> <source>`: which jobs are looked through, in words that lead
# to an index.
_SOURCES = {
    "": "true",
    "processing": "state = 2",
    "failed": "state IN (4, 5) AND state = 4",
    "cancelled": "state IN (4, 5) AND state = 5",
}


def quoted(name: str) -> str:
    """A name as an identifier."""
    return '"' + name.replace('"', '""') + '"'


class Statements:
    """What can be run in one schema."""

    def __init__(self, schema: str) -> None:
        self._schema = quoted(schema)
        self._texts: dict[str, str] = {}

    @property
    def where(self) -> str:
        """The schema, for messages."""
        return f"schema {self._schema}"

    def text(self, name: str) -> str:
        """The text of `queries/<name>.sql`, or of `<name> <source>`."""
        text = self._texts.get(name)
        if text is None:
            file, _, source = name.partition(" ")
            text = self._placed(_read(f"queries/{file}.sql"))
            text = text.replace("{job_row}", _read("job_row.sql"))
            text = text.replace("{source}", _SOURCES[source])
            self._texts[name] = text
        return text

    @property
    def version(self) -> int:
        """What a schema with all migrations has."""
        return len(_files("migrations"))

    def migrations(self) -> list[str]:
        """The texts of `migrations/`, in order: the n-th makes version n of version n - 1."""
        return [self._placed(path.read_text("utf-8")) for path in _files("migrations")]

    def functions(self) -> list[str]:
        """The texts of `functions/`. Each replaces the function of the same name and arguments."""
        planning = _read("planning.sql")
        return [
            self._placed(_uncommented(path.read_text("utf-8")).replace("{planning}", planning))
            for path in _files("functions")
        ]

    def _placed(self, text: str) -> str:
        return text.replace("{schema}", self._schema)


@cache
def _read(name: str) -> str:
    """A file without its comments."""
    return _uncommented((_HERE / name).read_text(encoding="utf-8"))


def _uncommented(text: str) -> str:
    lines = (line.rstrip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.lstrip().startswith("--"))


@cache
def _files(folder: str) -> list[Path]:
    return sorted((_HERE / folder).glob("*.sql"))
