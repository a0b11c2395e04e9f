"""What `import tenure` offers: exactly `__all__`, in order, under the name `tenure`."""

import ast
import inspect
from pathlib import Path
from types import ModuleType

import pytest

import tenure
from tenure import testing
from tenure.testing import conformance, faults

PACKAGE = Path(tenure.__file__).parent
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def test_all_is_sorted_and_names_nothing_twice() -> None:
    assert list(tenure.__all__) == sorted(set(tenure.__all__))


def test_every_name_in_all_exists() -> None:
    missing = [name for name in tenure.__all__ if not hasattr(tenure, name)]
    assert missing == []


def test_every_public_name_is_in_all() -> None:
    public = {
        name
        for name, value in vars(tenure).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert public - set(tenure.__all__) == set()


@pytest.mark.parametrize("name", tenure.__all__)
def test_a_public_class_or_function_reports_the_public_module(name: str) -> None:
    value: object = getattr(tenure, name)
    if inspect.isclass(value) or inspect.isroutine(value):  # not constants and type aliases
        assert getattr(value, "__module__", None) == "tenure"


@pytest.mark.parametrize("module", MODULES)
def test_a_module_begins_with_what_it_is_for(module: str) -> None:
    tree = ast.parse((PACKAGE / module).read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), f"{module} has no docstring"


@pytest.mark.parametrize("tools", [testing, conformance, faults], ids=lambda tools: tools.__name__)
def test_the_tools_for_tests_name_what_they_offer_in_order(tools: ModuleType) -> None:
    assert list(tools.__all__) == sorted(set(tools.__all__))
    assert [name for name in tools.__all__ if not hasattr(tools, name)] == []


@pytest.mark.parametrize("name", faults.__all__)
def test_a_public_fault_reports_the_public_module(name: str) -> None:
    value: object = getattr(faults, name)
    if inspect.isclass(value):
        assert value.__module__ == "tenure.testing.faults"
