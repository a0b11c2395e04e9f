"""The pages name only what exists, and what a reader must hold in mind stays small.

In backticks, `path.py: Name.method` is something defined in that file, `path.py` a file, and a
name or dotted name something that the package defines anywhere. Paths start in `src/tenure`, or at
the top of the repository. Fenced blocks and backticks around anything else are not looked at.
"""

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tenure import State

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "tenure"

FENCED = re.compile(r"^```.*?^```", re.S | re.M)
SPAN = re.compile(r"`([^`]+)`")
PLACE = re.compile(r"([\w/.-]+\.py)(?:: ([\w.]+))?")
NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")

# What the pages name that Python code does not define: words of the language and of the engines.
WORDS = {
    *("FULL", "NORMAL", "sqlite3", "synchronous_standby_names", "save", "allkeys", "noeviction"),
    *("CREATE", "fillfactor", "idle_in_transaction_session_timeout", "EVALSHA", "EVAL", "INFO"),
    *("appendonly", "yes", "appendfsync", "always", "everysec", "maxmemory"),
    *("damaged", "serialization", "time.sleep", "job.fence", "multiprocessing", "finally"),
    *("multiprocessing.set_forkserver_preload", "subprocess", "os._exit", "TerminateProcess"),
    *("Any", "Decimal", "def"),
    *("keep", "replace", "debounce", "throttle", "held", "queue.sync"),
    *("asyncio.run", "shutdown_asyncgens"),
    *("tenure.testing", "bench.dispatched", "bench.sync", "bench.queue.sync", "asyncio.sleep"),
    *("startupProbe", "livenessProbe", "readinessProbe", "command", "exec", "overmind"),
    *("TENURE_TEST_REDIS_URL", "TENURE_TEST_POSTGRES_URL"),
    *("livenessProbe", "readinessProbe", "prometheus_client", "json", "job_name"),
    *("JAN", "DEC", "SUN", "SAT", "L", "LW", "UTC", "tzdata"),
}

VALUES = ["types", "states", "outcomes", "events", "errors", "clock", "driver", "opened", "queue"]
RUNTIME = ["_runtime/claimer", "_runtime/executor", "_runtime/recorder"]


@cache
def defined(path: Path) -> frozenset[str]:
    """Functions, classes, `Class.member`s and parameters that a file defines."""
    return frozenset(_defined(ast.parse(path.read_text(encoding="utf-8")).body, ""))


def _defined(body: list[ast.stmt], owner: str) -> Iterator[str]:
    for node in body:
        match node:
            case ast.ClassDef():
                yield f"{owner}{node.name}"
                yield from _defined(node.body, f"{owner}{node.name}.")
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield f"{owner}{node.name}"
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield f"{owner}{name}"
            case _:
                pass


@cache
def defined_anywhere() -> frozenset[str]:
    """All of it, members also by their last name alone, and parameters."""
    names: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        for name in defined(path):
            names |= {name, name.rpartition(".")[2]}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.arg):
                names.add(node.arg)
    return frozenset(names)


def is_metric(name: str) -> bool:
    """Whether a metric is made under this name."""
    makers = (PACKAGE / "observe" / "prometheus.py", PACKAGE / "cli" / "watch" / "board.py")
    made = "".join(path.read_text(encoding="utf-8") for path in makers)
    own = name.removeprefix("tenure_").removesuffix("_total")
    return name.startswith("tenure_") and (f'"{own}"' in made or f'"{name}"' in made)


def is_attribute(name: str) -> bool:
    """Whether spans have an attribute of this name."""
    made = (PACKAGE / "observe" / "opentelemetry.py").read_text(encoding="utf-8")
    return "." in name and f'"{name}"' in made


def problems(text: str) -> list[str]:
    """What the backticks of a page name and nobody defines."""
    found: list[str] = []
    for span in SPAN.findall(FENCED.sub("", text)):
        if place := PLACE.fullmatch(span):
            file, name = place.groups()
            paths = [top / file for top in (PACKAGE, ROOT) if (top / file).is_file()]
            if not paths:
                found.append(f"{span}: there is no such file")
            elif name is not None and name not in defined(paths[0]):
                found.append(f"{span}: {file} does not define {name}")
        elif NAME.fullmatch(span):
            known = span in defined_anywhere() or span in WORDS or hasattr(builtins, span)
            known = known or is_metric(span) or is_attribute(span)
            if not known:
                found.append(f"{span}: nothing in the package is called that")
    return found


PAGES = sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_only_what_exists(page: str) -> None:
    assert problems((ROOT / "docs" / page).read_text(encoding="utf-8")) == []


def test_internals_names_every_file_of_the_path() -> None:
    text = (ROOT / "docs" / "internals.md").read_text(encoding="utf-8")
    path = ["queue", *RUNTIME, "drivers/memory/job_store", "drivers/sqlite/driver"]
    assert [file for file in path if f"`{file}.py" not in text] == []


@pytest.mark.parametrize(
    "wrong",
    [
        "`_runtime/nowhere.py`",
        "`queue.py: Queue.despatch`",
        "`queue.py: Claimer`",  # exists, but elsewhere
        "`Recorder.tern`",
        "`Recorded.MAYBE`",
        "`despatch`",
        "`tenure_jobs_despatched_total`",
    ],
)
def test_a_wrong_name_is_found(wrong: str) -> None:
    assert problems(f"A job is dispatched by `queue.py: Queue.dispatch`, and by {wrong}.") != []


def test_the_path_of_a_job_can_be_held_in_mind() -> None:
    """Values, contract and the five files of the path, on the default store, with every line."""
    files = [PACKAGE / f"{name}.py" for name in [*VALUES, *RUNTIME, "drivers/sqlite/driver"]]
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) < 3000


def test_the_glossary_has_one_line_for_each_term_in_order() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^\| ([a-z]+) \|", text, re.M)[1:]
    assert terms == sorted(set(terms))
    assert set(State) <= set(terms)
