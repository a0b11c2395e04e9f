"""Any text in the place of a cursor: a page, or a refusal that names it. On every store."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import tenure


class Listed:
    """A queue with a few jobs, on a loop of its own."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._queue = tenure.connect(url)
        self._runner.run(self._fill())

    async def _fill(self) -> None:
        await self._queue.dispatch_many([tenure.Call("work", n) for n in range(3)])

    def list(self, cursor: str) -> tenure.Page[object]:
        return self._runner.run(self._queue.list(cursor=cursor, limit=2))

    def close(self) -> None:
        self._runner.run(self._queue.close())
        self._runner.close()


@pytest.fixture(params=["memory", "sqlite", "redis", "postgres"])
def listed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Listed]:
    own = f"cursors_{uuid4().hex}"
    match request.param:
        case "redis":
            url = f"{request.getfixturevalue('redis_server').url}?namespace={own}"
        case "postgres":
            url = f"{request.getfixturevalue('postgres_server').url}?schema={own}"
        case "sqlite":
            url = f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=NORMAL"
        case _:
            url = "memory://"
    found = Listed(url)
    yield found
    found.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # it is only looked at
@given(st.text(max_size=30) | st.integers().map(str) | st.floats().map(str))
@example("9" * 5000)
@example("9" * 18)
@example("٣")
@example("-1")
@example("1_0")
@example(" 1")
@example("1e3")
@example("inf")
@example("\ud800")
def test_a_cursor_is_followed_or_refused_by_its_name(listed: Listed, cursor: str) -> None:
    option, found = None, 0
    try:
        found = len(listed.list(cursor).jobs)
    except tenure.InvalidConfiguration as refused:
        option = refused.option
    assert (option, found) in [("cursor", 0), (None, 0), (None, 1), (None, 2)]
