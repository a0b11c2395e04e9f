"""Which recipe runs on which stores: a table in README.md, made of what pytest collects.

python -m tests.regressions.table            # prints the page
python -m tests.regressions.table --write    # writes it
"""

import contextlib
import io
import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest

__all__ = ["PAGE", "page"]

FOLDER = Path(__file__).parent
PAGE = FOLDER / "README.md"
STORES = ("memory", "sqlite", "redis", "postgres")
# A test with such an argument that is not run for each of several stores is for that one.
FIXTURES = {"stage": "sqlite", "redis_server": "redis", "postgres_server": "postgres"}

HEAD = """\
# Recipes

Each file is one fault that users of other job queues have met, and the whole kind of it. The
number is the recipe's; the docstring of its file has the symptom, and where it was seen. The table
is what pytest collects (`python -m tests.regressions.table --write`); a test compares the two.

"""


class Collected:
    """Takes note of the tests, and runs none."""

    def __init__(self) -> None:
        self.stores: defaultdict[Path, set[str]] = defaultdict(set)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            assert isinstance(item, pytest.Function)
            self.stores[item.path] |= stores_of(item)


def stores_of(item: pytest.Function) -> set[str]:
    """By the parameters of the test, else by its mark, else by its arguments."""
    if hasattr(item, "callspec"):
        values = {str(value).partition("_")[0] for value in item.callspec.params.values()}
        found = values & set(STORES)
        if found:
            return found
    marked = {mark.args[0] for mark in item.iter_markers("store")}
    assert marked <= set(STORES), f"{item.nodeid}: {marked}"
    return marked or {FIXTURES[name] for name in FIXTURES if name in item.fixturenames}


def page() -> str:
    collected = Collected()
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        options = ["--collect-only", "-qq", "-p", "no:cacheprovider", "-p", "no:xdist"]
        code = pytest.main([*options, str(FOLDER)], plugins=[collected])
    assert code == 0, said.getvalue()[-2000:]
    rows = [
        (number_of(path), collected.stores[path], kind_of(path))
        for path in sorted(FOLDER.glob("test_a*.py"))
    ]
    counts = {store: sum(store in stores for _, stores, _ in rows) for store in STORES}
    table = [
        "| recipe | " + " | ".join(STORES) + " | the kind of fault |",
        "|---|" + "---|" * len(STORES) + "---|",
        *(row(number, stores, kind) for number, stores, kind in rows),
        row(f"{len(rows)} in all", counts, ""),
    ]
    return HEAD + "\n".join(table) + "\n"


def row(first: str, stores: "set[str] | dict[str, int]", last: str) -> str:
    if isinstance(stores, dict):
        cells = [str(stores[store]) for store in STORES]
    else:
        cells = ["x" if store in stores else "" for store in STORES]
    return f"| {first} | " + " | ".join(cells) + f" | {last} |"


def number_of(path: Path) -> str:
    return path.name[5:8].upper()


def kind_of(path: Path) -> str:
    """The first sentence of the docstring about it."""
    text = path.read_text(encoding="utf-8").split('"""')[1]
    found = re.search(r"The kind of fault: (.+?)\.(?:\s|$)", text, re.S)
    assert found is not None, f"{path.name} does not tell its kind of fault"
    return " ".join(found[1].split())


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
