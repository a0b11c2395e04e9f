"""`import tenure` loads no driver, no worker, no testing tools and no optional package."""

import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The modules that a new interpreter has loaded after `import tenure`."""
    program = "import sys, tenure; print(*sys.modules, sep='\\n')"
    answer = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return set(answer.stdout.split())


@pytest.mark.parametrize(
    "module",
    [
        "asyncpg",
        "click",
        "cryptography",
        "multiprocessing",
        "psycopg",
        "redis",
        "rich",
        "sqlite3",
        "tenure._runtime.lifecycle",
        "tenure.cli",
        "tenure.drivers.memory",
        "tenure.drivers.sqlite",
        "tenure.testing",
        "tenure.worker",
    ],
)
def test_importing_the_package_does_not_load(module: str, loaded: set[str]) -> None:
    assert "tenure" in loaded
    assert module not in loaded
