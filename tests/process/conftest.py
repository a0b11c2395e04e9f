"""A stage for each test; whatever it started is gone afterwards."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    try:
        yield stage
    finally:
        stage.close()
